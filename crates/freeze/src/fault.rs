//! Named points where the command kills itself, so that tests can see what an interrupted freeze leaves behind.
//!
//! `SNAPBOOT_FAULT=NAME snapboot freeze ...` ends with SIGKILL at the point of that name, or with the signal in
//! `SNAPBOOT_FAULT_SIGNAL`. The names are those of [`Point`] in words: `after-control-dir` and so on. The freezer has
//! its own fault points, whose names begin with `freezer-`; it reads the name from a file, since the front end removes
//! Snapboot's variables from the environment.

use std::ffi::OsString;

use signal_hook::consts::SIGKILL;
use signal_hook::low_level;

/// A point where a freeze can be killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The control directory exists and is locked; it is empty.
    AfterControlDir,
    /// The request and the launcher's bytes are in the control directory; the runtime has not started.
    AfterRequest,
    /// The freezer wrote the memory; the command has added nothing.
    AfterDump,
    /// All tables are written; the head is not.
    BeforeHead,
    /// The head is written except for its first byte.
    BeforeMagic,
    /// The image to rehearse is complete and on the disk.
    BeforeRehearsal,
    /// The final file contains the launcher, and no page yet.
    BeforePages,
    /// The final file is complete; it may not be on the disk.
    BeforeSync,
    /// It is on the disk, under its temporary name.
    BeforeRename,
    /// It has its final name, which may not be on the disk.
    BeforeDirectorySync,
    /// The name is on the disk as well; the control directory still exists.
    AfterRename,
}

impl Point {
    /// The name for `SNAPBOOT_FAULT`.
    fn name(self) -> &'static str {
        match self {
            Point::AfterControlDir => "after-control-dir",
            Point::AfterRequest => "after-request",
            Point::AfterDump => "after-dump",
            Point::BeforeHead => "before-head",
            Point::BeforeMagic => "before-magic",
            Point::BeforeRehearsal => "before-rehearsal",
            Point::BeforePages => "before-pages",
            Point::BeforeSync => "before-sync",
            Point::BeforeRename => "before-rename",
            Point::BeforeDirectorySync => "before-directory-sync",
            Point::AfterRename => "after-rename",
        }
    }

    /// Sends this process SIGKILL or another signal, if `SNAPBOOT_FAULT` names this point.
    pub fn reached(self) {
        if wanted().is_some_and(|wanted| wanted == self.name()) {
            let signal = std::env::var("SNAPBOOT_FAULT_SIGNAL").ok().and_then(|number| number.parse().ok());
            // A signal to oneself cannot fail.
            let _ = low_level::raise(signal.unwrap_or(SIGKILL));
        }
    }
}

/// The name for the freezer in the control directory's file `fault`, if any.
pub fn for_freezer() -> Option<OsString> {
    wanted().filter(|name| name.as_encoded_bytes().starts_with(b"freezer-"))
}

fn wanted() -> Option<OsString> {
    std::env::var_os("SNAPBOOT_FAULT")
}
