//! The message about a difference of any kind.

use core::fmt;

use crate::Errno;

/// Why a start falls back, as the launcher prints it: `TEXT: SUBJECT; it was WAS (ERRNO)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Words<'t, 'n> {
    /// What has changed.
    pub text: &'static str,
    /// The subject of the change; may be empty.
    pub subject: &'t [u8],
    /// The name in the directory `subject` that has changed; may be empty.
    pub name: &'n [u8],
    /// The recorded value; may be empty.
    pub was: &'t [u8],
    /// The kernel's error.
    pub errno: Option<Errno>,
}

impl<'t> Words<'t, '_> {
    /// A message about a subject.
    pub fn about(text: &'static str, subject: &'t [u8]) -> Self {
        Words { text, subject, ..Words::default() }
    }
}

/// Displays bytes as text, with a mark in place of invalid ones.
pub(crate) struct Lossy<'a>(pub &'a [u8]);

impl fmt::Display for Lossy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.utf8_chunks().try_for_each(|chunk| {
            f.write_str(chunk.valid())?;
            f.write_str(if chunk.invalid().is_empty() { "" } else { "\u{fffd}" })
        })
    }
}

/// A string of the tables without its final NUL.
pub(crate) fn without_nul(string: &[u8]) -> &[u8] {
    string.strip_suffix(b"\0").unwrap_or(string)
}
