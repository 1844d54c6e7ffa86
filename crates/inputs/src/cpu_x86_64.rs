//! The CPU as an input, on x86-64.
//!
//! glibc picks string functions and sizes the lazy-binding save area by CPUID when a process starts, and numerical
//! libraries pick kernels. A process that did so on one CPU goes on only where all of that is the same.

use core::arch::x86_64::{__cpuid_count, _xgetbv};

/// CPUID leaves that name the CPU and its features (leaf, subleaf) and the bits of eax, ebx, ecx and edx that do
/// (leaf 1's ebx holds the number of the current core; its ecx bit 27 and leaf 7's edx are as the kernel set them).
const LEAVES: [(u32, u32, [u32; 4]); 5] = [
    (0x0000_0001, 0, [!0, 0, !0, !0]),
    (0x0000_0007, 0, [!0, !0, !0, !0]),
    (0x0000_0007, 1, [!0, !0, !0, !0]),
    (0x0000_000d, 1, [!0, 0, 0, 0]),
    (0x8000_0001, 0, [!0, 0, !0, !0]),
];

/// A digest of the CPU's signature and features and of the register state that the kernel has enabled (XCR0).
pub fn digest() -> [u8; 16] {
    let mut facts = [0u8; LEAVES.len() * 16 + 8];
    let (leaves, xcr0_bytes) = facts.split_at_mut(LEAVES.len() * 16);
    let mut has_xsave = false;
    for ((leaf, subleaf, mask), out) in LEAVES.iter().zip(leaves.chunks_exact_mut(16)) {
        let found = __cpuid_count(*leaf, *subleaf);
        if *leaf == 1 {
            has_xsave = found.ecx & (1 << 27) != 0;
        }
        let values = [found.eax, found.ebx, found.ecx, found.edx];
        for ((value, mask), out) in values.iter().zip(mask).zip(out.chunks_exact_mut(4)) {
            out.copy_from_slice(&(value & mask).to_le_bytes());
        }
    }
    if has_xsave {
        xcr0_bytes.copy_from_slice(&xcr0().to_le_bytes());
    }
    image::digest(&facts)
}

#[allow(unsafe_code)]
fn xcr0() -> u64 {
    #[target_feature(enable = "xsave")]
    fn read() -> u64 {
        // SAFETY: xgetbv exists wherever the kernel has enabled xsave, which the caller checked; register 0 always exists.
        unsafe { _xgetbv(0) }
    }
    // SAFETY: the caller found OSXSAVE in CPUID.
    unsafe { read() }
}
