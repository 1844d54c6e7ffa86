//! The outcomes of attempts to make images of a command, and whether another attempt is worth it now.
//!
//! Only the holder of the folder's lock writes the file. An attempt counts as fruitless from its start until its outcome says otherwise, so
//! nobody has to notice that a builder was killed or its container ended. The file does not record that a builder is at work: the lock
//! shows it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use failure::Result;
use rustix::fs::statvfs;
use serde::{Deserialize, Serialize};

use crate::clock::{self, unix_now};
use crate::no_image_reason::{Ended, Fruitless};
use crate::{Effort, Folder, StartTimes};

/// Its file in the folder of the command.
const FILE: &str = "attempt.json";
/// How long a refusal counts at most.
const REFUSED: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long a failure counts (seconds): of the program, or a transient one such as a full disk. Doubles with each further failure, up to
/// the last.
const FAILED: u64 = 60;
const PASSING: u64 = 10;
const LONGEST_FAILED: u64 = 3600;
/// After this many transient failures in a row, an incomplete image is better than none.
const PATIENT: u32 = 3;
/// How long an incomplete image may be used, at first and at most (seconds); doubles with each further one.
const LESSER: u64 = 60;
const LONGEST_LESSER: u64 = 7 * 24 * 3600;
/// After this many incomplete images in a row, they are taken for complete.
const ACCEPTED: u32 = 8;
/// How many fruitless attempts in a row may follow each other at once; the wait before the next one, at first and at most (seconds).
const FREE: u32 = 3;
const WAIT: u64 = 10;
const LONGEST_WAIT: u64 = 600;
/// The number of environments that are remembered.
const MAX_OUTCOMES: usize = 64;
/// The number of files that are remembered.
const MAX_FILES: usize = 20_000;
/// A disk with this much free space (bytes) was not full.
const PLENTY: u64 = 1 << 30;

/// All attempts for one command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempts {
    /// Version of the command that made the last attempt. Another version forgets all outcomes.
    snapboot: String,
    /// When the last attempt began, or ended (seconds since 1970).
    at: u64,
    /// Whether the last attempt has no outcome: its builder is at work, or was lost.
    unfinished: bool,
    /// How many attempts in a row were fruitless: they made no image, or replaced one that no start had thawed.
    in_vain: u32,
    /// How many images in a row were made because starts have reported more modules.
    pub learnt: u32,
    /// How many images in a row are incomplete.
    lesser: u32,
    /// How many modules or features were learnt for the last complete image.
    knows: usize,
    /// How many of these are in each folder.
    places: BTreeMap<PathBuf, usize>,
    /// How long starts take, measured with the last image that allowed it.
    pub times: Option<StartTimes>,
    /// The free space when the last attempt began.
    space: Vec<FreeSpace>,
    /// The files that boots without an image have read: a change of one is a reason to try again.
    files: Vec<FileState>,
    /// The last outcome in each environment, the latest last.
    outcomes: Vec<Attempt>,
}

/// The last attempt in one environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// See [`crate::background::environment_number`].
    environment: String,
    /// When it ended (seconds since 1970).
    pub at: u64,
    /// How many attempts in a row have failed.
    failed: u32,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// An image.
    Made {
        /// This one.
        image: PathBuf,
    },
    /// The program cannot be frozen.
    Refused {
        /// Why.
        why: Vec<String>,
    },
    /// An image that was no faster than the boot archive, and was removed.
    Vain {
        /// The processor time of its starts.
        effort: Effort,
    },
    /// Something went wrong.
    Failed {
        /// The message.
        why: String,
        /// Whether the cause is transient.
        passing: bool,
    },
}

/// The state of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FileState(PathBuf, Option<(u64, u64)>);

impl FileState {
    /// The current state.
    pub fn current(path: &Path) -> FileState {
        FileState(path.to_owned(), now(path))
    }
}

/// Returns size and time of the last change (ns since 1970).
fn now(path: &Path) -> Option<(u64, u64)> {
    let status = path.metadata().ok()?;
    let modified = status.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Some((status.len(), modified.as_nanos() as u64))
}

/// The free space of a file system (bytes).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FreeSpace(PathBuf, u64);

impl FreeSpace {
    fn current(path: &Path) -> Option<FreeSpace> {
        let status = statvfs(path).ok()?;
        Some(FreeSpace(path.to_owned(), status.f_bavail.saturating_mul(status.f_frsize)))
    }

    /// Whether it may have been too little, and has grown by a quarter.
    fn has_grown(&self) -> bool {
        let FreeSpace(path, then) = self;
        *then < PLENTY && FreeSpace::current(path).is_some_and(|FreeSpace(_, now)| now > then + then / 4 + (1 << 20))
    }
}

