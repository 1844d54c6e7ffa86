//! Numbers of the kernel's that differ by architecture: `AUDIT`, by which a filter knows the architecture of a call, and the `TABLE` of
//! calls that take file names.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
