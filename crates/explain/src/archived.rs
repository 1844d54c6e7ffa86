//! Starts with a boot archive that is filled first, and removed at the end.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io::{Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use installation::Installation;

use crate::measure::{Measurement, Subject};

/// The title of such a start.
pub const WITH_ARCHIVE: &str = "with archive";
/// Variables for the archive's path, for read-only use, and for the message why there is no archive.
const PLACE: &str = "SNAPBOOT_ARCHIVE";
const READ_ONLY: &str = "SNAPBOOT_ARCHIVE_READONLY";
const LOG: &str = "SNAPBOOT_LOG";
/// The beginning of that message.
const NONE: &str = "snapboot: no archive: ";
/// Why a start has no archive.
#[derive(Debug)]
pub enum NoArchive {
    /// What it has said itself.
    Said(String),
    /// It loads nothing that would be stored.
    LoadsLittle,
}

impl fmt::Display for NoArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoArchive::Said(reason) => reason,
            NoArchive::LoadsLittle => "it loads so little that the archive is not even opened",
        })
    }
}

/// The maximum number of starts that fill an archive: some entries are stored only after several starts have made the same.
const MAX_FILLS: u32 = 8;

impl Subject {
    /// An ordinary start of the command `words` with a boot archive of its own, as `snapboot run --no-freeze` makes it. Must be filled
    /// before it is measured.
    pub fn archived(words: &[OsString], installation: &Installation) -> Result<Subject> {
        let ordinary = Subject::ordinary(words, installation)?;
        let snapboot = std::env::current_exe().map_err(|error| Failure::io("find", Path::new("snapboot"), &error))?;
        let run = ["snapboot", "run", "--no-freeze", "--"].map(OsString::from);
        let variables = vec![(PLACE, ordinary.archive().into_os_string())];
        Ok(Subject {
            words: [&run, words].concat(),
            program: snapboot,
            title: WITH_ARCHIVE.to_owned(),
            // A start that cannot be recorded is not shown.
            language: None,
            variables,
            ..ordinary
        })
    }

    /// The path of its archive.
    fn archive(&self) -> PathBuf {
        self.folder.path().join("boot.archive")
    }

    /// Starts it until its archive stops changing. Returns the reason if there is no archive.
    pub fn fill(&self, measurement: &Measurement<'_>) -> Result<Option<NoArchive>> {
        let state = || fs::metadata(self.archive()).ok().map(|about| (about.ino(), about.size(), about.mtime_nsec()));
        for run in 1..=MAX_FILLS {
            (measurement.report)(&format!("start {WITH_ARCHIVE}: filling it, {run}"));
            let before = state();
            let mut command = self.command();
            command.env_remove(READ_ONLY);
            self.start(command)?;
            if state() == before && before.is_some() {
                return Ok(None);
            }
            // Files written a moment ago are not stored yet.
            if state().is_none() && run > 1 {
                return self.why_not().map(Some);
            }
        }
        Ok(None)
    }

    /// Starts it without an archive, and asks it why.
    fn why_not(&self) -> Result<NoArchive> {
        let failed = |error: std::io::Error| Failure::io("write into", self.folder.path(), &error);
        let mut errors = tempfile::tempfile_in(self.folder.path()).map_err(failed)?;
        let mut command = self.command();
        command.env_remove(READ_ONLY).env(LOG, "1").stderr(errors.try_clone().map_err(failed)?);
        self.start(command)?;
        let mut said = Vec::new();
        errors.rewind().and_then(|()| errors.read_to_end(&mut said)).map_err(failed)?;
        let said = String::from_utf8_lossy(&said);
        let reason = said.lines().find_map(|line| line.strip_prefix(NONE));
        Ok(reason.map_or(NoArchive::LoadsLittle, |reason| NoArchive::Said(reason.to_owned())))
    }
}
