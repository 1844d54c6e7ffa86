//! A start with the boot archive, if one is possible.

use std::ffi::OsString;

use explain::{Measurement, Start, Subject};
use failure::Result;
use installation::Installation;
use runtime::{language_of, locate, search_path, Language};
use store::command::BootArchive;

use crate::arguments::Explain;
use crate::ordinary;
use crate::progress::Progress;

/// Measures one, in an archive of its own that is filled first. Otherwise returns the reason, a sentence. `ordinary`: the ordinary start of
/// the same command, if there is one.
pub fn measure(
    words: &[OsString],
    ordinary: Option<&Start>,
    arguments: &Explain,
    progress: &Progress,
) -> Result<std::result::Result<Start, String>> {
    if let Some(why) = inapplicable(words)? {
        return Ok(Err(none(why)));
    }
    if ordinary.is_some_and(|start| start.root.detail.is_some()) {
        return Ok(Err(none("what it does could not be noted from within")));
    }
    let mut subject = Subject::archived(words, &Installation::find()?)?;
    subject.allow_failure = arguments.allow_failure;
    let measurement = Measurement { runs: arguments.runs, tell: &|text: &str| progress.phase(text) };
    // An error here must not hide the other starts.
    let start = match subject.fill(&measurement) {
        Ok(Some(why)) => return Ok(Err(none(&why))),
        Ok(None) => subject.measure(&measurement),
        Err(failure) => Err(failure),
    };
    Ok(start.map_err(|failure| none(&failure.message)))
}

fn none(why: &str) -> String {
    format!("There is no start with the boot archive to show: {}.", why.trim_end_matches('.'))
}

/// Why no start of the command has an archive, as far as that is known without one.
fn inapplicable(words: &[OsString]) -> Result<Option<&'static str>> {
    if std::env::var_os("SNAPBOOT_ARCHIVE").is_some_and(|value| value == "off") {
        return Ok(Some("SNAPBOOT_ARCHIVE=off switches it off"));
    }
    let program = locate(&words[0], &search_path())?;
    Ok(match (ordinary::archive_of(&program, words, None), language_of(words)) {
        (BootArchive::None, Some(Language::Python)) => {
            Some("its Python ignores its environment or site (-I, -E, -S), by which snapboot run switches it on")
        }
        (BootArchive::None, _) => Some("its runtime has none"),
        _ => None,
    })
}
