//! What only aarch64 has: kernels with other pages and smaller address spaces, and no harmless system call of its own.

use std::fs;

use libc::c_long;

/// Harmless system calls.
pub const HARMLESS_HERE: &[c_long] = &[];

/// Why no image can be made under this kernel, if so: it was built for larger pages, or for addresses of fewer than 48 bits.
pub fn refusal() -> Option<String> {
    let page = rustix::param::page_size();
    if page as u64 != image::PAGE {
        return Some(format!(
            "this kernel has pages of {} KiB, and images have pages of {} KiB",
            page / 1024,
            image::PAGE / 1024
        ));
    }
    // The stack is at the end of the address space.
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let start = |line: &str| u64::from_str_radix(line.split('-').next()?, 16).ok();
    let highest = maps.lines().filter_map(start).max()?;
    (highest < image::RESERVED_END).then(|| {
        "this kernel has addresses of fewer than 48 bits, and images need 48 (CONFIG_ARM64_VA_BITS)".to_owned()
    })
}
