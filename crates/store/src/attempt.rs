//! What came of the last attempt to make an image of a command, and whether, and when, another one is worth it.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::{Effort, Folder, StartTimes};

/// Its file in the folder of the command.
const FILE: &str = "attempt.json";
/// How long a refusal counts at most.
const REFUSED: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long a failure counts: of the program, or one that need not last, such as a full disk. Twice as long after each further one, up to the last.
const FAILED: u64 = 60;
const PASSING: u64 = 10;
const LONGEST_FAILED: u64 = 3600;
/// After so many failures in a row that need not have lasted, an image that lacks something is better than none.
const PATIENT: u32 = 3;
/// How long an image may be used that lacks something, at first and at most (seconds); twice as long after each further one.
const LESSER: u64 = 60;
const LONGEST_LESSER: u64 = 7 * 24 * 3600;
/// After so many of them in a row, what they have is all that there is.
const ACCEPTED: u32 = 8;
/// So many images in a row may go unused before the next one has to wait, and for how long at most (seconds).
const FREE: u32 = 3;
const LONGEST_WAIT: u64 = 3600;
/// So many environments are remembered.
const MAX_TRIED: usize = 64;

/// The last attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attempt {
    /// Version of the command that made it.
    pub snapboot: String,
    /// When it ended (seconds since 1970).
    pub at: u64,
    /// What came of it.
    pub outcome: Outcome,
    /// How many images in a row have been replaced before any start has thawed them.
    pub in_vain: u32,
    /// How many images in a row have been made for what starts have told.
    pub learnt: u32,
    /// How many attempts in a row have failed.
    pub failed: u32,
    /// How many images in a row lack something that they should have.
    pub lesser: u32,
    /// How much was learnt for the last one that lacks nothing: modules or features.
    pub knows: usize,
    /// Environments for which an image was asked for since none fitted: a number for each (see [`crate::background::environment_number`]).
    pub tried: Vec<String>,
}

/// What came of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// There was none.
    #[default]
    None,
    /// An image.
    Made {
        /// How long it took (seconds).
        took: f64,
        /// How long starts take; None where no start could be made only to measure that.
        times: Option<StartTimes>,
    },
    /// The program cannot be frozen.
    Refused {
        /// Why.
        why: Vec<String>,
        /// What the boot has read: a change of it is a reason to try again.
        files: Vec<FileState>,
    },
    /// An image that gained nothing against the boot archive, and is gone again.
    Vain {
        /// What starts took.
        effort: Effort,
        /// See above.
        files: Vec<FileState>,
    },
    /// Something went wrong.
    Failed {
        /// What.
        why: String,
        /// See above.
        files: Vec<FileState>,
        /// Whether it comes of a state that need not last.
        #[serde(default)]
        passing: bool,
    },
}

/// A file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState(PathBuf, Option<(u64, u64)>);

impl FileState {
    /// As it is now.
    pub fn of(path: &Path) -> FileState {
        FileState(path.to_owned(), now(path))
    }
}

/// Size and time of the last change (ns since 1970).
fn now(path: &Path) -> Option<(u64, u64)> {
    let status = path.metadata().ok()?;
    let modified = status.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Some((status.len(), modified.as_nanos() as u64))
}

impl Attempt {
    /// The last one in this folder.
    pub fn of(folder: &Folder) -> Attempt {
        folder.read(FILE).unwrap_or_default()
    }

    /// Writes it down. That it cannot be is no matter: then it is made again.
    pub fn keep(&self, folder: &Folder) {
        let _ = folder.write(FILE, self);
    }

    /// Notes that an image is asked for in this environment; returns whether that is new.
    pub fn try_environment(&mut self, number: &str) -> bool {
        if self.tried.iter().any(|tried| tried == number) {
            return false;
        }
        self.tried.push(number.to_owned());
        let many = self.tried.len().saturating_sub(MAX_TRIED);
        self.tried.drain(..many);
        true
    }

    /// Whether another one is worth it.
    pub fn may_follow(&self) -> bool {
        let (files, limit) = match &self.outcome {
            Outcome::None => return true,
            Outcome::Made { .. } => return self.waits_for().is_none_or(|wait| self.age() >= wait),
            Outcome::Refused { files, .. } | Outcome::Vain { files, .. } => (files, REFUSED.as_secs()),
            Outcome::Failed { files, passing, .. } => {
                let first = if *passing { PASSING } else { FAILED };
                (files, doubled(first, self.failed.saturating_sub(1), LONGEST_FAILED))
            }
        };
        self.snapboot != env!("CARGO_PKG_VERSION")
            || self.age() >= limit
            || files.iter().any(|FileState(path, then)| now(path) != *then)
    }

    /// Why there is no image, where that is because one gained nothing.
    pub fn in_vain_because(&self) -> Option<String> {
        let Outcome::Vain { effort: Effort { archived, thawed }, .. } = self.outcome else { return None };
        let [archived, thawed] = [archived, thawed].map(|seconds| format!("{:.0} ms", seconds * 1000.0));
        Some(format!(
            "an image gains nothing: a start from it took {thawed} of a processor, and {archived} with the boot archive alone, which starts have now"
        ))
    }

