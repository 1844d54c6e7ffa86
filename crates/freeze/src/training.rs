//! Training runs: ordinary starts of the program, from which a freeze learns what it loads after its beginning.
//!
//! The front end makes such a run (`train.py`, `train.rb`) and reports at its end what was loaded; see
//! docs/internals/protocol.md. The front end of the boot then loads the part that is always the same. Before the image
//! is renamed into place, the same runs are made from it: they must print the same and end the same way.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

use failure::{Failure, Result};
use image::Mapping;
use installation::Installation;
use judge::entries::Entries;
use judge::exceptions;
use runtime::deadline::{self, ProcessOutput};
use runtime::terminal::Terminal;
use runtime::{search_path, Language, Main, Runtime};

use crate::application::Applied;
use crate::installed::is_installed;
use crate::interrupt::Interrupt;
use crate::last_look;
use crate::outcome;
use crate::progress::{Progress, Step};

use crate::rehearse::UsedPages;
use crate::request::Training;
use crate::start_reports::{self, StartReports};
use crate::trained_pages::RunPages;

/// Time limit of a default run, and of one that the user asked for.
const LIMIT: Duration = Duration::from_secs(60);
/// How many ordinary runs must agree before a different result of the image counts as wrong.
const REPEATS: usize = 5;
/// How much of a line is shown (characters).
const MAX_SHOWN: usize = 100;
const LONG_LIMIT: Duration = Duration::from_secs(3600);

/// The results of a program's training runs.
#[derive(Default)]
pub struct Profile {
    /// What was loaded, in order: a module's name and the file that it came from, or a feature's path and the feature
    /// whose loading loaded it, if any.
    pub loaded: Vec<(OsString, OsString)>,
    /// The number of runs that loaded each.
    counts: BTreeMap<OsString, usize>,
    /// The gems that all runs activated first, in order, each with its version.
    pub gems: Vec<(OsString, OsString)>,
    /// Gems that runs or starts activated later, and that may be active earlier: `NAME VERSION`.
    activated: BTreeSet<OsString>,
    /// What all runs of a Ruby script prepended to the load path before they loaded anything.
    pub paths: Vec<OsString>,
    /// Folders that runs or starts of a Ruby program added to the load path at any time.
    searched: BTreeSet<OsString>,
    /// Files that the program loaded, and that are not features.
    ran: BTreeSet<OsString>,
    /// Regular expressions that runs of a Python program compiled, in the format of `patterns.py`.
    patterns: BTreeSet<OsString>,
    /// What the runs of a recipe do once, to be done before the freeze.
    warm_up: Vec<String>,
    /// Names of variables that the program sets in its own environment.
    pub changed: BTreeSet<OsString>,
    /// Whether it is an installed tool that was run with `--version`.
    pub prints_version: bool,
    /// The runs that reported anything.
    runs: Vec<Run>,
    /// Messages about default runs that did not come to an end.
    pub failed: Vec<String>,
    /// What thawed starts reported, and how many of `loaded` come from there: the last ones.
    reports: StartReports,
    report_count: usize,
    /// Neither loaded nor to be reported again.
    known: Vec<OsString>,
}

/// A part that a profile can do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The reports of thawed starts.
    StartReports,
    /// The results of training runs.
    Trained,
}

/// A training run and its result.
struct Run {
    arguments: Vec<OsString>,
    output: ProcessOutput,
}

/// The program to train, and its surroundings.
pub struct Trainer<'a> {
    pub installation: &'a Installation,
    pub runtime: &'a Runtime,
    /// The command that is frozen.
    pub main: &'a Main,
    /// The control directory.
    pub dir: &'a Path,
    pub interrupt: &'a Interrupt,
    pub progress: &'a dyn Progress,
    /// The terminal of the runs.
    pub terminal: Option<&'a Terminal>,
}

