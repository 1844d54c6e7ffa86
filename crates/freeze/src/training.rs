//! Training runs: ordinary starts of the program, from which a freeze learns what it loads later than at its beginning.
//!
//! Such a run is started by the front end (`train.py`, `train.rb`), which tells at its end what was loaded; see
//! docs/internals/protocol.md. The front end of the boot then loads of it what is the same at any time. Before the image gets its name,
//! the same runs are made from it: they must print the same and end the same way.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use failure::{Failure, Result};
use installation::Installation;
use runtime::deadline::{self, ProcessOutput};
use runtime::{search_path, Language, Main, Runtime};

use crate::entries::Entries;
use crate::exceptions;
use crate::installed::is_installed;
use crate::interrupt::Interrupt;
use crate::outcome;
use crate::progress::{Progress, Step};
use crate::request::Training;

/// How long a run may take that nobody has asked for, and one that somebody has.
const LIMIT: Duration = Duration::from_secs(60);
const LONG_LIMIT: Duration = Duration::from_secs(3600);

/// What the training runs of a program have shown.
#[derive(Default)]
pub struct Profile {
    /// What was loaded, in the order of that: a module's name and the file that it came from, or a feature's path and the feature whose
    /// loading has loaded it, if any.
    pub loaded: Vec<(OsString, OsString)>,
    /// In how many runs each was.
    counts: BTreeMap<OsString, usize>,
    /// Gems that all runs activated first, each with its version, in that order.
    pub gems: Vec<(OsString, OsString)>,
    /// What all runs of a Ruby script put in front of the load path before they loaded anything.
    pub paths: Vec<OsString>,
    /// Names of variables that the program sets in its own environment.
    pub changed: BTreeSet<OsString>,
    /// The runs that told anything.
    runs: Vec<Run>,
}

/// One training run, and what came of it.
struct Run {
    arguments: Vec<OsString>,
    output: ProcessOutput,
}

/// What is trained, and where.
pub struct Trainer<'a> {
    pub installation: &'a Installation,
    pub runtime: &'a Runtime,
    /// The command as it is frozen.
    pub main: &'a Main,
    /// The control directory.
    pub dir: &'a Path,
    pub interrupt: &'a Interrupt,
    pub progress: &'a dyn Progress,
}

impl Trainer<'_> {
    /// Makes all runs, one after the other. A run from which nothing could be learnt is told to the user if it was asked for.
    /// `told`: the file in which thawed starts have told what else they load.
    pub fn train(&self, training: &Training, told: Option<&Path>) -> outcome::Result<Profile> {
        let mut profile = self.run_all(training)?;
        if let Some(told) = told.filter(|told| told.exists()).and_then(|told| Entries::read(told).ok()) {
            profile.add_told(&told);
        }
        Ok(profile)
    }

    /// Whether there are runs to make.
    pub fn makes_runs(&self, training: &Training) -> bool {
        match training {
            Training::None => false,
            Training::Runs(runs) => !runs.is_empty(),
            Training::Default => is_installed(self.main),
        }
    }

    fn run_all(&self, training: &Training) -> outcome::Result<Profile> {
        let (runs, limit) = match training {
            Training::None => return Ok(Profile::default()),
            Training::Runs(runs) => (runs.clone(), LONG_LIMIT),
            Training::Default if !is_installed(self.main) => return Ok(Profile::default()),
            Training::Default => (["--version", "--help"].map(|option| vec![OsString::from(option)]).to_vec(), LIMIT),
        };
        let mut profile = Profile::default();
        for (number, arguments) in runs.iter().enumerate() {
            self.progress.step(&Step::Train { number: number as u32 + 1, count: runs.len() as u32 });
            let ended = self.run(arguments, limit)?;
            self.interrupt.check()?;
            let file = self.dir.join("training/profile");
            let learnt = file.exists().then(|| Entries::read(&file).ok()).flatten();
            let _ = fs::remove_file(&file);
            match (ended, learnt) {
                (Some(output), Some(learnt)) => profile.add(arguments, output, &learnt),
                (ended, _) if matches!(training, Training::Runs(_)) => self.progress.note(&failed(arguments, ended)),
                _ => {}
            }
        }
        Ok(profile)
    }

    /// None when it took too long.
    fn run(&self, arguments: &[OsString], limit: Duration) -> Result<Option<ProcessOutput>> {
        let folder = self.dir.join("training");
        let argv: Vec<OsString> = self.main.argv.iter().chain(arguments).cloned().collect();
        let main = Main::split(self.runtime.language, argv, &search_path())?;
        let file = folder.join("request");
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&file, Entries::of_main(&main).to_bytes()))
            .map_err(|error| Failure::io("write", &file, &error))?;
        let mut command = self.command(&main)?;
        command.env("SNAPBOOT_FREEZE_DIR", &folder);
        deadline::run_until(&mut command, limit, Some(self.interrupt.wake()))
            .map_err(|error| Failure::io("start", &self.runtime.program, &error))
    }

    fn command(&self, main: &Main) -> Result<Command> {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(&self.runtime.program);
        command.arg0(&main.argv[0]).args(main.options());
        match self.runtime.language {
            Language::Python => command.arg(self.installation.python_training()?),
            Language::Ruby => command.arg("-r").arg(self.installation.ruby_training()?).args(&main.argv[main.index..]),
        };
        Ok(command)
    }
}