impl Attempts {
    /// Reads the attempts of this folder.
    pub fn load(folder: &Folder) -> Attempts {
        let mut all: Attempts = folder.read(&folder.name_for_kind(FILE)).unwrap_or_default();
        if all.snapboot != env!("CARGO_PKG_VERSION") {
            (all.in_vain, all.unfinished) = (0, false);
            all.forget();
        }
        all
    }

    /// Writes the attempts. The caller holds the lock of the folder.
    pub(crate) fn keep(&self, folder: &Folder) -> Result<()> {
        folder.write(&folder.name_for_kind(FILE), self)
    }

    fn forget(&mut self) {
        self.outcomes.clear();
        self.files.clear();
    }

    /// The last attempt in this environment.
    pub fn last_in(&self, environment: &str) -> Option<&Attempt> {
        self.outcomes.iter().find(|attempt| attempt.environment == environment)
    }

    /// The last attempt with an outcome.
    pub fn last(&self) -> Option<&Attempt> {
        self.outcomes.last()
    }

    /// Whether the last attempt has no outcome. If nobody is making an image, its builder was lost.
    pub fn is_unfinished(&self) -> bool {
        self.unfinished
    }

    /// Why no further attempt is worth it in this environment now; None if one is.
    pub fn why_none(&self, environment: &str) -> Option<Fruitless> {
        let last = self.last_in(environment);
        let ended = match last.map(|attempt| (attempt, &attempt.outcome)) {
            Some((attempt, Outcome::Refused { .. })) => Some((Ended::Refused, left(attempt.at, REFUSED.as_secs()))),
            Some((attempt, Outcome::Vain { .. })) => Some((Ended::Vain, left(attempt.at, REFUSED.as_secs()))),
            Some((attempt, Outcome::Failed { passing, .. })) => {
                let first = if *passing { PASSING } else { FAILED };
                let period = doubled(first, attempt.failed.saturating_sub(1), LONGEST_FAILED);
                Some((Ended::Failed, left(attempt.at, period)))
            }
            Some((_, Outcome::Made { .. })) | None => None,
        };
        let in_vain = || {
            let more = self.in_vain.checked_sub(FREE)?;
            let next = left(self.at, doubled(WAIT, more, LONGEST_WAIT))?;
            let does_not_fit = matches!(
                last.map(|attempt| &attempt.outcome),
                Some(Outcome::Made { image }) if image.exists()
            );
            Some(Fruitless::InVain { attempts: self.in_vain, does_not_fit, next })
        };
        let why = match ended {
            Some((_, Some(_))) if self.has_changed() => None,
            Some((ended, Some(wait))) => {
                Some(Fruitless::Last { ended, next: Some(wait).filter(|wait| *wait <= LONGEST_FAILED) })
            }
            Some((_, None)) | None => in_vain(),
        };
        why.filter(|_| !self.space.iter().any(FreeSpace::has_grown))
    }

    fn has_changed(&self) -> bool {
        self.files.iter().any(|FileState(path, then)| now(path) != *then)
    }

    /// Records that an attempt begins. `for_news`: whether because of reports of starts; None if nobody has asked for that.
    ///
    /// Fails if the file cannot be written, as on a full disk: then no image can be written, either.
    pub fn begin(&mut self, folder: &Folder, for_news: Option<bool>) -> Result<()> {
        if self.has_changed() {
            self.forget();
        }
        self.learnt = match for_news {
            Some(true) => self.learnt + 1,
            Some(false) => 0,
            None => self.learnt,
        };
        self.snapboot = env!("CARGO_PKG_VERSION").to_owned();
        self.at = unix_now();
        self.unfinished = true;
        self.in_vain += 1;
        self.space = [folder.path(), &std::env::temp_dir()].into_iter().filter_map(FreeSpace::current).collect();
        self.keep(folder)
    }

    /// Records its outcome. `files`: the files that its boots have read.
    pub fn end(
        &mut self,
        folder: &Folder,
        environment: &str,
        outcome: Outcome,
        files: impl IntoIterator<Item = FileState>,
    ) {
        let failed = self.last_in(environment).map_or(0, |attempt| attempt.failed);
        self.outcomes.retain(|attempt| attempt.environment != environment);
        let failed = match &outcome {
            Outcome::Failed { .. } => failed + 1,
            Outcome::Refused { .. } | Outcome::Vain { .. } => failed,
            Outcome::Made { .. } => 0,
        };
        self.at = unix_now();
        self.unfinished = false;
        if !matches!(outcome, Outcome::Made { .. }) {
            self.files.extend(files);
            self.files.sort();
            self.files.dedup();
            self.files.truncate(MAX_FILES);
        }
        self.outcomes.push(Attempt { environment: environment.to_owned(), at: self.at, failed, outcome });
        let many = self.outcomes.len().saturating_sub(MAX_OUTCOMES);
        self.outcomes.drain(..many);
        // If the file cannot be written, the attempt counts as fruitless.
        let _ = self.keep(folder);
    }

