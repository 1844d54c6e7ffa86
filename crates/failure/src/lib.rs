//! The error type of every step of Snapboot: a message for the user, and whose fault it is. And what makes such messages safe to print.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod printable;

pub use printable::{harmless, harmless_lines, is_harmful};

use std::fmt;
use std::io;
use std::path::Path;

/// Why a step failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Whose fault it is.
    pub kind: Kind,
    /// What was expected, what was found, the likely cause and the remedy.
    pub message: String,
    /// Whether the cause may pass, such as a full disk or a file that was being replaced. A later attempt may succeed.
    pub is_passing: bool,
}

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A mistake of the user, or something that Snapboot does not support.
    Refused,
    /// A failure of the program or of the machine.
    Failed,
}

/// The result of a step.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// A mistake of the user, or something that Snapboot does not support.
    pub fn refusal(message: impl Into<String>) -> Self {
        Failure { kind: Kind::Refused, message: message.into(), is_passing: false }
    }

    /// A failure of the program or of the machine.
    pub fn failed(message: impl Into<String>) -> Self {
        Failure { kind: Kind::Failed, message: message.into(), is_passing: false }
    }

    /// A failure of the machine that may pass.
    pub fn passing(message: impl Into<String>) -> Self {
        Failure { is_passing: true, ..Failure::failed(message) }
    }

    /// A failed system call on a path. `doing` completes "cannot ...". A full disk gets its own remedy.
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
        let message = format!("cannot {doing} {}: {}{remedy}.", path.display(), reason(error));
        Failure { is_passing: is_passing(error), ..Failure::refusal(message) }
    }
}

/// Whether an error may pass: a lack of memory, disk space, descriptors or processes, or a conflict with another
/// process.
pub fn is_passing(error: &io::Error) -> bool {
    /// The standard library has no name for these two.
    const TOO_MANY_OPEN_FILES: [i32; 2] = [23, 24];
    use io::ErrorKind as Of;
    match error.kind() {
        Of::OutOfMemory | Of::StorageFull | Of::QuotaExceeded | Of::FileTooLarge => true,
        Of::WouldBlock | Of::Interrupted | Of::ResourceBusy | Of::ExecutableFileBusy | Of::StaleNetworkFileHandle => {
            true
        }
        _ => error.raw_os_error().is_some_and(|number| TOO_MANY_OPEN_FILES.contains(&number)),
    }
}

/// The system's text for an error, without the number that Rust appends.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_lacks_need_not_last() {
        let is = |number| Failure::io("write", Path::new("/x"), &io::Error::from_raw_os_error(number)).is_passing;
        // ENOSPC, EFBIG, EMFILE, ENFILE, EAGAIN, ENOMEM, EDQUOT, ETXTBSY
        assert!([28, 27, 24, 23, 11, 12, 122, 26].into_iter().all(is));
        // ENOENT, EACCES, EROFS, ENOEXEC
        assert!(![2, 13, 30, 8].into_iter().any(is));
    }
}
