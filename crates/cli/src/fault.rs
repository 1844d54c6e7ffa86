//! Named places where the command kills itself, so that tests can see what an interrupted freeze leaves behind.
//!
//! `SNAPBOOT_FAULT=NAME snapboot freeze ...` ends with SIGKILL at the place of that name. The names are those of
//! [`Point`], in words: `after-control-dir` and so on.

use rustix::process::{getpid, kill_process, Signal};

/// A place where a freeze can be cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The control directory exists and is locked; it is empty.
    AfterControlDir,
    /// The plan and the launcher's bytes are in the control directory; the runtime was not started.
    AfterPlan,
    /// The freezer wrote the memory; the command has added nothing.
    AfterDump,
    /// All tables are written; the head is not.
    BeforeHead,
    /// The image is complete, under its temporary name.
    BeforeRename,
    /// The image has its final name; the control directory still exists.
    AfterRename,
}

impl Point {
    /// The name to put into `SNAPBOOT_FAULT`.
    fn name(self) -> &'static str {
        match self {
            Point::AfterControlDir => "after-control-dir",
            Point::AfterPlan => "after-plan",
            Point::AfterDump => "after-dump",
            Point::BeforeHead => "before-head",
            Point::BeforeRename => "before-rename",
            Point::AfterRename => "after-rename",
        }
    }

    /// Ends the process with SIGKILL when `SNAPBOOT_FAULT` names this place.
    pub fn reached(self) {
        if std::env::var_os("SNAPBOOT_FAULT").is_some_and(|wanted| wanted == self.name()) {
            // SIGKILL to oneself cannot fail, and nothing can be done if it did.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    }
}
