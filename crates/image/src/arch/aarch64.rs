//! The part of an image that is specific to aarch64: none yet. No image is made here, but images of x86-64 can be
//! inspected.

pub use super::x86_64::Registers;
