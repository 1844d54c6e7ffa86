//! Subcommands that nobody types: Snapboot and its Makefile start them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// What `snapboot freeze` starts to see what a program does at its end: executes PROGRAM in a process that can do nothing to anybody
/// else.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct Confined {
    /// What to execute, without arguments.
    pub program: PathBuf,
}

/// What `snapboot freeze` starts: becomes the runtime once it is being watched.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct Watched {
    /// The control directory of the freeze; none where `snapboot check` tries whether anything can be watched.
    pub dir: Option<PathBuf>,
}

/// What `snapboot freeze` starts for a training run from the new image: becomes the image once it is being traced.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct Traced {
    /// What to execute, with its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

/// What tools/reference.py starts: writes the reference of commands, a file for each.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct Reference {
    /// Where to write them.
    pub directory: PathBuf,
}

/// What `make install` starts: writes the manual pages.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct Manual {
    /// Where to write them.
    pub directory: PathBuf,
}

/// What tests and tools start: prints tables of the program as JSON.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct Tables {}
