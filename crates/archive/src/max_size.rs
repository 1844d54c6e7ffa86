//! The maximum size of an archive.

use std::ffi::{OsStr, OsString};
use std::fmt;

use crate::DEFAULT_BOUND;

/// A value of SNAPBOOT_ARCHIVE_MAX that is no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoBound(OsString);

impl fmt::Display for NoBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SNAPBOOT_ARCHIVE_MAX should be a whole number of MB, but it is {:?}", self.0.to_string_lossy())
    }
}

/// The bound (bytes) for a value of SNAPBOOT_ARCHIVE_MAX (MB); [`DEFAULT_BOUND`] if it is unset or empty.
pub fn bound(megabytes: Option<&OsStr>) -> Result<u64, NoBound> {
    let Some(value) = megabytes.filter(|value| !value.is_empty()) else { return Ok(DEFAULT_BOUND) };
    let bytes = value.to_str().and_then(|value| value.parse::<u64>().ok()?.checked_mul(1 << 20));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| NoBound(value.to_owned()))
}
