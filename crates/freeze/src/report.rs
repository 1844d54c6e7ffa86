//! The reports of front end and freezer about a boot, and their meaning for the user.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;

use failure::{Failure, Result};
use runtime::Runtime;

use inputs::attributes::Attribute;
use judge::entries::Entries;
use judge::environment::Environment;
use judge::environment_inputs::EnvironmentInputs;
use judge::findings::{self, Finding};
use judge::reads::{Early, Reads};

use super::attributes;
use super::boot_inputs::Importer;
use super::control_dir::ControlDir;

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

/// What a front end reported about a boot that was written.
#[derive(Debug, Default)]
pub struct Report {
    /// Files whose content was loaded.
    pub loaded: Vec<PathBuf>,
    /// Directories in which Python looked modules up.
    pub importers: Vec<Importer>,
    /// Names that were preloaded.
    pub preloaded: Vec<String>,
    /// What was loaded because of training runs.
    pub learnt: Vec<String>,
    /// How many regular expressions were compiled because of training runs.
    pub patterns: usize,
    /// What training runs loaded and this boot did not: names, and reasons.
    pub left_out: Vec<(String, String)>,
    /// What the boot read of its environment, and of machine, user and process.
    pub reads: Reads,
    /// Attributes of the process that the boot changed and a thaw sets again.
    pub repeated: Vec<Attribute>,
    /// What the front end itself compares after a thaw, in words.
    pub compared: Vec<String>,
    /// Whether another start can show what depends on the start.
    pub knows_start: bool,
    /// Whether only its search path does.
    pub only_searches: bool,
    /// Names that were looked up along the search path, and directories in it.
    pub searched: Searched,
    /// Whether the boot printed anything.
    pub said: bool,
    /// Where it differs from another start in more than what a thaw renews.
    pub differs: Vec<String>,
    /// Patterns of variables that make a difference to it, of those that another start had in addition.
    pub picked: Vec<String>,
    /// Facts in a text that cannot be replaced, and the holder of the text.
    pub held: Vec<(String, String)>,
    /// The first import of a Python main part that was left to each start; empty for a Ruby script of which nothing was
    /// loaded.
    pub left: Option<String>,
    /// Facts with whose values the program compared a text of its own, and where.
    pub values_compared: Vec<(String, String)>,
    /// Messages to the user.
    pub warnings: Vec<String>,
    /// Arguments that force the fallback, named by a framework's recipe.
    pub guards: Vec<OsString>,
    /// What the front end knows about secrets that were read.
    pub secrets: Secrets,
    /// Name and version of the runtime, as the runtime reports them.
    pub runtime: Option<String>,
}

/// What a boot reported about its search path.
#[derive(Debug, Default)]
pub struct Searched {
    /// Names that were looked up beyond the variable's directories in the search path.
    pub names: BTreeSet<OsString>,
    /// The directories in the variable's place.
    pub directories: Vec<PathBuf>,
}

/// What is known about secrets after a boot.
#[derive(Debug, Default)]
pub struct Secrets {
    /// Whether any was read.
    pub were_read: bool,
    /// What was derived from them, in words, if the boot looked for that.
    pub derived: Vec<String>,
}

/// The outcome of a boot.
pub enum Outcome {
    /// The memory is written.
    Written(Box<Report>),
    /// The freezer refused, for these reasons.
    Refused(Vec<Finding>),
}

