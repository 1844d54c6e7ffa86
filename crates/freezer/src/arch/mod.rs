//! What only assembly or a number of the architecture can say: leaving and re-entering the frozen thread (`suspend`), functions that
//! take any number of arguments, the signature of restartable sequences (`RSEQ_SIGNATURE`), and whether a process can be frozen here
//! at all (`refusal`).
#![allow(unsafe_code)]

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
