//! A trial freeze: into a folder that is removed afterwards, with a training run with the explained arguments.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use freeze::{Finding, FreezeOutcome, FreezeRequest, ProgramOutput, Step, Training, Written};
use image_file::starts;
use installation::Installation;
use runtime::search_path;

use super::folder;
use crate::human;
use crate::spinner::Spinner;

/// What to freeze of a command line, and how.
pub struct Trial {
    /// The words that are frozen.
    pub command: Vec<OsString>,
    /// The arguments for the image.
    pub arguments: Vec<OsString>,
    /// Whether a training run is possible with these: none can be made of code on the command line.
    is_trained: bool,
    /// Modules to load before the image is written, besides those that the freeze finds.
    preloads: Vec<String>,
    /// Removed with it.
    folder: tempfile::TempDir,
}

/// The outcome.
pub enum Outcome {
    /// There is an image.
    Written(Box<Written>),
    /// There is none, for these reasons.
    Refused(Vec<Obstacle>),
}

/// What stands in the way of a thawed start. In words, a sentence.
pub enum Obstacle {
    /// What a boot has or does.
    Finding(Finding),
    /// The freeze, or a start of its image, failed.
    Failed(Failure),
}

impl Obstacle {
    /// Its place in the program, if that is known.
    pub fn place(&self) -> Option<&str> {
        match self {
            Obstacle::Finding(finding) => finding.opened_by.as_deref(),
            Obstacle::Failed(_) => None,
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Finding(finding) => finding.fmt(f),
            Obstacle::Failed(failure) => failure.fmt(f),
        }
    }
}

impl Trial {
    /// Splits a command line as the store does: a script or a module is frozen without its arguments, any other command as it is.
    pub fn new(words: &[OsString]) -> Result<Trial> {
        let folder =
            tempfile::tempdir().map_err(|error| Failure::io("make a directory in", &std::env::temp_dir(), &error))?;
        let split = store::Command::split(words, &search_path(), None).ok().and_then(|line| line.command);
        let is_trained = split.is_some();
        let arguments = split.map_or(Vec::new(), |(_, arguments)| arguments);
        let command = words[..words.len() - arguments.len()].to_vec();
        Ok(Trial { command, arguments, is_trained, preloads: Vec::new(), folder })
    }

    /// The same trial with these loaded before the image is written.
    pub fn preloading(&self, preloads: Vec<String>) -> Result<Trial> {
        let words: Vec<OsString> = self.command.iter().chain(&self.arguments).cloned().collect();
        let mut trial = Trial::new(&words)?;
        trial.preloads = preloads;
        Ok(trial)
    }

    /// The path of the image.
    pub fn image(&self) -> PathBuf {
        self.folder.path().join("trial.img")
    }

    /// The command line that starts the image.
    pub fn started(&self) -> Vec<OsString> {
        [&[self.image().into_os_string()], self.arguments.as_slice()].concat()
    }

    /// Freezes. An interrupt ends this process.
    pub fn freeze(&self, spinner: &Spinner) -> Result<Outcome> {
        let training = match self.is_trained {
            true => Training::Runs(vec![self.arguments.clone()]),
            false => Training::Default,
        };
        let installation = Installation::find()?;
        let request = FreezeRequest {
            training,
            preloads: self.preloads.clone(),
            ..FreezeRequest::new(self.command.clone(), self.image(), installation)
        };
        match folder::freezing(|| freeze::freeze(&request, &Silent(spinner))) {
            FreezeOutcome::Written(written) => Ok(Outcome::Written(written)),
            FreezeOutcome::Refused(findings) => {
                Ok(Outcome::Refused(findings.into_iter().map(Obstacle::Finding).collect()))
            }
            FreezeOutcome::Failed(failure) => Ok(Outcome::Refused(vec![Obstacle::Failed(failure)])),
            FreezeOutcome::Interrupted(signal) => folder::end(signal),
        }
    }

    /// The command line that freezes it.
    pub fn typed(&self) -> String {
        let train = match self.is_trained {
            true => format!("--train {} ", quoted(&line(&self.arguments))),
            false => String::new(),
        };
        let preload = match self.preloads.is_empty() {
            true => String::new(),
            false => format!("--preload {} ", quoted(&self.preloads.join(","))),
        };
        format!("snapboot freeze {preload}{train}-- {}", line(&self.command))
    }

    /// The command line that starts the image.
    pub fn typed_start(&self, written: &Written) -> Option<String> {
        let image = Path::new(".").join(written.default_path.file_name()?);
        Some(line(&[&[image.into_os_string()], self.arguments.as_slice()].concat()))
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        starts::remove_counts(&self.image());
    }
}

/// Words as a shell reads them.
pub fn line(words: &[OsString]) -> String {
    words.iter().map(|word| quoted(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| human::harmless(word), |quoted| quoted.into_owned())
}

/// Shows the phases, but not the program's output.
struct Silent<'a>(&'a Spinner);

impl freeze::Progress for Silent<'_> {
    fn step(&self, step: &Step<'_>) {
        freeze::Progress::step(self.0, step);
    }

    fn message(&self, _: &str) {}

    fn program_output(&self) -> io::Result<ProgramOutput> {
        Ok(ProgramOutput::none())
    }
}
