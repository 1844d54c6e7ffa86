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
mod warnings;
mod writing;

pub use control_dir::remove_all_abandoned as remove_abandoned;
pub use interrupt::is_ignored;
pub use judge::environment::Environment as BootEnvironment;
pub use judge::findings::Finding;
pub use judge::variables::help as variables_help;
pub use outcome::{FreezeOutcome, Written};
pub use programs::{run_confined, run_traced, run_watched, watch_trial, CONFINED, TRACED, WATCHED};
pub use progress::{ProgramOutput, Progress, Step};
pub use request::{Changing, Cpu, FreezeRequest, InStore, Mark, Training};
pub use writing::Readers;

/// Boots the program and writes its image.
///
/// From this call on, signals that would end the process (SIGALRM, SIGHUP, SIGINT, SIGTERM) end the freeze instead, for
/// the rest of this process.
pub fn freeze(request: &FreezeRequest, progress: &dyn Progress) -> FreezeOutcome {
    pipeline::freeze(request, progress).into()
}
