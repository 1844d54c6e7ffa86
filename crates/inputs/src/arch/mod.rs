//! What the CPU is, on each architecture.
//!
//! The same interface everywhere: whether images are made here at all (`IS_SUPPORTED`), `FEATURES` that an image records, what each of the `LEVELS` has that it may be content with, a `Cpu` that
//! reads leaves, and `bit_name` for what a bit stands for.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
