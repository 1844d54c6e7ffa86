//! How the command says that something went wrong: a sentence for a person, and an exit status.

use std::fmt;
use std::io;
use std::path::Path;

/// Exit status for the user's mistakes and for refusals.
pub const REFUSED: u8 = 2;
/// Exit status when the program itself failed, or when a question that was asked has the answer no.
pub const FAILED: u8 = 1;

/// Why the command stops: what to say and the exit status to end with.
#[derive(Debug)]
pub struct Failure {
    /// Exit status of `snapboot`.
    pub status: u8,
    /// What was expected, what was there, the likely cause and the remedy.
    pub message: String,
}

/// What every part of the command returns.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A mistake of the user, or something that Snapboot does not do: exit status 2.
    pub fn refusal(message: impl Into<String>) -> Self {
        Failure { status: REFUSED, message: message.into() }
    }

    /// A failure of the program or of the machine: exit status 1.
    pub fn failed(message: impl Into<String>) -> Self {
        Failure { status: FAILED, message: message.into() }
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
