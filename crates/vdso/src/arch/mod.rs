//! The functions in the vdso of an architecture, and the code that replaces them.
//!
//! Each architecture has the same interface: `system_call` names the call that a function replaces, `jump` is code that
//! jumps to an address, and `call` is code that makes a system call with the arguments of the function and returns its
//! result.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
