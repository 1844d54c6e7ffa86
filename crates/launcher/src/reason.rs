//! Why an image is not used, in words for people: how such a reason is put together.
//!
//! The words themselves stand where the comparison is made: arguments, environment and CPU in check.rs; the vdso in vdso.rs; files and directories
//! in files.rs, and in [`Reason::gone`] here; what a directory lists in answers.rs; files that the machine shares in shared_file.rs and
//! inputs/src/lookups.rs; libraries in memory.rs; facts in facts.rs, those of terminals in inputs/src/facts.rs; age and number of
//! thaws in rotation.rs. The front ends add theirs where they call `fall_back`. fallback.rs says the reason.
//!
//! What `snapboot inspect --why` says of the same difference stands in crates/image-file differences.rs. For a damaged image, the words
//! are in crates/image error.rs; for what only a start or `snapboot verify` sees of damage, in memory.rs, restore.rs and crates/cli
//! verify.rs.

use core::fmt;

use linux_raw_sys::errno::EACCES;

use crate::start::without_nul;
use crate::sys::Errno;

/// Why the image is not used.
#[derive(Clone, Copy)]
pub struct Reason {
    text: &'static str,
    subject: &'static [u8],
    was: &'static [u8],
    guard: &'static [u8],
    errno: Option<Errno>,
    image: Option<image::Error>,
    /// Whether a guard matched: the user wants such a start to be an ordinary one, so it is no failure of the image.
    pub is_guarded: bool,
}

/// What an image depends on, by kind.
pub enum Thing {
    Directory,
    File,
    Library,
}

impl Reason {
    /// A reason in words.
    pub const fn new(text: &'static str) -> Reason {
        Reason { text, subject: b"", was: b"", guard: b"", errno: None, image: None, is_guarded: false }
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

    /// What an image depends on cannot be looked at any more.
    pub fn gone(thing: Thing, path: &'static [u8], errno: Errno) -> Reason {
        let [missing, denied] = match thing {
            Thing::Directory => [
                "stale: this directory cannot be found any more",
                "stale: this directory may not be looked into by this user",
            ],
            Thing::File => {
                ["stale: this file cannot be found any more", "stale: this file may not be looked at by this user"]
            }
            Thing::Library => {
                ["stale: this library cannot be opened any more", "stale: this library may not be read by this user"]
            }
        };
        let text = if errno == Errno(EACCES) { denied } else { missing };
        Reason::new(text).subject(without_nul(path)).errno(errno)
    }

    /// Says what it was when the image was made.
    pub fn was(mut self, was: &'static [u8]) -> Reason {
        self.was = was;
        self
    }

    /// Names the guard that has matched.
    pub fn guard(mut self, guard: &'static [u8]) -> Reason {
        self.guard = guard;
        self.is_guarded = true;
        self
    }

    /// Adds what the kernel said.
    pub fn errno(mut self, errno: Errno) -> Reason {
        self.errno = Some(errno);
        self
    }
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
