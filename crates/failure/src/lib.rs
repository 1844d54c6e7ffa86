//! What a step of Snapboot returns when it cannot go on: sentences for a person, and whose fault it is.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

use std::fmt;
use std::io;
use std::path::Path;

/// Why a step stops, and what to say of it.
#[derive(Debug)]
pub struct Failure {
    /// Whose fault it is.
    pub kind: Kind,
    /// What was expected, what was there, the likely cause and the remedy.
    pub message: String,
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A mistake of the user, or something that Snapboot does not do.
    Refused,
    /// The program's or the machine's.
    Failed,
}

/// What a step returns.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A mistake of the user, or something that Snapboot does not do.
    pub fn refusal(message: impl Into<String>) -> Self {
        Failure { kind: Kind::Refused, message: message.into() }
    }

    /// A failure of the program or of the machine.
    pub fn failed(message: impl Into<String>) -> Self {
        Failure { kind: Kind::Failed, message: message.into() }
    }

    /// A failed system call on a path. `doing` completes "cannot ..."; a full disk gets its own remedy.
    pub fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                ". The disk (or the quota) is full: free some space, or choose another place with -o. \
                 What was there before is untouched"
            }
            io::ErrorKind::ReadOnlyFilesystem => ". Choose a writable place with -o",
            io::ErrorKind::PermissionDenied => ". Check the permissions of the file and of the directories above it",
            _ => "",
        };
        Failure::refusal(format!("cannot {doing} {}: {}{remedy}.", path.display(), reason(error)))
    }
}

/// The system's words for an error, without the number that Rust adds.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<image::Error> for Failure {
    fn from(error: image::Error) -> Self {
        Failure::failed(format!("{error}."))
    }
}