impl Trainer<'_> {
    /// Makes all runs, one after the other. A run that fails is reported to the user if the user asked for it. `recipe`
    /// is that of a framework, with its runs; `reports` is the file with the reports of thawed starts.
    pub fn train(&self, training: &Training, recipe: &Applied, reports: Option<&Path>) -> outcome::Result<Profile> {
        let mut profile = self.run_all(training, recipe)?;
        if let Some(reports) = reports {
            profile.add_reports(StartReports::read(reports, start_reports::script_behind_links(self.main)));
        }
        Ok(profile)
    }

    fn run_all(&self, training: &Training, recipe: &Applied) -> outcome::Result<Profile> {
        // A recipe's training says more than that it has these options.
        let is_tool = matches!(training, Training::Default) && recipe.training.is_empty() && is_installed(self.main);
        let (runs, limit) = match training {
            Training::None => return Ok(Profile::default()),
            Training::Runs(runs) => (runs.clone(), LONG_LIMIT),
            Training::Default if is_tool => (["--version", "--help"].map(|option| vec![option.into()]).to_vec(), LIMIT),
            Training::Default => (recipe.training.clone(), LIMIT),
        };
        let warm_up = if runs == recipe.training { recipe.warm_up.clone() } else { Vec::new() };
        let mut profile = Profile { prints_version: is_tool, warm_up, ..Profile::default() };
        for (number, arguments) in runs.iter().enumerate() {
            self.progress.step(&Step::Train { number: number as u32 + 1, count: runs.len() as u32 });
            let ended = self.run(arguments, limit)?;
            self.interrupt.check()?;
            let file = self.dir.join("training/profile");
            let learnt = file.exists().then(|| Entries::read(&file).ok()).flatten();
            let _ = fs::remove_file(&file);
            match (ended, learnt) {
                (Some(output), Some(learnt)) => profile.add(arguments, output, &learnt),
                (ended, _) if matches!(training, Training::Runs(_)) => {
                    self.progress.message(&failed(arguments, ended, limit));
                }
                // Another time it may end.
                (ended, _) if ended.as_ref().is_none_or(|output| output.status.code().is_none()) => {
                    profile.failed.push(failed(arguments, ended, limit));
                }
                _ => {}
            }
        }
        Ok(profile)
    }

    /// Makes the run; None if it exceeded the time limit.
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
        deadline::run_watched(&mut command, limit, Some(self.interrupt.wake()), None, self.terminal)
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

fn failed(arguments: &[OsString], ended: Option<ProcessOutput>, limit: Duration) -> String {
    let how = match ended {
        None => format!("it did not end in {} minutes", limit.as_secs() / 60),
        Some(output) => format!("it ended without its exit handlers ({})", output.status),
    };
    format!("nothing was learnt from the training run {:?}: {how}", joined(arguments))
}

/// The last line that is not blank.
fn last_line(output: &[u8]) -> Option<String> {
    String::from_utf8_lossy(output).lines().rfind(|line| !line.trim().is_empty()).map(cut)
}

/// As much of a line as fits into a message.
fn cut(line: &str) -> String {
    line.trim().chars().take(MAX_SHOWN).collect()
}

fn line(text: Option<String>) -> String {
    text.map_or_else(|| "nothing".to_owned(), |text| format!("{text:?}"))
}

/// Arguments as one text.
fn joined(arguments: &[OsString]) -> String {
    arguments.join(OsStr::new(" ")).to_string_lossy().into_owned()
}

impl Profile {
    /// Whether there is nothing to load.
    pub fn is_empty(&self) -> bool {
        self.loaded.is_empty() && self.patterns.is_empty() && self.warm_up.is_empty()
    }

    /// The folders of these modules' or features' files, with the number in each.
    pub fn folders_of(&self, names: &[String]) -> BTreeMap<PathBuf, usize> {
        let names: BTreeSet<&OsStr> = names.iter().map(OsStr::new).collect();
        let mut folders = BTreeMap::new();
        for (_, file) in self.loaded.iter().filter(|(name, _)| names.contains(name.as_os_str())) {
            if let Some(folder) = Path::new(file).parent().filter(|folder| folder.is_absolute()) {
                *folders.entry(folder.to_owned()).or_default() += 1;
            }
        }
        folders
    }

