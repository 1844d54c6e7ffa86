//! What a freeze has to know of an architecture: system calls that are harmless and exist only there
//! (`HARMLESS_HERE`), and kernels under which no image can be made (`check_kernel`).

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;
