//! What an image holds only for one architecture: `Registers`.
//!
//! A record is data: every machine can read it, whatever it can run. There are images of x86-64 processes so far.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