    /// Adds the report of a run.
    fn add(&mut self, arguments: &[OsString], output: ProcessOutput, learnt: &Entries) {
        for (name, file) in learnt.pairs("module") {
            *self.counts.entry(name.clone()).or_default() += 1;
            if self.counts[&name] == 1 {
                self.loaded.push((name, file));
            }
        }
        let gems: Vec<_> = learnt.pairs("gem").collect();
        let paths: Vec<OsString> = learnt.all("path").map(OsStr::to_owned).collect();
        if self.runs.is_empty() {
            (self.gems, self.paths) = (gems, paths);
        } else {
            self.gems.truncate(self.gems.iter().zip(&gems).take_while(|(known, gem)| known == gem).count());
            self.paths.retain(|path| paths.contains(path));
        }
        self.patterns.extend(learnt.all("pattern").map(OsStr::to_owned));
        self.changed.extend(learnt.all("changed").map(OsStr::to_owned));
        self.searched.extend(learnt.all("searched").map(OsStr::to_owned));
        self.ran.extend(learnt.all("ran").map(OsStr::to_owned));
        self.activated.extend(learnt.all("activated").map(OsStr::to_owned));
        self.runs.push(Run { arguments: arguments.to_vec(), output });
    }

    /// Adds the reports of thawed starts. Only some starts may have loaded these.
    fn add_reports(&mut self, reports: StartReports) {
        let new = |(name, _): &&(OsString, OsString)| !self.counts.contains_key(name);
        let new: Vec<_> = reports.loaded.iter().filter(new).cloned().collect();
        self.report_count = new.len();
        self.loaded.extend(new);
        self.changed.extend(reports.changed.iter().cloned());
        self.searched.extend(reports.searched.iter().cloned());
        self.ran.extend(reports.ran.iter().cloned());
        self.known.extend(reports.useless.iter().cloned());
        self.activated.extend(reports.activated.iter().cloned());
        self.reports = reports;
    }

    /// Takes out a part with which no image could be made: the reports of starts or, if there are none, everything.
    /// Returns which.
    pub fn take_out(&mut self) -> Part {
        let (part, from) = match self.report_count {
            0 => {
                self.patterns.clear();
                self.warm_up.clear();
                (Part::Trained, 0)
            }
            count => (Part::StartReports, self.loaded.len() - count),
        };
        self.report_count = 0;
        self.known.extend(self.loaded.drain(from..).map(|(name, _)| name));
        part
    }

    /// Records that no image could be made with the reports of starts.
    pub fn give_up_reports(&mut self) {
        self.reports.give_up();
    }

    /// Adds the profile to the request to a boot's front end, and the reads that keep nothing of a start.
    pub fn add_to(&self, request: &mut Entries, language: Language) {
        self.known.iter().for_each(|name| request.push("known", name));
        if self.is_empty() {
            return;
        }
        for (reader, what) in exceptions::harmless(language) {
            request.push_record("harmless", &[reader, what].map(OsStr::new));
        }
        for (name, file) in &self.loaded {
            request.push_record("learnt", &[name, file]);
        }
        let always = self.counts.iter().filter(|(_, count)| **count == self.runs.len() && !self.runs.is_empty());
        always.for_each(|(name, _)| request.push("always", name));
        for (name, version) in &self.gems {
            request.push_record("gem", &[name, version]);
        }
        self.activated.iter().for_each(|gem| request.push("activated", gem));
        self.paths.iter().for_each(|path| request.push("load_path", path));
        self.searched.iter().for_each(|path| request.push("searched", path));
        self.ran.iter().for_each(|path| request.push("ran", path));
        self.patterns.iter().for_each(|pattern| request.push("pattern", pattern));
        self.warm_up.iter().for_each(|name| request.push("warm_up", name));
        self.changed.iter().for_each(|name| request.push("changed", name));
    }

