//! The CPU features of each architecture.
//!
//! Each module has the same interface: `IS_SUPPORTED` (whether images can be made), the `FEATURES` that an image
//! records, the features of each of the `LEVELS` that an image may require instead, a `Cpu` that reads leaves, and
//! `bit_name`.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
