//! Why a process has no archive.

use std::ffi::OsString;
use std::path::PathBuf;
use std::{fmt, io};

use crate::error::Error;
use crate::max_size::NoBound;

/// Why a process has no archive.
#[derive(Debug)]
pub enum Absence {
    /// SNAPBOOT_ARCHIVE_POLICY has another value.
    Policy(OsString),
    /// SNAPBOOT_ARCHIVE_MAX has another form.
    Bound(NoBound),
    /// There is no working directory.
    NoDirectory(io::Error),
    /// It is switched off.
    Off,
    /// There is no place for it.
    NoPlace,
    /// Others could have written it.
    Untrusted(trust::Refusal),
    /// The file at its place cannot be used.
    Unusable(Error),
    /// There is none at this path, and none may be made.
    ReadOnly(PathBuf),
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absence::Policy(name) => {
                write!(f, "SNAPBOOT_ARCHIVE_POLICY is check, content or trust, not {}", name.to_string_lossy())
            }
            Absence::Bound(bound) => bound.fmt(f),
            Absence::NoDirectory(error) => write!(f, "there is no working directory: {error}"),
            Absence::Off => f.write_str("SNAPBOOT_ARCHIVE is off"),
            Absence::NoPlace => f.write_str(
                "there is neither a directory tmp nor XDG_CACHE_HOME or HOME; name a place with SNAPBOOT_ARCHIVE",
            ),
            Absence::Untrusted(refusal) => refusal.fmt(f),
            Absence::Unusable(error) => error.fmt(f),
            Absence::ReadOnly(path) => {
                write!(f, "there is no archive at {}, and SNAPBOOT_ARCHIVE_READONLY forbids making it", path.display())
            }
        }
    }
}

impl std::error::Error for Absence {}

impl From<NoBound> for Absence {
    fn from(bound: NoBound) -> Self {
        Absence::Bound(bound)
    }
}
