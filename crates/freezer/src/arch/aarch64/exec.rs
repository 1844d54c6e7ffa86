//! Variadic functions of the C library that execute a program, on aarch64: see [`crate::sys::libc_hooks`].
//!
//! Rust cannot define such a function. These leave the arguments in place, record the program, and jump to the C
//! library's own.

use core::arch::naked_asm;
use core::ffi::{c_char, c_void};

use crate::sys::libc_hooks::{executed_with_all, Next};

/// Defines a function of that name: records the program, its first argument, and jumps to the C library's function.
macro_rules! pass_on_any {
    ($($name:ident, $record:ident;)*) => {$(
        /// The C library's function of this name, see the module's description.
        ///
        /// # Safety
        /// As for the function of the C library.
        #[unsafe(naked)]
        #[no_mangle]
        pub unsafe extern "C" fn $name() {
            // The argument registers, and the return address.
            naked_asm!(
                "stp x29, x30, [sp, #-80]!",
                "mov x29, sp",
                "stp x0, x1, [sp, #16]", "stp x2, x3, [sp, #32]", "stp x4, x5, [sp, #48]", "stp x6, x7, [sp, #64]",
                "bl {record}",
                "mov x16, x0",
                "ldp x6, x7, [sp, #64]", "ldp x4, x5, [sp, #48]", "ldp x2, x3, [sp, #32]", "ldp x0, x1, [sp, #16]",
                "ldp x29, x30, [sp], #80",
                "br x16",
                record = sym $record,
            )
        }

        /// Records the program and returns the address to jump to.
        extern "C" fn $record(program: *const c_char) -> *const c_void {
            static NEXT: Next = Next::new(concat!(stringify!($name), "\0"));
            executed_with_all(program);
            NEXT.address()
        }
    )*};
}

pass_on_any! {
    execl, note_execl;
    execlp, note_execlp;
    execle, note_execle;
}
