//! A file to be loaded.

use std::ffi::CString;

use archive::Identity;

/// A file to be loaded.
#[derive(Debug)]
pub struct Script {
    pub path: CString,
    /// Its real path, if that differs.
    pub real: Option<Vec<u8>>,
    pub identity: Identity,
}

impl Script {
    pub fn real_path(&self) -> &[u8] {
        self.real.as_deref().unwrap_or(self.path.as_bytes())
    }
}
