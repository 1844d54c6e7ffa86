//! What front end and freezer said about a boot, and what that means for the user.

use std::ffi::OsString;
use std::fmt::Write;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use super::control_dir::ControlDir;
use super::environment::Environment;
use super::inputs::Importer;
use super::reads::{Early, Reads};
use super::remedies;
use crate::entries::Entries;
use crate::failure::{reason, Failure, Result};
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
    /// Directories in which Python looked for modules.
    pub importers: Vec<Importer>,
    /// Names that were preloaded.
    pub preloaded: Vec<String>,
    /// What it read of its environment, and asked about machine, user and process.
    pub reads: Reads,
    /// What the front end compares by itself after a thaw, in words.
    pub compared: Vec<String>,
    /// Where the program asked for the current directory, if it seems only to keep it, and a thaw can renew that.
    pub keeps_folder: Vec<String>,
    /// What it keeps of it: where, as far as that is known, and what comes after it.
    pub kept: Vec<OsString>,
    /// The first import of a Python main part that was left to each start; empty for a Ruby script of which nothing was loaded.
    pub left: Option<String>,
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
    /// The finding in words: `FACT; REMEDY`.
    pub text: String,
}

impl Finding {
    /// A finding that is not about a descriptor.
    pub fn new(kind: &str, text: String) -> Finding {
        Finding { kind: kind.to_owned(), descriptor: None, text }
    }

    /// Whether it only tells something, such as that other threads are dropped.
    fn is_note(&self) -> bool {
        self.kind == "note"
    }
}

/// How a boot went.
pub enum Outcome {
    /// The memory is written.
    Written(Box<Report>),
    /// The freezer refused, for these reasons.
    Refused(Vec<Finding>),
}

/// Reads what was reported in `dir` after the runtime, which was given `environment`, ended with `status`.
pub fn outcome(dir: &ControlDir, status: ExitStatus, runtime: &Runtime, environment: &Environment) -> Result<Outcome> {
    let read =
        |name: &str| Entries::read(&dir.file(name)).map_err(|error| Failure::io("read", &dir.file(name), &error));
    let report = read("report")?;
    // A child that ran imports first adds what it was asked for.
    let mut importers = Importer::all(&report);
    importers.extend(Importer::all(&read("asked")?));
    let (notes, mut findings): (Vec<_>, Vec<_>) = findings(&read("findings")?).into_iter().partition(Finding::is_note);
    let site = if report.all("site").next().is_some() { read("site")? } else { Entries::default() };
    let reads = Reads::gather(&[&report, &site], &read("noted")?, runtime.language, environment);
    let mut missed = environment.findings(&reads);
    missed.extend(reads.early.iter().map(Early::finding));
    if !findings.is_empty() || status.code() == Some(WRITTEN) {
        findings.extend(missed.iter().cloned());
    }
    let errors: Vec<String> = report.texts("error").collect();
    match status.code() {
        _ if !findings.is_empty() => Ok(Outcome::Refused(findings)),
        Some(WRITTEN) if report.all("runtime").next().is_some() => Ok(Outcome::Written(Box::new(Report {
            keeps_folder: report.texts("folder").collect(),
            kept: report.all("kept").map(OsString::from).collect(),
            loaded: report.all("loaded").map(PathBuf::from).collect(),
            importers: Importer::merged(importers),
            reads,
            compared: report.texts("compared").collect(),
            preloaded: report.texts("preloaded").collect(),
            warnings: report.texts("warning").chain(kept(&report)).chain(notes.into_iter().map(|note| note.text)).collect(),
            left: report.texts("left").next(),
            guards: report.all("guard").map(OsString::from).collect(),
            runtime: report.texts("runtime").next(),
        }))),
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
        code => Err(failed(code, status, &errors, &missed)),
    }
}