    /// How long the next image has to wait after the last one (seconds), since nobody could use those before it; None where it has not.
    fn waits_for(&self) -> Option<u64> {
        let more = self.in_vain.checked_sub(FREE)?;
        Some((10 << more.min(10)).min(LONGEST_WAIT))
    }

    /// How long an image may be used that lacks something.
    pub fn lesser_age(&self) -> Duration {
        Duration::from_secs(doubled(LESSER, self.lesser, LONGEST_LESSER))
    }

    /// Whether such an image will do where a better one could not be made for a reason that need not last.
    pub fn makes_do(&self) -> bool {
        self.failed >= PATIENT
    }

    /// Notes that an image was made. `learnt`: how many modules or features for what is known of other runs; `lacks`: whether it should have more.
    pub fn has_made(&mut self, learnt: usize, lacks: bool) {
        self.failed = 0;
        self.lesser = if lacks { self.lesser + 1 } else { 0 };
        if !lacks || self.lesser >= ACCEPTED {
            self.knows = learnt;
        }
    }

    fn age(&self) -> u64 {
        unix_now().saturating_sub(self.at)
    }
}

/// Twice the first for each one more, up to the longest (seconds).
fn doubled(first: u64, more: u32, longest: u64) -> u64 {
    (first << more.min(20)).min(longest)
}

/// Seconds since 1970.
pub fn unix_now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(file: &Path) -> Attempt {
        let files = vec![FileState::of(file)];
        let outcome = Outcome::Refused { why: vec!["a socket".into()], files };
        Attempt { snapboot: env!("CARGO_PKG_VERSION").into(), at: unix_now(), outcome, ..Attempt::default() }
    }

    #[test]
    fn a_refusal_counts_until_what_was_read_has_changed() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("tool.py");
        std::fs::write(&file, "one").unwrap();
        let attempt = refused(&file);
        assert!(!attempt.may_follow());
        assert!(Attempt { at: 0, ..attempt.clone() }.may_follow(), "not for ever");
        assert!(Attempt { snapboot: "0.0.1".into(), ..attempt.clone() }.may_follow(), "a newer version may do it");
        std::fs::write(&file, "other").unwrap();
        assert!(attempt.may_follow());
    }

    #[test]
    fn what_was_in_vain_is_tried_again_when_the_program_has_changed() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("tool.py");
        std::fs::write(&file, "one").unwrap();
        let outcome =
            Outcome::Vain { effort: Effort { archived: 0.1, thawed: 0.2 }, files: vec![FileState::of(&file)] };
        let attempt =
            Attempt { snapboot: env!("CARGO_PKG_VERSION").into(), at: unix_now(), outcome, ..Attempt::default() };
        assert!(!attempt.may_follow());
        assert!(attempt.in_vain_because().unwrap().contains("took 200 ms of a processor, and 100 ms"));
        std::fs::write(&file, "other").unwrap();
        assert!(attempt.may_follow());
    }

    #[test]
    fn a_failure_counts_the_longer_the_more_there_were() {
        let failed = |passing, failed, age| {
            let outcome = Outcome::Failed { why: String::new(), files: Vec::new(), passing };
            let snapboot = env!("CARGO_PKG_VERSION").into();
            Attempt { snapboot, at: unix_now() - age, outcome, failed, ..Attempt::default() }.may_follow()
        };
        assert!(!failed(true, 1, 5) && failed(true, 1, 10) && !failed(true, 2, 15) && failed(true, 2, 20));
        assert!(!failed(false, 1, 50) && failed(false, 1, 60));
        assert!(!failed(true, 60, 3500) && failed(true, 60, 3600));
    }

    #[test]
    fn an_image_that_lacks_something_is_used_the_longer_the_more_there_were() {
        let mut attempt = Attempt::default();
        attempt.has_made(300, false);
        assert_eq!((attempt.knows, attempt.lesser_age().as_secs()), (300, 60));
        attempt.has_made(0, true);
        assert_eq!((attempt.knows, attempt.lesser_age().as_secs()), (300, 120));
        (0..30).for_each(|_| attempt.has_made(2, true));
        assert_eq!((attempt.knows, attempt.lesser_age().as_secs()), (2, LONGEST_LESSER));
        attempt.has_made(2, false);
        assert_eq!(attempt.lesser_age().as_secs(), 60);
    }

    #[test]
    fn images_that_nobody_could_use_are_made_less_and_less_often() {
        let made = |in_vain, at| {
            let outcome = Outcome::Made { took: 1.0, times: None };
            Attempt { outcome, in_vain, at, ..Attempt::default() }.may_follow()
        };
        assert!(made(0, unix_now()) && made(2, unix_now()));
        assert!(!made(3, unix_now()) && made(3, unix_now() - 10));
        assert!(!made(40, unix_now() - 3000) && made(40, unix_now() - 3600));
    }

    #[test]
    fn an_environment_is_tried_once() {
        let mut attempt = Attempt::default();
        assert!(attempt.try_environment("1") && attempt.try_environment("2") && !attempt.try_environment("1"));
        (0..MAX_TRIED).for_each(|number| assert!(attempt.try_environment(&format!("x{number}"))));
        assert_eq!(attempt.tried.len(), MAX_TRIED);
    }
}
