//! A start with the boot archive, if one is possible.

use std::ffi::OsString;
use std::fmt;

use explain::{Measurement, NoArchive, Start, Subject};
use failure::{Failure, Result};
use installation::Installation;
use runtime::{language_of, locate, search_path, Language};
use store::command::BootArchive;

use crate::arguments::Explain;
use crate::ordinary;
use crate::spinner::Spinner;

/// Why there is no start with the boot archive to show. In words, a sentence.
pub enum NoStart {
    /// SNAPBOOT_ARCHIVE is off.
    Off,
    /// Its Python ignores what switches the archive on.
    Isolated,
    /// Its runtime has none.
    OtherRuntime,
    /// Its events could not be recorded.
    Unrecorded,
    /// It has no archive.
    NoArchive(NoArchive),
    /// It cannot be measured.
    Failed(Failure),
}

impl fmt::Display for NoStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self {
            NoStart::Off => "SNAPBOOT_ARCHIVE=off switches it off",
            NoStart::Isolated => {
                "its Python ignores its environment or site (-I, -E, -S), by which snapboot run switches it on"
            }
            NoStart::OtherRuntime => "its runtime has none",
            NoStart::Unrecorded => "the process could not record what it does",
            NoStart::NoArchive(why) => &why.to_string(),
            NoStart::Failed(failure) => &failure.message,
        };
        write!(f, "There is no start with the boot archive to show: {}.", why.trim_end_matches('.'))
    }
}

/// Measures one, in an archive of its own that is filled first. `ordinary`: the ordinary start of the same command, if there is one.
pub fn measure(
    words: &[OsString],
    ordinary: Option<&Start>,
    arguments: &Explain,
    spinner: &Spinner,
) -> Result<std::result::Result<Start, NoStart>> {
    if let Some(why) = inapplicable(words)? {
        return Ok(Err(why));
    }
    if ordinary.is_some_and(|start| start.root.detail.is_some()) {
        return Ok(Err(NoStart::Unrecorded));
    }
    let mut subject = Subject::archived(words, &Installation::find()?)?;
    subject.allow_failure = arguments.allow_failure;
    let measurement = Measurement { runs: arguments.runs, report: &|text: &str| spinner.phase(text) };
    // An error here must not hide the other starts.
    let start = match subject.fill(&measurement) {
        Ok(Some(why)) => return Ok(Err(NoStart::NoArchive(why))),
        Ok(None) => subject.measure(&measurement),
        Err(failure) => Err(failure),
    };
    Ok(start.map_err(NoStart::Failed))
}

/// Why no start of the command has an archive, as far as that is known without one.
fn inapplicable(words: &[OsString]) -> Result<Option<NoStart>> {
    if std::env::var_os("SNAPBOOT_ARCHIVE").is_some_and(|value| value == "off") {
        return Ok(Some(NoStart::Off));
    }
    let program = locate(&words[0], &search_path())?;
    Ok(match (ordinary::archive_of(&program, words, None), language_of(words)) {
        (BootArchive::None, Some(Language::Python)) => Some(NoStart::Isolated),
        (BootArchive::None, _) => Some(NoStart::OtherRuntime),
        _ => None,
    })
}
