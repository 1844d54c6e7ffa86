//! The working directory, which an empty entry of `sys.path` stands for.
//!
//! Python asks the kernel for it at each look-up. Here an answer holds for a round, as listings of directories do, and only while no event
//! reports a change of the working directory.

use std::env::current_dir;

use archive::session::Directories;

use crate::audit;

#[derive(Default)]
pub struct Cwd {
    path: String,
    /// The round of the last query; 0: never.
    round: u32,
}

impl Cwd {
    /// Its path; `None` if there is none, or if it is not UTF-8.
    pub fn path(&mut self, directories: &Directories) -> Option<&str> {
        if self.round != directories.round() || audit::may_have_moved() {
            self.round = 0;
            self.path = current_dir().ok()?.into_os_string().into_string().ok()?;
            self.round = directories.round();
        }
        Some(&self.path)
    }
}
