//! The part of an image that is specific to x86-64.

use record::record;

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
