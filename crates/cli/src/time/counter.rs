//! Checks whether the timed starts of an image were thaws: a fallback takes the time of an ordinary start.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use image_file::starts::{self, Starts};
use image_file::FirstHead;
use serde::Serialize;

/// Counts the starts of an image in a folder of its own, apart from those of the user.
pub struct Counter {
    folder: PathBuf,
    image_id: u64,
    /// The counts before the timed starts.
    before: (u64, u64),
}

/// The outcome of the timed starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// Starts that have thawed.
    pub thaws: u64,
    /// Starts that have fallen back.
    pub fallbacks: u64,
    /// Why the last of these fell back.
    pub reason: Option<String>,
}

impl Counter {
    /// A counter for this program; None if it is no image, or its starts cannot be counted.
    pub fn for_program(program: &Path) -> Option<Counter> {
        let image_id = FirstHead::read(program).ok()?.head.image_id();
        // The two commands of a comparison may be the same image.
        let make = |number| {
            let folder = std::env::temp_dir().join(format!("snapboot-time-{}-{number}", std::process::id()));
            DirBuilder::new().mode(0o700).create(&folder).ok().map(|()| folder)
        };
        let folder = (0..4).find_map(make)?;
        let counter = Counter { folder, image_id, before: (0, 0) };
        starts::begin_counting_below(&counter.folder, image_id).ok()?;
        Some(counter)
    }

    /// The folder for the counts: the value of SNAPBOOT_STATE.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Ignores the starts so far.
    pub fn begin(&mut self) {
        self.before = self.now().map_or((0, 0), |starts| (starts.thaws, starts.fallbacks));
    }

    /// The counts since then.
    pub fn counted(&self) -> Option<Counted> {
        let now = self.now()?;
        let (thaws, fallbacks) = (now.thaws - self.before.0, now.fallbacks - self.before.1);
        let reason = now.last_fallback.filter(|_| fallbacks > 0).map(|fallback| fallback.reason);
        Some(Counted { thaws, fallbacks, reason })
    }

    fn now(&self) -> Option<Starts> {
        Starts::read_below(&self.folder, self.image_id)
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        // The rest lies in a folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
