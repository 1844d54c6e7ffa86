//! What was learnt about a program before its boot: from training runs, and from reports of thawed starts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use judge::entries::Entries;
use judge::exceptions;
use runtime::deadline::ProcessOutput;
use runtime::Language;

use crate::start_reports::{Names, StartReports};

/// What was learnt about a program.
#[derive(Default)]
pub struct Profile {
    /// What was loaded, in order: a module's name and the file that it came from, or a feature's path and the feature
    /// whose loading loaded it, if any.
    loaded: Vec<(OsString, OsString)>,
    /// The number of runs that loaded each.
    counts: BTreeMap<OsString, usize>,
    /// The gems that all runs activated first, in order, each with its version.
    gems: Vec<(OsString, OsString)>,
    /// What all runs of a Ruby script prepended to the load path before they loaded anything.
    paths: Vec<OsString>,
    /// What runs and starts reported by name.
    names: Names,
    /// Regular expressions that runs of a Python program compiled, in the format of `patterns.py`.
    patterns: BTreeSet<OsString>,
    /// What the runs of a recipe do once, to be done before the freeze.
    warm_up: Vec<String>,
    /// Whether it is an installed tool that was run with `--version`.
    pub prints_version: bool,
    /// The runs that reported anything.
    pub runs: Vec<Run>,
    /// Default runs that did not come to an end.
    pub failed: Vec<FailedRun>,
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

/// In which part of a profile files are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// In all of it.
    OfAll,
    /// In the reports of thawed starts.
    OfReports,
}

/// A training run and its result.
pub struct Run {
    pub arguments: Vec<OsString>,
    pub output: ProcessOutput,
}

/// A training run that reported nothing.
#[derive(Clone)]
pub struct FailedRun {
    pub arguments: Vec<OsString>,
    /// How it ended; None at its time limit.
    pub ended: Option<ExitStatus>,
    pub limit: Duration,
}

impl fmt::Display for FailedRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing was learnt from the training run {:?}: ", joined(&self.arguments).to_string_lossy())?;
        match self.ended {
            None => write!(f, "it did not end in {} minutes", self.limit.as_secs() / 60),
            Some(status) => write!(f, "it ended without its exit handlers ({status})"),
        }
    }
}

/// Arguments as one text.
pub fn joined(arguments: &[OsString]) -> OsString {
    arguments.join(OsStr::new(" "))
}

impl Profile {
    /// The results of these runs with their reports, and of those that failed. `warm_up` is what a recipe's runs do
    /// once. Only some starts may have loaded what `reports` has.
    pub fn new(
        runs: Vec<(Run, Entries)>,
        failed: Vec<FailedRun>,
        prints_version: bool,
        warm_up: Vec<String>,
        reports: StartReports,
    ) -> Profile {
        let mut profile = Profile { failed, prints_version, warm_up, ..Profile::default() };
        runs.into_iter().for_each(|(run, learnt)| profile.add(run, &learnt));
        let new = |(name, _): &&(OsString, OsString)| !profile.counts.contains_key(name);
        let new: Vec<_> = reports.loaded.iter().filter(new).cloned().collect();
        profile.report_count = new.len();
        profile.loaded.extend(new);
        profile.names.extend(&reports.names);
        profile.known.extend(reports.useless.iter().cloned());
        Profile { reports, ..profile }
    }

    fn add(&mut self, run: Run, learnt: &Entries) {
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
        learnt.iter().for_each(|(key, value)| self.names.add(key, value));
        self.runs.push(run);
    }

    /// The same without what comes from files that each start loads. `left`: of which part; `is_left`: whether a file is one of these.
    pub fn without_files(mut self, language: Language, left: Left, mut is_left: impl FnMut(&Path) -> bool) -> Profile {
        let from = self.loaded.len() - self.report_count;
        let all = std::mem::take(&mut self.loaded);
        for (number, (name, file)) in all.into_iter().enumerate() {
            let path = if language == Language::Ruby { &name } else { &file };
            if (left == Left::OfAll || number >= from) && is_left(Path::new(path)) {
                self.report_count -= usize::from(number >= from);
                self.known.push(name);
            } else {
                self.loaded.push((name, file));
            }
        }
        self
    }

    /// Drops which modules all runs have loaded: other runs may load others.
    pub fn without_always(mut self) -> Profile {
        self.counts.clear();
        self
    }

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

    /// The same without a part with which no image could be made, and which part that was: the reports of starts or, if
    /// there are none, everything.
    pub fn without_part(mut self) -> (Profile, Part) {
        let (part, from) = match std::mem::take(&mut self.report_count) {
            0 => {
                self.patterns.clear();
                self.warm_up.clear();
                (Part::Trained, 0)
            }
            count => (Part::StartReports, self.loaded.len() - count),
        };
        self.known.extend(self.loaded.drain(from..).map(|(name, _)| name));
        (self, part)
    }

    /// Records that no image could be made with the reports of starts.
    pub fn give_up_reports(mut self) {
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
        let pairs = [("learnt", &self.loaded), ("gem", &self.gems)];
        for (key, (one, other)) in pairs.iter().flat_map(|(key, pairs)| pairs.iter().map(move |pair| (key, pair))) {
            request.push_record(key, &[one, other]);
        }
        let always = self.counts.iter().filter(|(_, count)| **count == self.runs.len() && !self.runs.is_empty());
        always.for_each(|(name, _)| request.push("always", name));
        self.names.push_to(request);
        self.paths.iter().for_each(|path| request.push("load_path", path));
        self.patterns.iter().for_each(|pattern| request.push("pattern", pattern));
        self.warm_up.iter().for_each(|name| request.push("warm_up", name));
    }
}
