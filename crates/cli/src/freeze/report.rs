//! What front end and freezer said about a boot, and what that means for the user.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use super::control_dir::ControlDir;
use crate::entries::Entries;
use crate::failure::{Failure, Result};
use crate::runtime::Runtime;

/// The front end's exit statuses.
const WRITTEN: i32 = 0;
const USER_ERROR: i32 = 2;
const REFUSED: i32 = 3;

/// What a front end reported of a boot that was written.
#[derive(Debug, Default)]
pub struct Report {
    /// Files whose content was loaded.
    pub loaded: Vec<PathBuf>,
    /// Names that were preloaded.
    pub preloaded: Vec<String>,
    /// Things to tell the user.
    pub warnings: Vec<String>,
    /// Arguments that force the fallback, named by a framework's recipe.
    pub guards: Vec<OsString>,
    /// Name and version of the runtime, in its own words.
    pub runtime: Option<String>,
}

/// One reason why a process cannot be frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is about: `descriptor`, `memory`, `timer`, ...; a `note` is no reason, but to be told.
    pub kind: String,
    /// Number of the descriptor, where it is about one.
    pub descriptor: Option<String>,
    /// The whole finding in words.
    pub text: String,
}

impl Finding {
    /// Whether it only tells something, such as that other threads are dropped.
    fn is_note(&self) -> bool {
        self.kind == "note"
    }
}

/// How a boot went.
pub enum Outcome {
    /// The memory is written.
    Written(Report),
    /// The freezer refused, for these reasons.
    Refused(Vec<Finding>),
}

/// Reads what was reported in `dir` after the runtime ended with `status`.
pub fn outcome(dir: &ControlDir, status: ExitStatus, runtime: &Runtime) -> Result<Outcome> {
    let read =
        |name: &str| Entries::read(&dir.file(name)).map_err(|error| Failure::io("read", &dir.file(name), &error));
    let report = read("report")?;
    let (notes, findings): (Vec<_>, Vec<_>) = findings(&read("findings")?).into_iter().partition(Finding::is_note);
    let errors: Vec<String> = report.texts("error").collect();
    match status.code() {
        _ if !findings.is_empty() => Ok(Outcome::Refused(findings)),
        Some(WRITTEN) if report.all("runtime").next().is_some() => Ok(Outcome::Written(Report {
            loaded: report.all("loaded").map(PathBuf::from).collect(),
            preloaded: report.texts("preloaded").collect(),
            warnings: report.texts("warning").chain(notes.into_iter().map(|note| note.text)).collect(),
            guards: report.all("guard").map(OsString::from).collect(),
            runtime: report.texts("runtime").next(),
        })),
        Some(WRITTEN) => Err(Failure::failed(format!(
            "the program ended by itself before its freeze point (exit status 0), so there is nothing to freeze. It probably \
             exits while it loads; load less with --preload, or guard its exit ({}).",
            runtime.label
        ))),
        Some(USER_ERROR) if !errors.is_empty() => Err(Failure::refusal(errors.join("\nsnapboot: "))),
        Some(REFUSED) if errors.is_empty() => {
            Err(Failure::failed("the freezer refused, but gave no reason. This is an error in Snapboot: report it."))
        }
        Some(REFUSED) => Err(Failure::failed(errors.join("\nsnapboot: "))),
        code => Err(failed(code, status, &errors)),
    }
}

/// The program's own failure; its traceback stands above.
fn failed(code: Option<i32>, status: ExitStatus, errors: &[String]) -> Failure {
    let mut message = String::from("cannot freeze: the program failed while it booted");
    match (code, status.signal()) {
        (Some(code), _) => write!(message, " (exit status {code}; what it said stands above)"),
        (_, Some(signal)) => write!(message, " (killed by {})", signal_name(signal)),
        _ => Ok(()),
    }
    .unwrap_or_default();
    for error in errors {
        message.push_str(": ");
        message.push_str(error);
    }
    message.push_str(
        ". Start it the ordinary way with the same environment; if it fails there too, mend that first, and pass \
                      variables that it needs with --env NAME.",
    );
    Failure::failed(message)
}