/// Reads the reports in `dir` after the runtime, which had `environment`, ended with `status`.
///
/// `is_unseen` says that nobody would see a warning, such as one that a thaw lacks threads.
pub fn outcome(
    dir: &ControlDir,
    status: ExitStatus,
    runtime: &Runtime,
    environment: &Environment,
    is_unseen: bool,
) -> Result<Outcome> {
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
    let mut missed = EnvironmentInputs { environment, reads: &reads }.findings();
    let reads_secrets = EnvironmentInputs { environment, reads: &reads }.secrets_read().next().is_some();
    missed.extend(reads.early.iter().map(Early::finding));
    attributes::add(&mut findings, attributes::reported(&report, false));
    missed.extend(report.texts("secret_kept").map(|what| secret_kept(&what)));
    if !findings.is_empty() || status.code() == Some(WRITTEN) {
        findings.extend(missed.iter().cloned());
    }
    if is_unseen {
        findings.extend(report.texts("repeats").map(|text| Finding::new("random", text)));
        findings.extend(report.texts("thread").map(|thread| Finding::new("thread", format!("{thread} {LOST_THREAD}"))));
    }
    let errors: Vec<String> = report.texts("error").collect();
    let text = |field: OsString| field.to_string_lossy().into_owned();
    let texts = |(one, other): (OsString, OsString)| (text(one), text(other));
    match status.code() {
        _ if !findings.is_empty() => Ok(Outcome::Refused(findings)),
        Some(WRITTEN) if report.all("runtime").next().is_some() => Ok(Outcome::Written(Box::new(Report {
            said: false, // whoever has listened knows
            knows_start: report.all("evidence").next().is_some(),
            only_searches: report.all("evidence").next().is_some_and(|what| what == "search path"),
            searched: Searched {
                names: [&report, &site].into_iter().flat_map(|it| it.all("searched")).map(OsString::from).collect(),
                directories: report.all("search_path").map(PathBuf::from).collect(),
            },
            differs: report.texts("differs").collect(),
            picked: report.texts("picked").collect(),
            held: report.pairs("held").map(texts).collect(),
            values_compared: report.pairs("value_compared").map(texts).collect(),
            loaded: report.all("loaded").map(PathBuf::from).collect(),
            importers: Importer::merged(importers),
            repeated: attributes::reported(&report, true),
            compared: report.texts("compared").collect(),
            preloaded: report.texts("preloaded").collect(),
            learnt: report.texts("learnt").collect(),
            patterns: report.texts("patterns").next().and_then(|count| count.parse().ok()).unwrap_or_default(),
            left_out: report.pairs("left_out").map(texts).collect(),
            warnings: report.texts("warning").chain(report.texts("repeats")).chain(kept_warnings(&report)).chain(notes.into_iter().map(|note| note.text)).collect(),
            left: report.texts("left").next(),
            guards: report.all("guard").map(OsString::from).collect(),
            secrets: Secrets { were_read: reads_secrets, derived: report.texts("derived").collect() },
            reads,
            runtime: report.texts("runtime").next(),
        }))),
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
            "what was found while the program booted could not be written down. Most likely the program has set a limit of open files below \
             110 while it booted (RLIMIT_NOFILE), or given up the right to write files: leave that to the main part.",
        )),
        Some(FREEZER_FAILED) if errors.is_empty() => Err(Failure::passing(
            "the freezer ended with status 4 instead of writing the image, probably since it found no memory (ulimit -v, -d).",
        )),
        code => {
            missed.extend(EnvironmentInputs { environment, reads: &reads }.made_up());
            Err(failed(code, status, &errors, &missed))
        }
    }
}

/// The outcome of a boot, judged with what the recorder saw.
pub fn judged(outcome: Result<Outcome>, set: &BTreeSet<Attribute>) -> Result<Outcome> {
    let mut seen = attributes::seen(set, outcome.is_ok()).peekable();
    let mut findings = match outcome {
        Ok(Outcome::Refused(findings)) => findings,
        outcome if seen.peek().is_none() => return outcome,
        _ => Vec::new(),
    };
    attributes::add(&mut findings, seen);
    Ok(Outcome::Refused(findings))
}

/// An error in a front end's own code: whatever the program did, it starts the ordinary way.
fn unexpected(report: &Entries) -> Failure {
    let errors: Vec<String> = report.texts("unexpected").collect();
    Failure::refusal(format!(
        "cannot freeze: Snapboot itself met with something unexpected in this process, which is no fault of the program: {}. \
         Probably the program has changed an object or a method of the interpreter that Snapboot relies on. Leave what does so to \
         the main part; and report this, since it should be refused by name or work.",
        errors.join("; ")
    ))
}

/// The finding about a secret in a place where no thaw can replace it.
fn secret_kept(what: &str) -> Finding {
    Finding::new(
        "secret",
        format!("{what}, where a thaw cannot put another value; compute that at each start: with snapboot.defer (Snapboot.defer in Ruby), or after the freeze point"),
    )
}

/// The program's own failure; its traceback was printed before. `missed` is what it read and did not see, or saw
/// changed.
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
