//! Errors of opening and writing an archive, with the remedy.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why there is no archive, or why nothing was stored. The program starts the ordinary way.
#[derive(Debug)]
pub enum Error {
    /// A system call failed.
    Io {
        /// The action, as in "cannot ...".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The path is not that of a regular file.
    NotAFile(PathBuf),
    /// The file belongs to another user.
    Owner {
        /// The file.
        path: PathBuf,
        /// The owner's user id.
        owner: u32,
    },
    /// Others than the owner may write the file.
    Mode {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// The file does not start like an archive.
    NotAnArchive(PathBuf),
    /// The file is empty, or its header is damaged. The next writer repairs it.
    Damaged(PathBuf),
    /// The file is an archive of another version of the format.
    Version {
        /// The file.
        path: PathBuf,
        /// The version found in it.
        found: u32,
    },
    /// Another writer has held the lock for too long.
    Busy(PathBuf),
    /// A file of the size needed may not be written (RLIMIT_FSIZE).
    Limit {
        /// The file.
        path: PathBuf,
        /// The limit (bytes).
        limit: u64,
    },
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_owned();
        move |error| Error::Io { doing, path, error }
    }

    /// Whether nothing exists at the path.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Error::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether there is no archive yet, or one that the next writer replaces.
    pub fn is_absence(&self) -> bool {
        match self {
            Error::Io { .. } => self.is_not_found(),
            Error::Damaged(_) | Error::Version { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { doing, path, error } => {
                let text = error.to_string();
                let reason = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
                let remedy = match error.kind() {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                        ". The disk (or the quota) is full: free some space; what the archive held before is untouched"
                    }
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                        ". Name another place with SNAPBOOT_ARCHIVE, or build the archive as a user who may write there"
                    }
                    _ if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
                        ". It is a symbolic link, which is not followed: name the file itself with SNAPBOOT_ARCHIVE"
                    }
                    io::ErrorKind::NotFound => ". There is no boot archive yet: the first boot writes it",
                    _ => "",
                };
                write!(f, "cannot {doing} {}: {reason}{remedy}", path.display())
            }
            Error::NotAFile(path) => write!(
                f,
                "{} should be a boot archive, but it is not a regular file: name a file with SNAPBOOT_ARCHIVE",
                path.display()
            ),
            Error::Owner { path, owner } => write!(
                f,
                "{} belongs to user {owner}, but an archive must belong to the user or to root, because it holds code: remove it, or \
                 name another place with SNAPBOOT_ARCHIVE",
                path.display()
            ),
            Error::Mode { path, mode } => write!(
                f,
                "users other than its owner may write to {} (mode {mode:04o}), so its code is not trusted: remove it, or, if nobody has \
                 changed it, run chmod 0600 on it",
                path.display()
            ),
            Error::NotAnArchive(path) => write!(
                f,
                "{} should be a boot archive, but its first bytes are not those of one: SNAPBOOT_ARCHIVE may name the wrong file. The \
                 file is left unchanged",
                path.display()
            ),
            Error::Damaged(path) => write!(
                f,
                "{} should start with the header of a boot archive, but that is missing or damaged: a writer was killed, or the disk \
                 lost it. The next boot that may write repairs it",
                path.display()
            ),
            Error::Version { path, found } => write!(
                f,
                "{} should be a boot archive of format version {}, but it has version {found}: another release wrote it. \
                 The next boot that may write replaces it",
                path.display(),
                crate::VERSION
            ),
            Error::Busy(path) => write!(
                f,
                "another process has been writing {} for more than a second: nothing was stored, the next boot tries again",
                path.display()
            ),
            Error::Limit { path, limit } => write!(
                f,
                "{} would grow beyond the file size limit of {limit} bytes (ulimit -f): nothing was stored; raise the limit \
                 or name another archive with SNAPBOOT_ARCHIVE",
                path.display()
            ),
        }
    }
}

impl std::error::Error for Error {}
