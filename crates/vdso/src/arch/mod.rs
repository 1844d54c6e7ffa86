//! The functions that the vdso of an architecture has, and the code that replaces them.
//!
//! The same interface everywhere: `system_call` says which call a function stands for, `jump` and `call` are the code that leads to an
//! address, and that makes a system call with the arguments of the function and returns what it returns.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