/// The program's own failure; its traceback stands above. `missed`: what it read and did not see.
fn failed(code: Option<i32>, status: ExitStatus, errors: &[String], missed: &[Finding]) -> Failure {
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
    for finding in missed {
        message.push_str("\nsnapboot: ");
        message.push_str(&finding.sentence(None));
    }
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

/// Warnings of what keeps a time that was taken while booting, or the number of the process.
fn kept(report: &Entries) -> impl Iterator<Item = String> + '_ {
    [("time", "time"), ("pid", "process number")].into_iter().filter_map(|(key, what)| kept_as(report, key, what))
}

fn kept_as(report: &Entries, key: &str, what: &str) -> Option<String> {
    /// As many names are told.
    const MOST: usize = 3;
    let names: Vec<String> = report.texts(key).collect();
    let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
    (!names.is_empty()).then(|| {
        format!(
            "the {what} of the freeze is kept in {}{more}; where each start should have its own, set it in snapboot.defer (Python) or \
             Snapboot.defer (Ruby)",
            names[..names.len().min(MOST)].join(", ")
        )
    })
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
            let place = origins.iter().rev().find(|(number, _)| Some(number) == finding.descriptor.as_ref());
            finding.sentence(place.map(|(_, place)| place.as_str()))
        })
        .collect();
    Failure::refusal(lines.join("\nsnapboot: "))
}

impl Finding {
    /// The finding as the user reads it. Findings are written as `FACT; REMEDY`, those about a descriptor without its number.
    fn sentence(&self, place: Option<&str>) -> String {
        let text = with_reason(self.text.trim_end_matches('.'));
        let (fact, remedy) = text.split_once("; ").unwrap_or((&text, ""));
        let remedy = remedies::known(fact).unwrap_or(remedy);
        let number = self.descriptor.as_ref().map(|number| format!("descriptor {number} ")).unwrap_or_default();
        let opened = place.map(|place| format!(", opened by {place}")).unwrap_or_default();
        let remedy = if remedy.is_empty() { String::new() } else { format!(" {}.", capitalised(remedy)) };
        format!("cannot freeze: {number}{fact}{opened}.{remedy}")
    }
}

/// Puts the system's words in place of `(errno N)`; the freezer has none.
fn with_reason(text: &str) -> String {
    let number = text.split_once("(errno ").and_then(|(before, rest)| Some((before, rest.split_once(')')?)));
    let Some((before, (number, after))) = number else { return text.to_owned() };
    let Ok(number) = number.parse() else { return text.to_owned() };
    let error = io::Error::from_raw_os_error(number);
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space, or choose another place with -o"
        }
        _ => "",
    };
    format!("{before}({}){after}{remedy}", reason(&error))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(descriptor: Option<&str>, text: &str) -> Finding {
        Finding { kind: "any".into(), descriptor: descriptor.map(str::to_owned), text: text.into() }
    }

    #[test]
    fn a_refusal_lists_every_finding_and_where_descriptors_came_from() {
        let findings = [
            finding(Some("7"), "is a connected TCP socket (127.0.0.1:6379); close it in a before_freeze hook"),
            finding(None, "memory 7f00-7f01 is shared and writable"),
            finding(None, "writing the pages failed (errno 28)"),
        ];
        let origins = [("7".to_owned(), "redis/connection.py:559".to_owned())];
        let message = refusal(&findings, &origins).message;
        assert_eq!(
            message,
            "cannot freeze: descriptor 7 is a connected TCP socket (127.0.0.1:6379), opened by redis/connection.py:559. \
             Close it in a before_freeze hook.\n\
             snapboot: cannot freeze: memory 7f00-7f01 is shared and writable.\n\
             snapboot: cannot freeze: writing the pages failed (no space left on device). \
             Free some space, or choose another place with -o."
        );
    }

    #[test]
    fn a_library_that_is_known_has_a_remedy_of_its_own() {
        let lock = "holds a POSIX file lock on /h/.cache/x/.onnxruntime/onnxruntime.db, and a thaw would not hold it; release it";
        let sentence = finding(Some("100"), lock).sentence(None);
        assert!(sentence.contains(". Set ORT_DISABLE_TELEMETRY=1, for the freeze"), "{sentence}");
        assert!(!sentence.contains("elease it"), "{sentence}");
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
