//! The part of an image that is specific to x86-64.

use record::record;

use crate::Section;

record! {
    /// Where the frozen thread continues. The callee-saved registers lie on its stack, so the stack pointer, the
    /// address to jump to and the segment bases that the kernel keeps are enough.
    pub struct Registers {
        /// Stack pointer.
        pub rsp: u64,
        /// Address of the next instruction, which expects the address of a [`crate::Handover`] in rax.
        pub rip: u64,
        /// FS base: the thread pointer.
        pub fs_base: u64,
        /// GS base.
        pub gs_base: u64,
    }
}

/// The section that holds the registers.
pub const SECTION: Section = Section::Registers;

/// The name of the architecture, as `uname -m` prints it.
pub const NAME: &str = "x86_64";

/// End of the address space of a process with four-level page tables.
pub const ADDRESS_END: u64 = 0x7fff_ffff_f000;

impl Registers {
    /// Stack pointer and next instruction.
    pub fn resume_at(&self) -> (u64, u64) {
        (self.rsp, self.rip)
    }

    /// What the C library reaches thread-local memory by.
    pub fn thread_pointer(&self) -> u64 {
        self.fs_base
    }
}
