//! Reports the progress of a freeze.

use std::io;
use std::path::Path;
use std::process::Stdio;

use runtime::listener::Listener;

/// Receives reports about a freeze.
pub trait Progress {
    /// The freeze begins this step.
    fn step(&self, step: &Step<'_>);
    /// A message that the user should see at once.
    fn message(&self, message: &str);
    /// Where the output of the booting program goes.
    fn program_output(&self) -> io::Result<ProgramOutput>;
    /// A file that a boot has read, whatever the result of the boot is.
    fn has_read(&self, file: &Path) {
        let _ = file;
    }
}

/// A step of a freeze.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Runs a probe to identify the interpreter.
    Probe(&'a Path),
    /// Makes a training run.
    Train {
        /// The number of the run, from 1.
        number: u32,
        /// The number of runs.
        count: u32,
    },
    /// Makes the training runs from the new image, and compares.
    Compare,
    /// Boots the program.
    Boot {
        /// Name and version of the runtime.
        runtime: &'a str,
        /// The number of the boot, from 1.
        number: u32,
        /// The number of boots.
        count: u32,
    },
    /// The freezer writes the memory: the file has this many bytes.
    Dump(u64),
    /// Compares the inputs and writes the tables.
    Inputs,
    /// Boots again, to find out whether every start creates files of its own.
    BootForFiles,
    /// Boots again, to find out where in the program something comes from.
    BootForOrigins,
    /// Boots again as another start, to compare the results.
    BootAsOtherStart,
    /// Boots again with other secrets, to compare the results.
    BootForSecrets,
}

/// The destination of a program's output in one boot.
pub struct ProgramOutput {
    /// Its standard output.
    pub stdout: Stdio,
    /// Its standard error.
    pub stderr: Stdio,
    /// Waits until all output was shown; returns whether there was any. Called after the program has ended and both
    /// ends are closed here.
    pub finish: Box<dyn FnOnce() -> bool>,
}

impl ProgramOutput {
    /// Discards the output.
    pub fn none() -> Self {
        ProgramOutput { stdout: Stdio::null(), stderr: Stdio::null(), finish: Box::new(|| false) }
    }

    /// Discards the output, but detects whether there was any.
    pub(crate) fn detecting() -> io::Result<Self> {
        let (listener, pipe) = Listener::on_pipe()?;
        let stdout = pipe.try_clone()?.into();
        Ok(ProgramOutput { stdout, stderr: pipe.into(), finish: Box::new(|| listener.has_heard()) })
    }
}
