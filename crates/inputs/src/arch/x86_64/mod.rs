//! The CPU as an input, on x86-64: the answers of CPUID.
#![allow(unsafe_code)]

use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

use image::CpuLeaf;

mod names;

pub use names::bit_name;

/// Whether images can be made and thawed on this architecture.
pub const IS_SUPPORTED: bool = true;

/// Whether CPUs have levels.
pub const HAS_LEVELS: bool = true;

/// A leaf and subleaf of CPUID, and bits of its eax, ebx, ecx and edx.
pub type Bits = (u32, u32, [u32; 4]);

/// Features that a program can use (Intel SDM volume 2, CPUID; AMD APM volume 3, appendix E), and the register states
/// that the kernel has enabled. Left out are features that only a kernel uses (paging, virtual machines), and the CPU's
/// model and speed.
pub const FEATURES: [Bits; 6] = [
    (
        0x0000_0001,
        0,
        [
            0,
            0,
            bits(&[0, 1, 9, 12, 13, 19, 20, 22, 23, 25, 26, 27, 28, 29, 30]),
            bits(&[0, 4, 8, 11, 15, 19, 23, 24, 25, 26]),
        ],
    ),
    (
        0x0000_0007,
        0,
        [
            0,
            bits(&[0, 3, 5, 8, 9, 11, 14, 16, 17, 18, 19, 21, 23, 24, 26, 27, 28, 29, 30, 31]),
            bits(&[0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 22, 23, 25, 27, 28, 29]),
            bits(&[2, 3, 4, 5, 8, 14, 16, 20, 22, 23, 24, 25]),
        ],
    ),
    (0x0000_0007, 1, [bits(&[0, 1, 2, 3, 4, 5, 7, 10, 11, 12, 21, 23]), 0, 0, bits(&[4, 5, 8, 10, 14, 15, 19, 21])]),
    (0x0000_000d, 1, [bits(&[0, 1, 2]), 0, 0, 0]),
    (0x8000_0001, 0, [0, 0, bits(&[0, 5, 6, 7, 8, 11, 15, 16, 21, 29]), bits(&[11, 22, 25, 27, 29, 30, 31])]),
    (CpuLeaf::XCR0, 0, [!0, 0, 0, !0]),
];

/// The features of the levels x86-64-v2, -v3 and -v4 (x86-64 psABI, "Micro-Architecture Levels"). AES and PCLMULQDQ are
/// added to each, since all server CPUs of these levels have them. XCR0 includes the register states up to AVX for v3,
/// and up to AVX-512 for v4.
pub const LEVELS: [&[Bits]; 3] = [
    &[(1, 0, [0, 0, V2, ALWAYS]), (0x8000_0001, 0, [0, 0, bits(&[0]), ALWAYS_EXTENDED])],
    &[
        (1, 0, [0, 0, V2 | V3, ALWAYS]),
        (7, 0, [0, V3_LEAF_7, 0, 0]),
        (0x8000_0001, 0, [0, 0, bits(&[0, 5]), ALWAYS_EXTENDED]),
        (CpuLeaf::XCR0, 0, [bits(&[0, 1, 2]), 0, 0, 0]),
    ],
    &[
        (1, 0, [0, 0, V2 | V3, ALWAYS]),
        (7, 0, [0, V3_LEAF_7 | bits(&[16, 17, 28, 30, 31]), 0, 0]),
        (0x8000_0001, 0, [0, 0, bits(&[0, 5]), ALWAYS_EXTENDED]),
        (CpuLeaf::XCR0, 0, [bits(&[0, 1, 2, 5, 6, 7]), 0, 0, 0]),
    ],
];

/// ecx of leaf 1: SSE3, PCLMULQDQ, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT and AES.
const V2: u32 = bits(&[0, 1, 9, 13, 19, 20, 23, 25]);
/// FMA, MOVBE, XSAVE, OSXSAVE, AVX and F16C.
const V3: u32 = bits(&[12, 22, 26, 27, 28, 29]);
/// ebx of leaf 7: BMI1, AVX2 and BMI2.
const V3_LEAF_7: u32 = bits(&[3, 5, 8]);
/// edx of leaf 1 on every x86-64 CPU: FPU, TSC, CMPXCHG8B, CMOV, MMX, FXSR, SSE and SSE2.
const ALWAYS: u32 = bits(&[0, 4, 8, 15, 23, 24, 25, 26]);
/// edx of leaf 0x80000001 on every x86-64 CPU: SYSCALL, NX and long mode.
const ALWAYS_EXTENDED: u32 = bits(&[11, 20, 29]);

/// A word with these bits set.
const fn bits(numbers: &[u32]) -> u32 {
    let (mut word, mut at) = (0, 0);
    while at < numbers.len() {
        word |= 1 << numbers[at];
        at += 1;
    }
    word
}

/// Which of the masked bits another CPU must have alike: those that are set, and all of XCR0.
pub fn required_bits(leaf: u32, masks: [u32; 4], values: [u32; 4]) -> [u32; 4] {
    if leaf == CpuLeaf::XCR0 {
        masks
    } else {
        values
    }
}

/// Reads leaves. CPUID takes some microseconds in a virtual machine, so the XSAVE bit of leaf 1 is cached.
#[derive(Default)]
pub struct Cpu {
    has_xsave: Option<bool>,
}

impl Cpu {
    /// eax, ebx, ecx and edx of a leaf. For a leaf that the CPU lacks, the result is arbitrary but always the same.
    pub fn read(&mut self, leaf: u32, subleaf: u32) -> [u32; 4] {
        /// In ecx of leaf 1: the kernel has enabled XSAVE.
        const OSXSAVE: u32 = 1 << 27;
        if leaf == CpuLeaf::XCR0 {
            let has_xsave = self.has_xsave.unwrap_or_else(|| __cpuid(1).ecx & OSXSAVE != 0);
            let xcr0 = if has_xsave { xcr0() } else { 0 };
            return [xcr0 as u32, 0, 0, (xcr0 >> 32) as u32];
        }
        let found = __cpuid_count(leaf, subleaf);
        if leaf == 1 {
            self.has_xsave = Some(found.ecx & OSXSAVE != 0);
        }
        [found.eax, found.ebx, found.ecx, found.edx]
    }
}

/// The register states that the kernel has enabled. The caller must have found OSXSAVE in CPUID.
fn xcr0() -> u64 {
    #[target_feature(enable = "xsave")]
    fn read() -> u64 {
        // SAFETY: xgetbv exists wherever the kernel has enabled xsave, which the caller checked; register 0 always
        // exists.
        unsafe { _xgetbv(0) }
    }
    // SAFETY: the caller found OSXSAVE in CPUID.
    unsafe { read() }
}
