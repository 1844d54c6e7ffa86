//! The CPU as an input, on x86-64: what CPUID tells.
#![allow(unsafe_code)]

use core::arch::x86_64::{__cpuid, __cpuid_count, _xgetbv};

use image::CpuLeaf;

mod names;

pub use names::bit_name;

/// Whether images are made and thawed on this architecture.
pub const IS_SUPPORTED: bool = true;

/// Leaves of CPUID that name the CPU and its features (leaf, subleaf) and the bits of eax, ebx, ecx and edx that do
/// (leaf 1's ebx holds the number of the current core; its ecx bit 27 and leaf 7's edx are as the kernel set them).
pub const LEAVES: [(u32, u32, [u32; 4]); 6] = [
    (0x0000_0001, 0, [!0, 0, !0, !0]),
    (0x0000_0007, 0, [!0, !0, !0, !0]),
    (0x0000_0007, 1, [!0, !0, !0, !0]),
    (0x0000_000d, 1, [!0, 0, 0, 0]),
    (0x8000_0001, 0, [!0, 0, !0, !0]),
    (CpuLeaf::XCR0, 0, [!0, 0, 0, !0]),
];

/// What a process that was frozen under the settings for the baseline needs: x86-64-v2, with AES and PCLMULQDQ.
///
/// Of leaf 1 SSE3, PCLMULQDQ, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT and AES in ecx, and what every x86-64 CPU has in edx: FPU,
/// TSC, CMPXCHG8B, CMOV, MMX, FXSR, SSE and SSE2; of leaf 0x80000001 LAHF, SYSCALL, NX and long mode. XCR0 does not count.
pub const BASELINE: [(u32, u32, [u32; 4]); 2] = [
    (
        0x0000_0001,
        0,
        [
            0,
            0,
            1 | 1 << 1 | 1 << 9 | 1 << 13 | 1 << 19 | 1 << 20 | 1 << 23 | 1 << 25,
            1 | 1 << 4 | 1 << 8 | 1 << 15 | 1 << 23 | 1 << 24 | 1 << 25 | 1 << 26,
        ],
    ),
    (0x8000_0001, 0, [0, 0, 1, 1 << 11 | 1 << 20 | 1 << 29]),
];

/// Reads leaves. Each takes some microseconds where the machine is a virtual one, so what leaf 1 says of XSAVE is kept.
#[derive(Default)]
pub struct Cpu {
    has_xsave: Option<bool>,
}

impl Cpu {
    /// eax, ebx, ecx and edx of a leaf. One that the CPU does not have answers something, and always the same.
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

/// The register states that the kernel has enabled. The caller has found OSXSAVE in CPUID.
fn xcr0() -> u64 {
    #[target_feature(enable = "xsave")]
    fn read() -> u64 {
        // SAFETY: xgetbv exists wherever the kernel has enabled xsave, which the caller checked; register 0 always exists.
        unsafe { _xgetbv(0) }
    }
    // SAFETY: the caller found OSXSAVE in CPUID.
    unsafe { read() }
}
