//! Why a file is not trusted, and the remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// Why a file is not executed or obeyed.
#[derive(Debug)]
pub struct Refusal {
    /// The file, a directory above it, or a link to it.
    pub path: PathBuf,
    /// What is wrong with it.
    pub what: What,
}

/// What is wrong with a file.
#[derive(Debug)]
pub enum What {
    /// A system call failed.
    Io(io::Error),
    /// It belongs to this user.
    Owner(u32),
    /// This mode lets others write to it.
    Writers(u32),
    /// It is not a regular file.
    NoFile,
    /// It is not a directory.
    NoDirectory,
}

impl Refusal {
    pub(crate) fn new(path: &Path, what: What) -> Refusal {
        Refusal { path: path.to_owned(), what }
    }

    pub(crate) fn io(path: &Path, errno: Errno) -> Refusal {
        Refusal::new(path, What::Io(errno.into()))
    }

    /// Whether the file is missing.
    pub fn is_absence(&self) -> bool {
        matches!(&self.what, What::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.what {
            What::Io(error) => write!(f, "cannot open {path}: {error}"),
            What::Owner(owner) => {
                write!(
                    f,
                    "{path} belongs to another user ({owner}), who can change it; expected it to belong to you or root"
                )
            }
            What::Writers(mode) => {
                write!(f, "others may write to {path} (mode {mode:04o}); expected that only its owner may (chmod go-w)")
            }
            What::NoFile => write!(f, "{path} is not a regular file"),
            What::NoDirectory => write!(f, "{path} is no directory"),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> io::Error {
        match refusal.what {
            What::Io(error) => error,
            _ => io::Error::new(io::ErrorKind::PermissionDenied, refusal),
        }
    }
}
