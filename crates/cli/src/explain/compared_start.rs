//! One start for a comparison, of the kind that --start names.

use std::ffi::OsString;

use explain::{Report, Start, Subject, WITH_ARCHIVE};
use failure::{Failure, Result};
use installation::Installation;

use super::trial::Trial;
use super::{archived, is_image, measure, saved, tried, trusted};
use crate::arguments::{Explain, StartKind};
use crate::human;
use crate::spinner::Spinner;

/// Measures the start, or takes it from a report. `kind`: None for the usual one.
pub fn start(words: &[OsString], kind: Option<StartKind>, arguments: &Explain, spinner: &Spinner) -> Result<Start> {
    if let Some(report) = saved(words) {
        return of_report(report, kind, words);
    }
    if is_image(words) {
        trusted(words)?;
        return match kind {
            None | Some(StartKind::Thawed) => measure(Subject::thawed(words)?, arguments, spinner),
            Some(_) => Err(Failure::refusal(format!(
                "{} is an image, whose start is a thaw. To compare it, say so: --start thawed, or --start ordinary,thawed for the second \
                 of two.",
                words[0].display()
            ))),
        };
    }
    let ordinary = || measure(Subject::ordinary(words, &Installation::find()?)?, arguments, spinner);
    match kind {
        None | Some(StartKind::Ordinary) => ordinary(),
        Some(StartKind::Archive) => {
            archived::measure(words, None, arguments, spinner)?.map_err(|why| Failure::refusal(why.to_string()))
        }
        Some(StartKind::Thawed) => match tried(Trial::new(words)?, arguments, spinner)? {
            Ok(tried) => Ok(tried.thawed),
            Err(advice) => {
                let reasons: Vec<_> = advice.into_iter().map(|advice| advice.text).collect();
                Err(Failure::refusal(format!("There is no thawed start to compare. {}", reasons.join(" "))))
            }
        },
    }
}

fn of_report(report: Report, kind: Option<StartKind>, words: &[OsString]) -> Result<Start> {
    let title = match kind {
        None => report.starts.first().map(|start| start.title.clone()).unwrap_or_default(),
        Some(StartKind::Ordinary) => "ordinary".to_owned(),
        Some(StartKind::Archive) => WITH_ARCHIVE.to_owned(),
        Some(StartKind::Thawed) => "thawed".to_owned(),
    };
    let titles: Vec<String> = report.starts.iter().map(|start| start.title.clone()).collect();
    report.starts.into_iter().find(|start| start.title == title).ok_or_else(|| {
        let why = report.no_archive.filter(|_| kind == Some(StartKind::Archive)).unwrap_or_default();
        Failure::refusal(format!(
            "{} should have a start that is {title}, but it has {}: {}. {why}",
            words[0].display(),
            human::count(titles.len(), "start"),
            titles.join(", ")
        ))
    })
}
