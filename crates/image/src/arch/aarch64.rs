//! The part of an image that is specific to aarch64.

use record::record;

use crate::Section;

record! {
    /// Where the frozen thread continues. The callee-saved registers lie on its stack, so the stack pointer, the
    /// address to jump to and the thread pointer are enough.
    pub struct Aarch64Registers {
        /// Stack pointer.
        pub sp: u64,
        /// Address of the next instruction, which expects the address of a [`crate::Handover`] in x0.
        pub pc: u64,
        /// The thread pointer, tpidr_el0.
        pub tpidr: u64,
    }
}

/// The registers of this architecture.
pub use Aarch64Registers as Registers;

/// The section that holds them.
pub const SECTION: Section = Section::Aarch64Registers;

/// The name of the architecture, as `uname -m` prints it.
pub const NAME: &str = "aarch64";

/// End of the address space of a process: 48 bits, which is what a kernel with larger ones gives as well if not asked
/// for more.
pub const ADDRESS_END: u64 = 1 << 48;

impl Aarch64Registers {
    /// Stack pointer and next instruction.
    pub fn resume_at(&self) -> (u64, u64) {
        (self.sp, self.pc)
    }

    /// What the C library reaches thread-local memory by.
    pub fn thread_pointer(&self) -> u64 {
        self.tpidr
    }
}
