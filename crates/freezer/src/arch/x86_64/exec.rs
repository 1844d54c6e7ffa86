//! Variadic functions of the C library that execute a program, on x86-64: see [`crate::sys::libc_hooks`].
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
            // The seven words save the argument registers of the ABI and align the stack.
            naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                "call {record}",
                "mov r11, rax",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp r11",
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
