//! The engine of `snapboot freeze`: boots a program and writes its image.
//!
//! [`freeze`] takes a [`FreezeRequest`] and a [`Progress`] to report to, and returns a [`FreezeOutcome`]. It prints
//! nothing and parses no arguments. The modules are its steps: [`output`] (where the image goes),
//! [`judge::environment`] (what the boot sees), [`cpu`] (for which CPUs), [`control_dir`] (where the image is made),
//! [`boot`] (the runtime with the freezer inside, under the recorder: [`watched`]), [`session`] (which boots are
//! needed), [`report`] (their results), [`judge::reads`] and [`boot_inputs`] (what they read, and an image depends on),
//! [`assemble`] (the image), [`rehearse`], [`trained_pages`] and [`page_order`] (which of its pages come first) and
//! [`first_start`].
#![forbid(unsafe_code)]

mod application;
mod arch;
mod assemble;
mod attributes;
mod boot;
mod boot_inputs;
mod confined;
mod control_dir;
mod cpu;
mod dump;
mod elsewhere;
mod fault;
mod first_start;
mod installed;
mod interrupt;
mod kernel_files;
mod lacks;
mod last_look;
mod late_plugins;
mod leftovers;
mod outcome;
mod output;
mod page_order;
mod permissions;
mod progress;
mod rehearse;
mod report;
mod request;
mod session;
mod start_reports;

mod traces;
mod trained_pages;
mod training;
mod watched;

pub use confined::{run as run_confined, SUBCOMMAND as CONFINED};
pub use control_dir::remove_all_abandoned as remove_abandoned;
pub use interrupt::is_ignored;
pub use judge::environment::Environment as BootEnvironment;
pub use judge::findings::Finding;
pub use judge::variables::help as variables_help;
pub use last_look::{run as run_traced, SUBCOMMAND as TRACED};
pub use outcome::{FreezeOutcome, Written};
pub use permissions::Readers;
pub use progress::{ProgramOutput, Progress, Step};
pub use request::{Changing, Cpu, FreezeRequest, InStore, Training};
pub use watched::{run as run_watched, trial as watch_trial, SUBCOMMAND as WATCHED};

/// Boots the program and writes its image.
///
/// From this call on, signals that would end the process (SIGALRM, SIGHUP, SIGINT, SIGTERM) end the freeze instead, for
/// the rest of this process.
pub fn freeze(request: &FreezeRequest, progress: &dyn Progress) -> FreezeOutcome {
    session::freeze(request, progress).into()
}
