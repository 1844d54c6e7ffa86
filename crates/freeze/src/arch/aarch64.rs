//! System calls that only aarch64 has: none that counts.

use libc::c_long;

/// Those that are harmless.
pub const HARMLESS_HERE: &[c_long] = &[];
