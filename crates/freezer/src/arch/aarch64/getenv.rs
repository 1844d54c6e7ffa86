//! The C library's functions that read a variable; these pass their caller's address on: see
//! [`crate::sys::libc_hooks`].

use core::arch::naked_asm;
use core::ffi::c_char;

use crate::sys::libc_hooks::{getenv_for, secure_getenv_for};

/// The C library's function of this name.
///
/// # Safety
/// As for the function of the C library.
#[unsafe(naked)]
#[no_mangle]
pub unsafe extern "C" fn getenv(name: *const c_char) -> *mut c_char {
    naked_asm!("hint #34", "mov x1, x30", "b {read}", read = sym getenv_for)
}

/// The C library's function of this name.
///
/// # Safety
/// As for the function of the C library.
#[unsafe(naked)]
#[no_mangle]
pub unsafe extern "C" fn secure_getenv(name: *const c_char) -> *mut c_char {
    naked_asm!("hint #34", "mov x1, x30", "b {read}", read = sym secure_getenv_for)
}