fn failed(arguments: &[OsString], ended: Option<ProcessOutput>) -> String {
    let how = match ended {
        None => "it did not end in an hour".to_owned(),
        Some(output) => format!("it ended without its exit handlers ({})", output.status),
    };
    format!("nothing was learnt from the training run {:?}: {how}", shown(arguments))
}

/// Arguments as one text.
fn shown(arguments: &[OsString]) -> String {
    arguments.join(OsStr::new(" ")).to_string_lossy().into_owned()
}

impl Profile {
    /// Whether there is nothing to load.
    pub fn is_empty(&self) -> bool {
        self.loaded.is_empty()
    }

    /// Adds what a run has told.
    fn add(&mut self, arguments: &[OsString], output: ProcessOutput, learnt: &Entries) {
        let pairs = |name, value| -> Vec<(OsString, OsString)> {
            learnt.all(name).map(OsStr::to_owned).zip(learnt.all(value).map(OsStr::to_owned)).collect()
        };
        for (name, file) in pairs("module", "file") {
            *self.counts.entry(name.clone()).or_default() += 1;
            if self.counts[&name] == 1 {
                self.loaded.push((name, file));
            }
        }
        let gems = pairs("gem", "version");
        let paths: Vec<OsString> = learnt.all("path").map(OsStr::to_owned).collect();
        if self.runs.is_empty() {
            (self.gems, self.paths) = (gems, paths);
        } else {
            self.gems.truncate(self.gems.iter().zip(&gems).take_while(|(known, gem)| known == gem).count());
            self.paths.retain(|path| paths.contains(path));
        }
        self.changed.extend(learnt.all("changed").map(OsStr::to_owned));
        self.runs.push(Run { arguments: arguments.to_vec(), output });
    }

    /// Adds what thawed starts have told: loaded in some starts, for all that is known.
    fn add_told(&mut self, told: &Entries) {
        let known: BTreeSet<OsString> = self.loaded.iter().map(|(name, _)| name.clone()).collect();
        let mut new = BTreeSet::new();
        for (name, file) in told.all("module").zip(told.all("file")) {
            if !known.contains(name) && new.insert(name) {
                self.loaded.push((name.to_owned(), file.to_owned()));
            }
        }
    }

    /// What the front end of a boot is told of it, and which reads keep nothing of what belongs to a start.
    pub fn add_to(&self, request: &mut Entries) {
        if self.is_empty() {
            return;
        }
        for row in exceptions::PER_START_READS {
            request.push("harmless_reader", row.reader);
            request.push("harmless", row.what);
        }
        for (name, file) in &self.loaded {
            request.push("learnt", name);
            request.push("learnt_from", file);
        }
        let always = self.counts.iter().filter(|(_, count)| **count == self.runs.len() && !self.runs.is_empty());
        always.for_each(|(name, _)| request.push("always", name));
        for (name, version) in &self.gems {
            request.push("gem", name);
            request.push("gem_version", version);
        }
        self.paths.iter().for_each(|path| request.push("load_path", path));
        self.changed.iter().for_each(|name| request.push("changed", name));
    }

    /// Makes the runs again from the image, and compares what they print and how they end. Returns the arguments of the first that is
    /// another one, though it is the same each time that it is made the ordinary way.
    pub fn disproved_by(&self, image: &Path, trainer: &Trainer<'_>) -> Option<String> {
        self.runs.iter().find(|run| run.differs(image, trainer)).map(|run| shown(&run.arguments))
    }
}

impl Run {
    fn differs(&self, image: &Path, trainer: &Trainer<'_>) -> bool {
        let mut command = Command::new(image);
        command.args(&self.arguments);
        let thawed = deadline::run_until(&mut command, LONG_LIMIT, Some(trainer.interrupt.wake()));
        let Ok(Some(thawed)) = thawed else { return trainer.interrupt.signal().is_none() };
        if self.is_same(&thawed) {
            return false;
        }
        // Not the same twice: that says nothing.
        matches!(trainer.run(&self.arguments, LONG_LIMIT), Ok(Some(again)) if self.is_same(&again))
    }

    fn is_same(&self, other: &ProcessOutput) -> bool {
        (self.output.status, &self.output.stdout) == (other.status, &other.stdout)
    }
}
