//! Code that needs assembly or numbers of the architecture: suspending and resuming the frozen thread (`suspend`),
//! variadic functions, the signature of restartable sequences (`RSEQ_SIGNATURE`), and whether a process can be frozen
//! here (`refusal`).
#![allow(unsafe_code)]

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
