//! The engine of `snapboot freeze`: boots a program and writes its image.
//!
//! [`freeze`] takes a [`FreezeRequest`] and a [`Progress`] to report to, and returns a [`FreezeOutcome`]. It prints
//! nothing and parses no arguments. [`pipeline`] has the steps in their order. [`programs`] runs the boots and all other
//! programs, [`boot_inputs`] decides what the image depends on, and [`writing`] writes it; the latter two use nothing of
//! the first, and run nothing.
#![forbid(unsafe_code)]

mod application;
mod arch;
mod boot;
mod boot_inputs;
mod control_dir;
mod fault;
mod info;
mod interrupt;
mod lacks;
mod late_plugins;
mod outcome;
mod output;
mod own_files;
mod pipeline;
mod profile;
mod program;
mod programs;
mod progress;
mod request;
mod start_reports;
mod target;
mod warnings;
mod writing;

pub use control_dir::{remove_all_abandoned as remove_abandoned, ControlDir};
pub use interrupt::is_ignored;
pub use judge::environment::Environment as BootEnvironment;
pub use judge::findings::Finding;
pub use judge::variables::help as variables_help;
pub use outcome::{FreezeOutcome, Written};
pub use own_files::OwnFiles;
pub use programs::{new_hash_seed, run_confined, run_traced, run_watched, watch_trial, CONFINED, TRACED, WATCHED};
pub use progress::{ProgramOutput, Progress, Step};
pub use request::{Changing, Content, Cpu, FreezeRequest, InStore, Mark, Training};
pub use target::Target;
pub use writing::Readers;

use std::ffi::OsString;

use installation::Installation;
use runtime::{Language, Main};

/// Whether a command (at least one word) starts a program of the user's own, whose libraries can have an image of their
/// own: see [`Content`].
pub fn is_own_program(command: &[OsString], installation: &Installation) -> bool {
    let search_path = runtime::search_path();
    let Ok(resolved) = runtime::resolve(command, &search_path) else { return false };
    let language = if runtime::is_ruby(&resolved.program) { Language::Ruby } else { Language::Python };
    let main = Main::split(language, resolved.argv, &search_path);
    main.is_ok_and(|main| OwnFiles::new(installation.own_files()).contains_program(&main))
}

/// Boots the program and writes its image.
///
/// From this call on, signals that would end the process (SIGALRM, SIGHUP, SIGINT, SIGTERM) end the freeze instead, for
/// the rest of this process.
pub fn freeze(request: &FreezeRequest, progress: &dyn Progress) -> FreezeOutcome {
    pipeline::freeze(request, progress).into()
}
