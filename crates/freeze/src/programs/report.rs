//! The reports of front end and freezer about a boot, and their meaning for the user.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use failure::{Failure, Result};
use image_file::info::LeftOut;
use inputs::attributes::Attribute;
use judge::entries::Entries;
use judge::environment::Environment;
use judge::environment_inputs::EnvironmentInputs;
use judge::findings::{self, Finding};
use judge::reads::{Early, Reads};

use super::Freeze;
use crate::boot::{Report, Searched};
use crate::boot_inputs::{attributes, Importer};
use crate::control_dir::ControlDir;

/// The front end's exit statuses.
const WRITTEN: i32 = 0;
const USER_ERROR: i32 = 2;
const REFUSED: i32 = 3;
/// The front end could not write its report.
const NOT_WRITTEN: i32 = 5;
/// The freezer's own status when it cannot continue.
const FREEZER_FAILED: i32 = 4;
/// Signals that come from the system and from other users rather than from the program.
const FROM_OUTSIDE: [i32; 6] = [libc::SIGKILL, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGXCPU, libc::SIGXFSZ];

const LOST_THREAD: &str = "was started while the program booted, and its thaws would be without it, as forked processes are; start it when it \
                           is needed, or in an after_thaw hook";

/// What a boot has come to: its report, or why it cannot be frozen.
type Outcome = Result<std::result::Result<Report, Vec<Finding>>>;

/// Reads the reports of a boot in this environment after its runtime ended with `status`. `said` says whether it printed anything.
pub fn outcome(freeze: &Freeze<'_>, environment: &Environment, status: ExitStatus, said: bool) -> Outcome {
    let (dir, runtime) = (freeze.dir, &freeze.program.runtime);
    let read =
        |name: &str| Entries::read(&dir.file(name)).map_err(|error| Failure::io("read", &dir.file(name), &error));
    let report = read("report")?;
    // A child that ran trial imports first adds its look-ups.
    let mut importers = Importer::parse_all(&report);
    importers.extend(Importer::parse_all(&read("importers")?));
    let (notes, mut findings): (Vec<_>, Vec<_>) =
        findings::read(&read("findings")?).into_iter().partition(Finding::is_note);
    let site = if report.all("site").next().is_some() { read("site")? } else { Entries::default() };
    let reads = Reads::gather(&[&report, &site], &read("noted")?, runtime.language, environment);
    let inputs = EnvironmentInputs { environment, reads: &reads };
    let mut missed = inputs.findings();
    missed.extend(reads.early.iter().map(Early::finding));
    attributes::add(&mut findings, attributes::reported(&report, false));
    missed.extend(report.texts("secret_kept").map(|what| secret_kept(&what)));
    if !findings.is_empty() || status.code() == Some(WRITTEN) {
        findings.extend(missed.iter().cloned());
    }
    // Nobody would see a warning.
    if freeze.store().is_some() {
        findings.extend(report.texts("repeats").map(|text| Finding::new("random", text)));
        findings.extend(report.texts("thread").map(|thread| Finding::new("thread", format!("{thread} {LOST_THREAD}"))));
    }
    let has_read_secrets = inputs.secrets_read().next().is_some();
    let errors: Vec<String> = report.texts("error").collect();
    let texts = |key| report.texts(key).collect::<Vec<_>>();
    let text = |field: OsString| field.to_string_lossy().into_owned();
    let pairs = |key| report.pairs(key).map(|(one, other)| (text(one), text(other))).collect::<Vec<_>>();
    let first = |key| report.texts(key).next();
    match status.code() {
        _ if !findings.is_empty() => Ok(Err(findings)),
        Some(WRITTEN) if report.all("runtime").next().is_some() => Ok(Ok(Report {
            said,
            knows_start: first("evidence").is_some(),
            only_searches: first("evidence").is_some_and(|what| what == "search path"),
            searched: Searched {
                names: [&report, &site].into_iter().flat_map(|it| it.all("searched")).map(OsString::from).collect(),
                directories: report.all("search_path").map(PathBuf::from).collect(),
            },
            differs: texts("differs"),
            picked: texts("picked"),
            held: pairs("held"),
            values_compared: pairs("value_compared"),
            loaded: report.all("loaded").map(PathBuf::from).collect(),
            importers: Importer::merged(importers),
            repeated: attributes::reported(&report, true),
            compared: texts("compared"),
            preloaded: texts("preloaded"),
            learnt: texts("learnt"),
            patterns: first("patterns").and_then(|count| count.parse().ok()).unwrap_or_default(),
            left_out: pairs("left_out").into_iter().map(LeftOut::from).collect(),
            warnings: [texts("warning"), texts("repeats")]
                .concat()
                .into_iter()
                .chain(kept_warnings(&report))
                .chain(notes.into_iter().map(|note| note.text))
                .collect(),
            left: first("left"),
            guards: report.all("guard").map(OsString::from).collect(),
            has_read_secrets,
            derived: texts("derived"),
            runtime: first("runtime"),
            reads,
        })),
        Some(WRITTEN) => Err(Failure::failed(format!(
            "the program ended by itself before its freeze point (exit status 0), so there is nothing to freeze. It probably \
             exits while it loads; load less with --preload, or guard its exit ({}).",
            runtime.label
        ))),
        Some(USER_ERROR) if report.all("unexpected").next().is_some() => Err(unexpected(&report)),
        Some(USER_ERROR) if !errors.is_empty() => Err(Failure::refusal(errors.join("\nsnapboot: "))),
        Some(REFUSED) if errors.is_empty() => {
            Err(Failure::failed("the freezer refused, but gave no reason. This is an error in Snapboot: report it."))
        }
        // The freezer failed: out of memory, or killed.
        Some(REFUSED) => Err(Failure::passing(errors.join("\nsnapboot: "))),
        Some(NOT_WRITTEN) => Err(Failure::failed(
            "Snapboot could not write down what it found while the program booted. Most likely the program set a limit of open files \
             below 110 (RLIMIT_NOFILE), or gave up the right to write files: leave that to the main part.",
        )),
        Some(FREEZER_FAILED) if errors.is_empty() => Err(Failure::passing(
            "the freezer ended with status 4 instead of writing the image, probably because it found no memory (ulimit -v, -d).",
        )),
        code => {
            missed.extend(EnvironmentInputs { environment, reads: &reads }.made_up());
            Err(failed(code, status, &errors, &missed))
        }
    }
}

