//! Why an image is not used, in words for people: how such a reason is put together.
//!
//! The words of what is stale stand in crates/inputs beside the comparison, those of `snapboot inspect --why` too. It has a module for each kind
//! of input, listed in differences.rs: environment.rs, facts/difference.rs, cpu.rs, directories.rs, files.rs and, for answers of shared files,
//! lookups.rs. The launcher's other words stand where it checks: owner, mode, arguments and process in check.rs; the vdso in vdso.rs; age and
//! number of thaws in rotation.rs. The front ends add theirs where they call `fall_back`. fallback.rs says the reason. For a damaged image,
//! the words are in crates/image error.rs; for what only a start or `snapboot verify` sees of damage, in memory.rs, restore.rs and crates/cli
//! verify.rs.

use core::fmt;

use image::{reserved, PAGE};
use inputs::{Difference, Words};

use crate::sys::{Errno, Memory};

/// Why the image is not used.
#[derive(Clone, Copy)]
pub struct Reason {
    text: &'static str,
    subject: &'static [u8],
    was: &'static [u8],
    guard: &'static [u8],
    errno: Option<Errno>,
    image: Option<image::Error>,
    /// Whether the user wants such a start to be an ordinary one, as where a guard matched: it is no failure of the image.
    pub is_intended: bool,
}

impl Reason {
    /// A reason in words.
    pub const fn new(text: &'static str) -> Reason {
        Reason { text, subject: b"", was: b"", guard: b"", errno: None, image: None, is_intended: false }
    }

    /// What differs is stale. Not inlined: most starts need none.
    #[cold]
    #[inline(never)]
    pub fn from_difference(difference: &Difference<'static, '_>) -> Reason {
        let Words { text, subject, name, was, errno } = difference.words();
        Reason { subject: joined(subject, name), was, errno, ..Reason::new(text) }
    }

    /// The image itself is not as it should be.
    pub fn image(error: image::Error) -> Reason {
        Reason { image: Some(error), ..Reason::new("") }
    }

    /// Names what it is about.
    pub fn subject(mut self, subject: &'static [u8]) -> Reason {
        self.subject = subject;
        self
    }

    /// Names the guard that has matched.
    pub fn guard(mut self, guard: &'static [u8]) -> Reason {
        self.guard = guard;
        self.intended()
    }

    /// Says that the start is to be ordinary, and nothing is wrong with the image.
    pub fn intended(mut self) -> Reason {
        self.is_intended = true;
        self
    }

    /// Whether another image of a store may do: one that has been booted less far may have no such guard.
    pub fn leaves_it_to_the_store(&self) -> bool {
        !self.is_intended || !self.guard.is_empty()
    }

    /// Adds what the kernel said.
    pub fn errno(mut self, errno: Errno) -> Reason {
        self.errno = Some(errno);
        self
    }
}

impl From<image::Error> for Reason {
    fn from(error: image::Error) -> Self {
        Reason::image(error)
    }
}

/// A path in memory that stays, for the message; only the directory where there is no memory for more.
fn joined(directory: &'static [u8], name: &[u8]) -> &'static [u8] {
    if name.is_empty() {
        return directory;
    }
    let Ok(page) = Memory::map(reserved::CHANGED_PATH, PAGE) else { return directory };
    let page = page.leak();
    let parts = directory.iter().chain(b"/").chain(name);
    let length = page.iter_mut().zip(parts).map(|(place, &byte)| *place = byte).count();
    &page[..length]
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.image {
            Some(error) => write!(f, "{error}")?,
            None => f.write_str(self.text)?,
        }
        if !self.subject.is_empty() {
            f.write_str(": ")?;
            write_text(f, self.subject)?;
        }
        if !self.was.is_empty() {
            f.write_str("; it was ")?;
            write_text(f, self.was)?;
        }
        if !self.guard.is_empty() {
            f.write_str("; it matches the guard ")?;
            write_text(f, self.guard)?;
        }
        match self.errno {
            Some(errno) => write!(f, " ({errno})"),
            None => Ok(()),
        }
    }
}

/// Without what is no text.
fn write_text(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.utf8_chunks().try_for_each(|chunk| f.write_str(chunk.valid()))
}
