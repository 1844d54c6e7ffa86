//! What an image holds only for x86-64.

use record::record;

record! {
    /// Where the frozen thread goes on. The registers that a call preserves lie on its stack, so the stack pointer and
    /// the address to jump to are enough, with the segment bases that the kernel keeps.
    pub struct Registers {
        /// Stack pointer.
        pub rsp: u64,
        /// Address of the next instruction; it gets a [`crate::Handover`]'s address in rax.
        pub rip: u64,
        /// FS base: the thread pointer.
        pub fs_base: u64,
        /// GS base.
        pub gs_base: u64,
    }
}
