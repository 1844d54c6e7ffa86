//! System calls that only aarch64 has: none that is harmless.

use libc::c_long;

/// Harmless system calls.
pub const HARMLESS_HERE: &[c_long] = &[];
