//! The part of an image that is specific to an architecture: `Registers`.
//!
//! A record is data, so every machine can read it, whatever code it runs. So far all images are of x86-64 processes.

#[cfg(target_arch = "aarch64")]
mod aarch64;
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
