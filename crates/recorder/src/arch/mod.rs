//! Numbers that differ by architecture: `AUDIT`, which identifies the architecture of a call to the filter, and the
//! `TABLE` of system calls that take file names.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