/// The outcome of a boot, judged with what the recorder saw.
pub fn judged(outcome: Outcome, set: &BTreeSet<Attribute>) -> Outcome {
    let mut seen = attributes::seen(set, outcome.is_ok()).peekable();
    let mut findings = match outcome {
        Ok(Err(findings)) => findings,
        outcome if seen.peek().is_none() => return outcome,
        _ => Vec::new(),
    };
    attributes::add(&mut findings, seen);
    Ok(Err(findings))
}

/// An error in a front end's own code: whatever the program did, it starts the ordinary way.
fn unexpected(report: &Entries) -> Failure {
    let errors: Vec<String> = report.texts("unexpected").collect();
    Failure::refusal(format!(
        "cannot freeze: Snapboot itself failed in this process, and the program is not at fault: {}. Probably the program has changed an \
         object or a method of the interpreter that Snapboot relies on. Leave the code that does so to the main part, and report this: \
         it should work, or be refused by name.",
        errors.join("; ")
    ))
}

/// The finding about a secret in a place where no thaw can replace it.
fn secret_kept(what: &str) -> Finding {
    Finding::new(
        "secret",
        format!("{what}, where a thaw cannot replace it; compute that at each start: with snapboot.defer (Snapboot.defer in Ruby), or \
            after the freeze point"),
    )
}

/// The program's own failure; its traceback was printed before. `missed` is what it read and did not see, or saw
/// changed.
fn failed(code: Option<i32>, status: ExitStatus, errors: &[String], missed: &[Finding]) -> Failure {
    let mut message = String::from("cannot freeze: the program failed while it booted");
    match (code, status.signal()) {
        (Some(code), _) => write!(message, " (exit status {code}; its output stands above)"),
        (_, Some(signal)) => write!(message, " (killed by {})", signal_name(signal)),
        _ => Ok(()),
    }
    .unwrap_or_default();
    for error in errors {
        message.push_str(": ");
        message.push_str(error);
    }
    message.push_str(
        ". Start it the ordinary way with the same environment; if it fails there too, fix that first, and pass \
                      variables that it needs with --env NAME.",
    );
    for finding in missed {
        message.push_str("\nsnapboot: cannot freeze: ");
        message.push_str(&finding.to_string());
    }
    let is_passing = status.signal().is_some_and(|signal| FROM_OUTSIDE.contains(&signal));
    Failure { is_passing, ..Failure::failed(message) }
}

fn signal_name(signal: i32) -> String {
    signal_hook::low_level::signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

/// Warnings about objects that keep a time from the boot, or the id of the process.
fn kept_warnings(report: &Entries) -> impl Iterator<Item = String> + '_ {
    [("time", "time"), ("pid", "process number")].into_iter().filter_map(|(key, what)| kept_as(report, key, what))
}

fn kept_as(report: &Entries, key: &str, what: &str) -> Option<String> {
    /// Maximum of names in the message.
    const MAX: usize = 3;
    let names: Vec<String> = report.texts(key).collect();
    let more = if names.len() > MAX { format!(" and {} more", names.len() - MAX) } else { String::new() };
    (!names.is_empty()).then(|| {
        format!(
            "the {what} of the freeze is kept in {}{more}; where each start should have its own, set it in snapboot.defer (Python) or \
             Snapboot.defer (Ruby)",
            names[..names.len().min(MAX)].join(", ")
        )
    })
}

/// Where descriptors were opened and attributes changed, from a boot with `origins`: number or name, then `FILE:LINE`.
pub fn origins(dir: &ControlDir) -> Vec<(String, String)> {
    let read = |name: &str| Entries::read(&dir.file(name)).unwrap_or_default();
    let split = |text: String| text.split_once(':').map(|(of, place)| (of.to_owned(), place.to_owned()));
    let (report, attributes) = (read("report"), read("attribute_origins"));
    report.texts("fd_origin").chain(attributes.texts("attribute_origin")).filter_map(split).collect()
}