fn signal_name(signal: i32) -> String {
    let name = nix::sys::signal::Signal::try_from(signal).map(|signal| signal.as_str().to_owned());
    name.unwrap_or_else(|_| format!("signal {signal}"))
}

/// Findings start with `kind=`; what follows belongs to them.
fn findings(entries: &Entries) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for (key, value) in entries.iter() {
        let value = value.to_string_lossy().into_owned();
        match (key, findings.last_mut()) {
            ("kind", _) => findings.push(Finding { kind: value, descriptor: None, text: String::new() }),
            ("text", Some(finding)) => finding.text = value,
            ("fd", Some(finding)) => finding.descriptor = Some(value),
            _ => {}
        }
    }
    findings.retain(|finding| !finding.text.is_empty());
    findings
}

/// Where descriptors were opened, from a boot with `origins`: number, then `FILE:LINE`.
pub fn origins(dir: &ControlDir) -> Vec<(String, String)> {
    let report = Entries::read(&dir.file("report")).unwrap_or_default();
    let split = |text: String| text.split_once(':').map(|(number, place)| (number.to_owned(), place.to_owned()));
    report.texts("fd_origin").filter_map(split).collect()
}

/// One report of all findings, as the error message of the freeze.
pub fn refusal(findings: &[Finding], origins: &[(String, String)]) -> Failure {
    let lines: Vec<String> = findings
        .iter()
        .map(|finding| {
            let number = finding.descriptor.clone().or_else(|| descriptor_in(&finding.text));
            let origin = origins.iter().rev().find(|(origin, _)| Some(origin) == number.as_ref());
            let text = match origin {
                Some((_, place)) => with_origin(&finding.text, place),
                None => finding.text.clone(),
            };
            if text.starts_with("cannot freeze") {
                text
            } else {
                format!("cannot freeze: {text}")
            }
        })
        .collect();
    Failure::refusal(lines.join("\nsnapboot: "))
}

/// The number in a text about `descriptor N`.
fn descriptor_in(text: &str) -> Option<String> {
    let rest = text.split_once("descriptor ")?.1;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

/// Puts the place where it was opened behind the first sentence.
fn with_origin(text: &str, place: &str) -> String {
    match text.find(". ") {
        Some(end) => format!("{}, opened by {place}{}", &text[..end], &text[end..]),
        None => format!("{}, opened by {place}.", text.trim_end_matches('.')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(text: &str) -> Finding {
        Finding { kind: "descriptor".into(), descriptor: None, text: text.into() }
    }

    #[test]
    fn a_refusal_lists_every_finding_and_where_descriptors_came_from() {
        let findings = [
            finding("descriptor 7 is a connected TCP socket (127.0.0.1:6379). Close it in a before_freeze hook."),
            finding("memory at 7f00-7f01 is shared and writable."),
        ];
        let origins = [("7".to_owned(), "redis/connection.py:559".to_owned())];
        let message = refusal(&findings, &origins).message;
        assert_eq!(
            message,
            "cannot freeze: descriptor 7 is a connected TCP socket (127.0.0.1:6379), opened by redis/connection.py:559. \
             Close it in a before_freeze hook.\nsnapboot: cannot freeze: memory at 7f00-7f01 is shared and writable."
        );
    }

    #[test]
    fn findings_are_read_entry_by_entry() {
        let entries = Entries::parse(b"kind=descriptor\0fd=7\0text=a\0kind=timer\0text=b\0kind=cut off\0");
        let read = findings(&entries);
        assert_eq!(read.len(), 2);
        assert_eq!(
            (read[0].kind.as_str(), read[0].descriptor.as_deref(), read[0].text.as_str()),
            ("descriptor", Some("7"), "a")
        );
        assert_eq!((read[1].kind.as_str(), read[1].text.as_str()), ("timer", "b"));
    }
}