    /// How much was learnt for the last complete image, without modules in folders that are gone, such as those of a removed plugin.
    pub fn knows(&self) -> usize {
        let gone = self.places.iter().filter(|(folder, _)| !folder.exists()).map(|(_, count)| count).sum();
        self.knows.saturating_sub(gone)
    }

    /// How long an incomplete image may be used.
    pub fn lesser_age(&self) -> Duration {
        Duration::from_secs(doubled(LESSER, self.lesser, LONGEST_LESSER))
    }

    /// Whether an incomplete image will do in this environment, because a transient cause prevents a better one.
    pub fn makes_do(&self, environment: &str) -> bool {
        self.last_in(environment).is_some_and(|attempt| attempt.failed >= PATIENT)
    }

    /// Counts an image that was made. `unused`: whether no start has thawed the image that it replaces; `learnt`: how many modules or
    /// features come from other runs, with their folders; `lacks`: whether it is incomplete.
    pub fn count_made(&mut self, unused: bool, learnt: (usize, BTreeMap<PathBuf, usize>), lacks: bool) {
        if !unused {
            self.in_vain = 0;
        }
        self.lesser = if lacks { self.lesser + 1 } else { 0 };
        if !lacks || self.lesser >= ACCEPTED {
            (self.knows, self.places) = learnt;
        }
    }

    /// How long ago the last attempt was (seconds); very long ago if the clock was set back since.
    pub fn age(&self) -> u64 {
        clock::seconds_since(self.at)
    }
}

/// What is left of a period that began then (seconds); None if it is over, or the clock was set back since.
fn left(then: u64, length: u64) -> Option<u64> {
    let age = unix_now().checked_sub(then)?;
    length.checked_sub(age).filter(|left| *left > 0)
}

