//! What a freeze tells while it goes on.

use std::io;
use std::path::Path;
use std::process::Stdio;

use runtime::listener::Listener;

/// Who is told what a freeze does.
pub trait Progress {
    /// What it does from now on.
    fn step(&self, step: &Step<'_>);
    /// Something that the user should know at once.
    fn note(&self, note: &str);
    /// Where the output of the booting program goes.
    fn program_output(&self) -> io::Result<ProgramOutput>;
    /// A file that a boot has read, whatever comes of the boot.
    fn has_read(&self, file: &Path) {
        let _ = file;
    }
}

/// What a freeze is doing.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Runs a probe to identify the interpreter.
    Probe(&'a Path),
    /// Makes a training run.
    Train {
        /// Which one of how many, from 1.
        number: u32,
        /// See `number`.
        count: u32,
    },
    /// Starts the new image as in the training runs, and compares.
    Compare,
    /// Boots the program.
    Boot {
        /// Name and version of the runtime.
        runtime: &'a str,
        /// Which boot of how many, from 1.
        number: u32,
        /// See `number`.
        count: u32,
    },
    /// The freezer writes the memory: so many bytes are in the file.
    Dump(u64),
    /// Compares the inputs and writes the tables.
    Inputs,
    /// Boots again, to see whether every start makes files of its own.
    BootForFiles,
    /// Boots again, to see where in the program something comes from.
    BootForOrigins,
    /// Boots again as another start, to see what comes of it.
    BootAsOtherStart,
    /// Boots again with other secrets, to see what comes of them.
    BootForSecrets,
}

/// Where a program's output goes, for one boot.
pub struct ProgramOutput {
    /// Its standard output.
    pub stdout: Stdio,
    /// Its standard error.
    pub stderr: Stdio,
    /// Waits until all of it was shown. Called once the program has ended and nobody here holds the two. Returns whether there was any.
    pub finish: Box<dyn FnOnce() -> bool>,
}

impl ProgramOutput {
    /// Nobody sees it.
    pub fn none() -> Self {
        ProgramOutput { stdout: Stdio::null(), stderr: Stdio::null(), finish: Box::new(|| false) }
    }

    /// Nobody sees it, but whether there was any is noticed.
    pub(crate) fn heard() -> io::Result<Self> {
        let (listener, pipe) = Listener::on_pipe()?;
        let stdout = pipe.try_clone()?.into();
        Ok(ProgramOutput { stdout, stderr: pipe.into(), finish: Box::new(|| listener.has_heard()) })
    }
}
