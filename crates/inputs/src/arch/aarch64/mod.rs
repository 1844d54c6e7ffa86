//! The CPU as an input, on aarch64: the features that the kernel tells programs of, and sizes that they read from
//! registers.
#![allow(unsafe_code)]

use core::arch::asm;

mod names;

pub use names::bit_name;

/// Whether images can be made and thawed on this architecture.
pub const IS_SUPPORTED: bool = true;

/// Whether CPUs have levels. No library here can be told to choose by one.
pub const HAS_LEVELS: bool = false;

/// A word, always 0, and bits of its four parts.
pub type Bits = (u32, u32, [u32; 4]);

/// AT_HWCAP, AT_HWCAP2, AT_HWCAP3 and AT_HWCAP4 of linux/auxvec.h: the low half of each is in the first part, the high
/// half in the last.
const FEATURE_WORDS: [u32; 4] = [16, 26, 29, 30];

/// Stands for the sizes: see [`sizes`]. No entry of the auxiliary vector has this number.
const SIZES: u32 = u32::MAX;

/// Every feature but the kernel's event stream, which wakes up a waiting CPU; and the sizes.
pub const FEATURES: [Bits; 5] = [
    (FEATURE_WORDS[0], 0, [!EVENT_STREAM, 0, 0, !0]),
    (FEATURE_WORDS[1], 0, [!0, 0, 0, !0]),
    (FEATURE_WORDS[2], 0, [!0, 0, 0, !0]),
    (FEATURE_WORDS[3], 0, [!0, 0, 0, !0]),
    (SIZES, 0, [!0; 4]),
];

/// HWCAP_EVTSTRM.
const EVENT_STREAM: u32 = 1 << 2;

/// There are no levels.
pub const LEVELS: [&[Bits]; 3] = [&[]; 3];

/// Which of the masked bits another CPU must have alike: those that are set, and whole sizes; but a process that has seen no
/// vectors of variable length does not mind them.
pub fn required_bits(word: u32, masks: [u32; 4], values: [u32; 4]) -> [u32; 4] {
    let [lines, block, sve, sme] = masks;
    let if_there = |mask, length| if length == 0 { 0 } else { mask };
    if word == SIZES {
        [lines, block, if_there(sve, values[2]), if_there(sme, values[3])]
    } else {
        values
    }
}

/// Reads words. The features are read once.
#[derive(Default)]
pub struct Cpu {
    features: Option<[u64; FEATURE_WORDS.len()]>,
}

impl Cpu {
    /// The four parts of a word.
    pub fn read(&mut self, word: u32, _: u32) -> [u32; 4] {
        if word == SIZES {
            return sizes();
        }
        let features = self.features.get_or_insert_with(features);
        let found = FEATURE_WORDS.iter().position(|&kind| kind == word).map_or(0, |index| features[index]);
        [found as u32, 0, 0, (found >> 32) as u32]
    }
}

/// The feature words of this process' auxiliary vector; 0 for those that the kernel does not know, and all 0 where /proc is not mounted.
fn features() -> [u64; FEATURE_WORDS.len()] {
    const OPENAT: usize = 56;
    const CLOSE: usize = 57;
    const READ: usize = 63;
    /// AT_FDCWD, and O_CLOEXEC.
    const HERE: usize = -100isize as usize;
    const CLOEXEC: usize = 0o2_000_000;
    let mut found = [0; FEATURE_WORDS.len()];
    let mut vector = [[0u64; 2]; 64];
    // SAFETY: the kernel reads a string, and writes to the vector at most its size.
    let size = unsafe {
        let file = call(OPENAT, [HERE, c"/proc/self/auxv".as_ptr().addr(), CLOEXEC]);
        if file < 0 {
            return found;
        }
        let size = call(READ, [file as usize, vector.as_mut_ptr().addr(), size_of_val(&vector)]);
        call(CLOSE, [file as usize, 0, 0]);
        size
    };
    let count = usize::try_from(size).unwrap_or(0) / size_of_val(&vector[0]);
    for [kind, value] in &vector[..count] {
        if let Some(index) = FEATURE_WORDS.iter().position(|word| u64::from(*word) == *kind) {
            found[index] = *value;
        }
    }
    found
}

/// Sizes that programs read once and keep: of the lines of the caches, which a compiler flushes after it has written code
/// (ctr_el0); of the block that one instruction clears, which the C library clears memory by (dczid_el0); of the vectors of
/// SVE and of SME (bytes; 0 without).
fn sizes() -> [u32; 4] {
    /// IminLine, DminLine, IDC and DIC of ctr_el0; the rest says how caches find their lines.
    const LINES: u64 = 0x300f_000f;
    const PRCTL: usize = 167;
    /// PR_SVE_GET_VL and PR_SME_GET_VL, and the bits of their answer that are the length.
    const SVE: usize = 51;
    const SME: usize = 64;
    const LENGTH: u32 = 0xffff;
    let (caches, block): (u64, u64);
    // SAFETY: the kernel lets programs read these registers, or answers for them.
    unsafe {
        asm!("mrs {}, ctr_el0", out(reg) caches, options(nomem, nostack, preserves_flags));
        asm!("mrs {}, dczid_el0", out(reg) block, options(nomem, nostack, preserves_flags));
    }
    let vector = |which| {
        // SAFETY: the call involves no memory.
        let answer = unsafe { call(PRCTL, [which, 0, 0]) };
        u32::try_from(answer).map_or(0, |answer| answer & LENGTH)
    };
    [(caches & LINES) as u32, block as u32, vector(SVE), vector(SME)]
}

/// A system call of the kernel with three arguments, and zeros behind them.
///
/// # Safety
/// The call must be sound for these arguments.
unsafe fn call(number: usize, arguments: [usize; 3]) -> isize {
    let result: isize;
    // SAFETY: the kernel preserves everything but x0; the caller answers for the call itself.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") arguments[0] => result,
            in("x1") arguments[1],
            in("x2") arguments[2],
            in("x3") 0usize,
            in("x4") 0usize,
            options(nostack),
        );
    }
    result
}