/// Doubles the first for each further one, up to the longest (seconds).
fn doubled(first: u64, more: u32, longest: u64) -> u64 {
    (first << more.min(20)).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::new(top.path().to_owned());
        (top, folder)
    }

    fn refused() -> Outcome {
        Outcome::Refused { why: vec!["a socket".into()] }
    }

    fn failed(passing: bool) -> Outcome {
        Outcome::Failed { why: String::new(), passing }
    }

    fn attempt(all: &mut Attempts, folder: &Folder, environment: &str, outcome: Outcome, files: &[FileState]) {
        all.begin(folder, None).unwrap();
        all.end(folder, environment, outcome, files.iter().cloned());
    }

    /// As if everything had happened this many seconds ago.
    fn aged(all: &Attempts, seconds: u64) -> Attempts {
        let mut all = all.clone();
        all.at -= seconds;
        all.outcomes.iter_mut().for_each(|attempt| attempt.at -= seconds);
        all
    }

    #[test]
    fn a_refusal_counts_in_its_environment_until_what_was_read_has_changed() {
        let (top, folder) = folder();
        let file = top.path().join("tool.py");
        std::fs::write(&file, "one").unwrap();
        let mut all = Attempts::default();
        attempt(&mut all, &folder, "one", refused(), &[FileState::current(&file)]);
        assert!(
            all.why_none("one").unwrap().to_string().contains("was refused, and nothing")
                && all.why_none("other").is_none()
        );
        assert!(aged(&all, REFUSED.as_secs()).why_none("one").is_none(), "not for ever");
        let future = Attempts { outcomes: vec![Attempt { at: u64::MAX, ..all.outcomes[0].clone() }], ..all.clone() };
        assert!(future.why_none("one").is_none(), "the clock was set back");
        Attempts { snapboot: "0.0.1".into(), ..all.clone() }.keep(&folder).unwrap();
        assert!(Attempts::load(&folder).why_none("one").is_none(), "a newer version may do it");
        std::fs::write(&file, "other").unwrap();
        assert!(all.why_none("one").is_none());
        // An attempt in another environment does not make it count again.
        attempt(&mut all, &folder, "other", refused(), &[FileState::current(&file)]);
        assert!(all.why_none("one").is_none() && all.why_none("other").is_some());
    }

    #[test]
    fn a_failure_counts_the_longer_the_more_there_were() {
        let waits = |passing, count, age| {
            let (_top, folder) = folder();
            let mut all = Attempts::default();
            (0..count).for_each(|_| attempt(&mut all, &folder, "one", failed(passing), &[]));
            all.in_vain = 0;
            aged(&all, age).why_none("one").is_some()
        };
        assert!(waits(true, 1, 5) && !waits(true, 1, 10) && waits(true, 2, 15) && !waits(true, 2, 20));
        assert!(waits(false, 1, 50) && !waits(false, 1, 60));
        assert!(waits(true, 60, 3500) && !waits(true, 60, 3600));
    }

    #[test]
    fn what_lies_ahead_of_the_clock_bars_nothing() {
        for outcome in [refused(), failed(true), failed(false)] {
            let (_top, folder) = folder();
            let mut all = Attempts::default();
            (0..9).for_each(|_| attempt(&mut all, &folder, "one", outcome.clone(), &[]));
            assert!(all.why_none("one").is_some());
            all.at += 1_000_000;
            all.outcomes.iter_mut().for_each(|attempt| attempt.at += 1_000_000);
            assert!(all.why_none("one").is_none(), "{outcome:?}");
        }
    }

    #[test]
    fn an_image_that_lacks_something_is_used_the_longer_the_more_there_were() {
        let mut all = Attempts::default();
        let learnt = |count| (count, BTreeMap::new());
        all.count_made(false, learnt(300), false);
        assert_eq!((all.knows, all.lesser_age().as_secs()), (300, 60));
        all.count_made(false, learnt(0), true);
        assert_eq!((all.knows, all.lesser_age().as_secs()), (300, 120));
        (0..30).for_each(|_| all.count_made(false, learnt(2), true));
        assert_eq!((all.knows, all.lesser_age().as_secs()), (2, LONGEST_LESSER));
        all.count_made(false, learnt(2), false);
        assert_eq!(all.lesser_age().as_secs(), 60);
    }

    #[test]
    fn what_was_removed_is_not_missed() {
        let top = tempfile::tempdir().unwrap();
        let places = [("tool", 14), ("plugin", 16)].map(|(name, count)| (top.path().join(name), count));
        places.iter().for_each(|(folder, _)| std::fs::create_dir(folder).unwrap());
        let mut all = Attempts::default();
        all.count_made(false, (30, places.iter().cloned().collect()), false);
        assert_eq!(all.knows(), 30);
        std::fs::remove_dir(&places[1].0).unwrap();
        assert_eq!(all.knows(), 14);
    }

    #[test]
    fn what_is_in_vain_is_done_less_and_less_often_whatever_the_environment() {
        let (_top, folder) = folder();
        let mut all = Attempts::default();
        // Lost builders, one after the other, and refusals elsewhere.
        all.begin(&folder, None).unwrap();
        all.begin(&folder, None).unwrap();
        assert!(Attempts::load(&folder).is_unfinished() && all.why_none("one").is_none());
        attempt(&mut all, &folder, "other", refused(), &[]);
        assert!(
            all.why_none("one").unwrap().to_string().contains("the last 3 attempts")
                && aged(&all, WAIT).why_none("one").is_none()
        );
        (0..40).for_each(|_| all.begin(&folder, None).unwrap());
        assert!(
            aged(&all, LONGEST_WAIT - 9).why_none("one").is_some()
                && aged(&all, LONGEST_WAIT).why_none("one").is_none()
        );
        // An image ends that, unless it replaces one that nobody could use.
        all.count_made(true, Default::default(), false);
        assert!(all.why_none("one").is_some());
        all.count_made(false, Default::default(), false);
        assert!(all.why_none("one").is_none());
    }

    #[test]
    fn more_room_on_the_disk_is_a_reason_to_try_again() {
        let (top, folder) = folder();
        let mut all = Attempts::default();
        (0..5).for_each(|_| attempt(&mut all, &folder, "one", failed(true), &[]));
        assert!(all.why_none("one").is_some());
        all.space = vec![FreeSpace(top.path().to_owned(), 4096)];
        assert!(all.why_none("one").is_none() && all.why_none("other").is_none());
    }

    #[test]
    fn environments_are_remembered_within_limits() {
        let (_top, folder) = folder();
        let mut all = Attempts::default();
        (0..=MAX_OUTCOMES).for_each(|number| attempt(&mut all, &folder, &number.to_string(), refused(), &[]));
        assert!(all.last_in("0").is_none() && all.last_in("1").is_some() && all.outcomes.len() == MAX_OUTCOMES);
    }
}