    /// Makes the runs again from the image, and returns the pages that each used; `mappings` are those of the image.
    /// Compares output and exit status, if anything was loaded early because of the runs.
    ///
    /// Fails with the first difference to runs that are the same each time they are made the ordinary way.
    pub fn run_from(
        &self,
        image: &Path,
        mappings: &[Mapping],
        trainer: &Trainer<'_>,
    ) -> std::result::Result<Vec<RunPages>, String> {
        let mut all = Vec::new();
        for run in &self.runs {
            trainer.progress.step(&Step::Compare);
            let (thawed, used) = run.thaw(image, mappings, trainer);
            if !self.is_empty() && run.differs(thawed.as_ref(), trainer) {
                return Err(run.difference(thawed.as_ref()));
            }
            let argument = run.arguments.first().cloned().unwrap_or_default();
            all.extend(used.map(|used| RunPages { argument, written: used.written }));
        }
        Ok(all)
    }

    /// Whether there is any run.
    pub fn has_runs(&self) -> bool {
        !self.runs.is_empty()
    }
}

impl Run {
    /// Makes the run from the image. Returns its output, if it ended in time, and the pages that it used, if it thawed.
    fn thaw(
        &self,
        image: &Path,
        mappings: &[Mapping],
        trainer: &Trainer<'_>,
    ) -> (Option<ProcessOutput>, Option<UsedPages>) {
        let Ok(mut command) = last_look::command(image) else { return (None, None) };
        // It would only take time: the pages were written a moment ago.
        command.args(&self.arguments).env_remove("SNAPBOOT_VERIFY");
        let mut used = None;
        let mut look = last_look::at_end(|child: &Child| {
            let is_thawed = fs::read_link(format!("/proc/{}/exe", child.id())).is_ok_and(|path| path == image);
            used = UsedPages::read(child, mappings).ok().filter(|_| is_thawed);
        });
        let wake = Some(trainer.interrupt.wake());
        let thawed = deadline::run_watched(&mut command, LONG_LIMIT, wake, Some(&mut look), trainer.terminal);
        drop(look);
        (thawed.ok().flatten(), used)
    }

    fn differs(&self, thawed: Option<&ProcessOutput>, trainer: &Trainer<'_>) -> bool {
        let Some(thawed) = thawed else { return trainer.interrupt.signal().is_none() };
        if self.is_same(thawed) {
            return false;
        }
        // Output whose order varies between ordinary runs proves nothing: a few of them may have the order of a set
        // alike by chance.
        (0..REPEATS)
            .all(|_| matches!(trainer.run(&self.arguments, LONG_LIMIT), Ok(Some(again)) if self.is_same(&again)))
    }

    /// How the run from the image differed.
    fn difference(&self, thawed: Option<&ProcessOutput>) -> String {
        let what = match thawed {
            None => "did not end".to_owned(),
            Some(thawed) if thawed.status != self.output.status => {
                let last = last_line(&thawed.stderr).or_else(|| last_line(&thawed.stdout));
                let said = last.map_or(String::new(), |line| format!(", saying {line:?}"));
                format!("ended with {} in the place of {}{said}", thawed.status, self.output.status)
            }
            Some(thawed) => {
                let [own, its] = [&self.output.stdout, &thawed.stdout].map(|text| String::from_utf8_lossy(text));
                let number = own.lines().zip(its.lines()).take_while(|(own, its)| own == its).count();
                let [own, its] = [own, its].map(|text| text.lines().nth(number).map(cut));
                format!("printed {} where an ordinary start prints {}", line(its), line(own))
            }
        };
        format!("started from the image, {:?} {what}", joined(&self.arguments))
    }

    fn is_same(&self, other: &ProcessOutput) -> bool {
        (self.output.status, &self.output.stdout) == (other.status, &other.stdout)
    }
}
