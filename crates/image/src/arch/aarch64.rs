//! What an image holds only for aarch64: not yet. No image is made here; those of x86-64 can be looked into.

pub use super::x86_64::Registers;
