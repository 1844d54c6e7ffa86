//! The maximum size of an archive.

use std::ffi::OsStr;

use crate::DEFAULT_BOUND;

/// The bound (bytes) for a value of SNAPBOOT_ARCHIVE_MAX (MB); [`DEFAULT_BOUND`] if it is unset or empty. `Err` names the expected form.
pub fn bound(megabytes: Option<&OsStr>) -> Result<u64, String> {
    let Some(value) = megabytes.filter(|value| !value.is_empty()) else { return Ok(DEFAULT_BOUND) };
    let bytes = value.to_str().and_then(|value| value.parse::<u64>().ok()?.checked_mul(1 << 20));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        format!("SNAPBOOT_ARCHIVE_MAX should be a whole number of MB, but it is {:?}", value.to_string_lossy())
    })
}
