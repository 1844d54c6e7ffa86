//! The fallback: run the original command the ordinary way.
//!
//! Nothing is said unless `SNAPBOOT_LOG` asks for it. When the fallback is impossible too, the message says why, and the exit
//! status is 125 (the launcher's own failure), 126 (the command cannot be executed) or 127 (it is not there).
#![allow(unsafe_code)]

use core::fmt::{self, Write};

use image::{Head, Record};
use inputs::environment;
use inputs::on_stale::{self, OnStale};
use linux_raw_sys::errno::{EACCES, ENOENT};

use crate::block::{Block, Rehearsal};
use crate::opened::Opened;
use crate::start::without_nul;
use crate::starts;
use crate::sys::{self, Errno};
use crate::text::Text;

/// Exit status when the launcher itself fails.
pub const OWN_FAILURE: u32 = 125;

/// Why the image is not used.
#[derive(Clone, Copy)]
pub struct Reason {
    text: &'static str,
    subject: &'static [u8],
    was: &'static [u8],
    guard: &'static [u8],
    errno: Option<Errno>,
    image: Option<image::Error>,
    is_wanted: bool,
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
        Reason { text, subject: b"", was: b"", guard: b"", errno: None, image: None, is_wanted: false }
    }

    /// The image itself is not as it should be.
    pub fn image(error: image::Error) -> Reason {
        Reason { image: Some(error), ..Reason::new("") }
    }

    /// The image itself says that this start is to be an ordinary one.
    pub fn wanted(mut self) -> Reason {
        self.is_wanted = true;
        self
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

/// Executes the original command with the arguments and the environment that the image was given.
pub fn run(opened: &Opened, block: &Block, reason: &Reason) -> ! {
    match block.rehearsal() {
        Some(Rehearsal::Check) => fail(format_args!("{reason}")),
        Some(Rehearsal::Thaw) => fail(format_args!("the rehearsal of a new image failed: {reason}")),
        None => {}
    }
    if !reason.is_wanted {
        starts::count_fallback(Head::decode(opened.room).tables_sum, block, reason);
    }
    let on_stale = OnStale::of(environment::value_of(on_stale::NAME.as_bytes(), block.environment()));
    if on_stale == OnStale::Error && !reason.is_wanted {
        fail(format_args!("cannot use the image: {reason} (an error, since SNAPBOOT_ON_STALE=error)"));
    }
    if block.asks_for(b"SNAPBOOT_LOG") {
        if let OnStale::Unknown(value) = on_stale {
            let value = core::str::from_utf8(value).unwrap_or("(no text)");
            log(format_args!("{}={value} should be fallback or error; taking it for fallback", on_stale::NAME));
        }
        log(format_args!("{reason}; starting the ordinary way"));
    }
    let program = opened.command.program();
    // SAFETY: the block holds null-terminated lists of NUL-terminated strings; the program ends with a NUL.
    let errno = unsafe { sys::execute(program.as_ptr(), block.argv_pointers(), block.environment_pointers()) };
    let program = core::str::from_utf8(without_nul(program)).unwrap_or("the original command");
    log(format_args!("cannot use the image: {reason}; and cannot execute {program} instead ({errno})"));
    sys::exit(if errno == Errno(ENOENT) { 127 } else { 126 })
}

/// Ends the process with a message: neither thaw nor fallback is possible.
pub fn fail(message: fmt::Arguments<'_>) -> ! {
    log(message);
    sys::exit(OWN_FAILURE)
}

fn log(message: fmt::Arguments<'_>) {
    let mut line = Text::<1024>::new();
    let _ = writeln!(line, "snapboot: {message}");
    sys::write_stderr(line.bytes());
}
