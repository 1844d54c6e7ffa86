//! Starts with the boot archive: one that is filled first, and gone afterwards.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use installation::Installation;

use crate::measure::{Measurement, Subject};

/// What such a start is called.
pub const WITH_ARCHIVE: &str = "with archive";
/// The variables that say where an archive is, that it is not to be written, and that starts tell why there is none.
const PLACE: &str = "SNAPBOOT_ARCHIVE";
const READ_ONLY: &str = "SNAPBOOT_ARCHIVE_READONLY";
const LOG: &str = "SNAPBOOT_LOG";
/// What a start begins the line with that says why.
const NONE: &str = "snapboot: no archive: ";
/// So many starts fill an archive at most: some of it is kept only once several starts have made the same.
const MAX_FILLS: u32 = 8;

impl Subject {
    /// An ordinary start of the command `words` with the boot archive, as `snapboot run --no-freeze` makes it: of a copy of its own. To be
    /// filled before it is measured.
    pub fn archived(words: &[OsString], installation: &Installation) -> Result<Subject> {
        let ordinary = Subject::ordinary(words, installation)?;
        let snapboot = std::env::current_exe().map_err(|error| Failure::io("find", Path::new("snapboot"), &error))?;
        let run = ["snapboot", "run", "--no-freeze", "--"].map(OsString::from);
        let variables = vec![(PLACE, ordinary.archive().into_os_string())];
        Ok(Subject {
            words: [&run, words].concat(),
            program: snapboot,
            title: WITH_ARCHIVE.to_owned(),
            // One that cannot be noted is not shown.
            language: None,
            variables,
            ..ordinary
        })
    }

    /// Where its archive is.
    fn archive(&self) -> PathBuf {
        self.folder.path().join("boot.archive")
    }

    /// Starts it until its archive does not change any more. Returns why there is none, if so.
    pub fn fill(&self, measurement: &Measurement<'_>) -> Result<Option<String>> {
        let state = || fs::metadata(self.archive()).ok().map(|about| (about.ino(), about.size(), about.mtime_nsec()));
        for run in 1..=MAX_FILLS {
            (measurement.tell)(&format!("start {WITH_ARCHIVE}: filling it, {run}"));
            let before = state();
            let mut command = self.command();
            command.env_remove(READ_ONLY);
            self.start(command)?;
            if state() == before && before.is_some() {
                return Ok(None);
            }
            // What was written a moment ago is not kept yet.
            if state().is_none() && run > 1 {
                return self.why_not().map(Some);
            }
        }
        Ok(None)
    }

    /// What a start says that has no archive.
    fn why_not(&self) -> Result<String> {
        let failed = |error: std::io::Error| Failure::io("write into", self.folder.path(), &error);
        let mut errors = tempfile::tempfile_in(self.folder.path()).map_err(failed)?;
        let mut command = self.command();
        command.env_remove(READ_ONLY).env(LOG, "1").stderr(errors.try_clone().map_err(failed)?);
        self.start(command)?;
        let mut said = Vec::new();
        errors.rewind().and_then(|()| errors.read_to_end(&mut said)).map_err(failed)?;
        let said = String::from_utf8_lossy(&said);
        let reason = said.lines().find_map(|line| line.strip_prefix(NONE));
        Ok(reason.map_or("it loads so little that the archive is not even opened".to_owned(), str::to_owned))
    }
}
