//! The functions of the C library that execute a program and take any number of arguments, on x86-64: see [`crate::sys::libc_hooks`].
//!
//! Such a function cannot be written in Rust. These leave the arguments where they are, have the program noted, and go on to the C
//! library's own.

use core::arch::naked_asm;
use core::ffi::{c_char, c_void};

use crate::sys::libc_hooks::{executed_with_all, Next};

/// Defines a function of that name: notes the program, its first argument, and jumps to the function that it stands in front of.
macro_rules! pass_on_any {
    ($($name:ident, $note:ident;)*) => {$(
        /// The C library's function of this name, see the module's description.
        ///
        /// # Safety
        /// As for the function of the C library.
        #[unsafe(naked)]
        #[no_mangle]
        pub unsafe extern "C" fn $name() {
            // The seven words keep what the ABI may pass arguments in, and align the stack.
            naked_asm!(
                "push rdi", "push rsi", "push rdx", "push rcx", "push r8", "push r9", "push rax",
                "call {note}",
                "mov r11, rax",
                "pop rax", "pop r9", "pop r8", "pop rcx", "pop rdx", "pop rsi", "pop rdi",
                "jmp r11",
                note = sym $note,
            )
        }

        /// Notes the program and returns where to go on.
        extern "C" fn $note(program: *const c_char) -> *const c_void {
            static NEXT: Next = Next::of(concat!(stringify!($name), "\0"));
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
