//! What only aarch64 has: kernels with other pages and smaller address spaces, and no harmless system call of its own.

use std::fs;

use failure::{Failure, Result};
use libc::c_long;

/// Harmless system calls.
pub const HARMLESS_HERE: &[c_long] = &[];

/// Refuses a kernel under which no image can be made: one that was built for larger pages, or for addresses of fewer than 48
/// bits.
pub fn check_kernel() -> Result<()> {
    let refused =
        |reason: &str| Failure::refusal(format!("images cannot be made here: {reason}. Programs run as before."));
    let page = rustix::param::page_size() as u64;
    if page != image::PAGE {
        let (here, images) = (page / 1024, image::PAGE / 1024);
        return Err(refused(&format!("this kernel has pages of {here} KiB, and images have pages of {images} KiB")));
    }
    // The stack is at the end of the address space.
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let start = |line: &str| u64::from_str_radix(line.split('-').next()?, 16).ok();
    match maps.lines().filter_map(start).max() {
        Some(highest) if highest < image::RESERVED_END => {
            Err(refused("this kernel has addresses of fewer than 48 bits (CONFIG_ARM64_VA_BITS), and images need 48"))
        }
        _ => Ok(()),
    }
}
