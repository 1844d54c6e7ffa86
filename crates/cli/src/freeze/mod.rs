//! `snapboot freeze`: turns its arguments into a request, and the outcome into words and an exit status.

mod json;
mod mistakes;
mod project;
mod settings;
mod step_words;
mod summary;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory};
use failure::{Failure, Result};
use freeze::{Cpu, FreezeOutcome, FreezeRequest};
use image_file::info::{Info, Origin};
use image_file::ImageFile;
use inputs::cpu::Level;
use installation::Installation;
use runtime::search_path;
use store::{PulledFile, SharedFile};

use crate::arguments::{self, Arguments, Freeze};
use crate::render;
use crate::spinner::Spinner;
use mistakes::{misplaced_options, preloads, training};
use project::Completed;

/// Options that do not change the image's content.
const OF_A_CALL: [&str; 4] = ["json", "no-remote", "output", "quiet"];

/// How a freeze is reported.
pub struct Reporting {
    pub is_quiet: bool,
    is_json: bool,
    /// The user's current directory.
    here: Option<PathBuf>,
    /// The file of settings that were not on the command line.
    settings: Option<PathBuf>,
}

impl Reporting {
    pub fn new(is_quiet: bool, is_json: bool) -> Self {
        Reporting { is_quiet, is_json, here: std::env::current_dir().ok(), settings: None }
    }
}

/// Runs the subcommand; returns the exit status.
pub fn main(arguments: &Freeze) -> Result<u8> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let mut reporting = Reporting::new(arguments.verbosity.quiet, arguments.json);
    let outcome = match arguments.command.is_empty() {
        true => project::complete(&words).and_then(|Completed { arguments, words, file }| {
            reporting.settings = Some(file);
            take_or_freeze(&arguments, &words, &reporting)
        }),
        false => take_or_freeze(arguments, &words, &reporting),
    };
    match outcome {
        Ok(Outcome::Pulled(pulled)) => report_pulled(&pulled, &reporting),
        Ok(Outcome::Frozen(outcome)) => report(outcome, &reporting),
        Err(failure) => report(FreezeOutcome::Failed(failure), &reporting),
    }
}

/// What came of a command line.
enum Outcome {
    /// The remote store had the image.
    Pulled(PulledFile),
    /// It was made here, or could not.
    Frozen(FreezeOutcome),
}

/// Takes from the remote store, or else freezes, what the words of a command line say.
fn take_or_freeze(arguments: &Freeze, words: &[OsString], reporting: &Reporting) -> Result<Outcome> {
    let request = request(arguments, words)?;
    let spinner = Spinner::start(reporting.is_quiet);
    if let Some(file) = &reporting.settings {
        spinner.print_note(&format!("freezing as {} says", file.display()));
    }
    if let Some(note) = misplaced_options(&arguments.command, words) {
        spinner.print_note(&note.to_string());
    }
    let shared = if arguments.no_remote { None } else { SharedFile::for_request(&request, &spinner)? };
    let Some(shared) = shared else { return Ok(Outcome::Frozen(freeze::freeze(&request, &spinner))) };
    spinner.phase("looking for the image in the remote store");
    match shared.pull() {
        Ok(Some(pulled)) => return Ok(Outcome::Pulled(pulled)),
        Ok(None) => {}
        Err(failure) => spinner.print_note(&format!("the image is made here: {failure}")),
    }
    let outcome = freeze::freeze(&request, &spinner);
    if let FreezeOutcome::Written(written) = &outcome {
        spinner.phase("giving the image to the remote store");
        if let Err(failure) = shared.push(written) {
            spinner.print_note(&format!("the remote store does not get the image: {failure}"));
        }
    }
    Ok(Outcome::Frozen(outcome))
}

/// Reports an image that was taken from the remote store; returns the exit status.
fn report_pulled(pulled: &PulledFile, reporting: &Reporting) -> Result<u8> {
    let warnings = Info::read(&ImageFile::open(&pulled.path)?.tables()).warnings;
    if reporting.is_json {
        json::print_pulled(pulled, &warnings, reporting.settings.as_deref())?;
    }
    for warning in &warnings {
        render::message(&format!("snapboot: warning: {warning}"));
    }
    if !reporting.is_quiet && !reporting.is_json {
        render::print(&(summary::of_pulled(pulled, reporting.here.as_deref()) + "\n"))?;
    }
    Ok(0)
}

/// Reports the outcome of a freeze; returns the exit status.
pub fn report(outcome: FreezeOutcome, reporting: &Reporting) -> Result<u8> {
    if reporting.is_json {
        json::print(&outcome, reporting.settings.as_deref())?;
    }
    match outcome {
        FreezeOutcome::Written(written) => {
            for warning in &written.warnings {
                render::message(&format!("snapboot: warning: {warning}"));
            }
            if !reporting.is_quiet && !reporting.is_json {
                render::print(&summary::text(&written, reporting.here.as_deref()))?;
            }
            Ok(0)
        }
        FreezeOutcome::Interrupted(signal) => Ok(die_of(signal)),
        outcome => Ok(crate::report_failure(&failure_of(outcome))),
    }
}

/// The failure for a freeze that has written no image.
pub fn failure_of(outcome: FreezeOutcome) -> Failure {
    match outcome {
        FreezeOutcome::Refused(findings) => {
            let lines: Vec<String> = findings.iter().map(|finding| format!("cannot freeze: {finding}")).collect();
            Failure::refusal(lines.join("\nsnapboot: "))
        }
        FreezeOutcome::Failed(failure) => failure,
        FreezeOutcome::Written(_) | FreezeOutcome::Interrupted(_) => Failure::failed("the freeze was interrupted."),
    }
}

fn request(arguments: &Freeze, words: &[OsString]) -> Result<FreezeRequest> {
    Ok(FreezeRequest {
        command: arguments.command.clone(),
        output: arguments.output.clone(),
        preloads: preloads(&arguments.preload)?,
        at: arguments.at.clone(),
        recipes: !arguments.no_recipe && arguments.at.is_none(),
        training: training(&arguments.train, arguments.no_train || arguments.at.is_some())?,
        environment: arguments.environment.clone(),
        withheld: arguments.withheld.clone(),
        policy: arguments.policy.number(),
        check_pages: arguments.check_pages,
        cpu: arguments.cpu.map(|cpu| match cpu {
            arguments::Cpu::Native => Cpu::Native,
            arguments::Cpu::V2 => Cpu::Level(Level::V2),
            arguments::Cpu::V3 => Cpu::Level(Level::V3),
            arguments::Cpu::V4 => Cpu::Level(Level::V4),
        }),
        variants: arguments.variants,
        max_age: arguments.max_age,
        max_thaws: arguments.max_thaws,
        guards: arguments.guards.clone(),
        origin: origin(&arguments.command, words),
        store: None,
        hash_seed: None,
        installation: Installation::find()?,
    })
}

/// The words that make the same image again. `command`: the last of the words. None if some of it is not text.
fn origin(command: &[OsString], words: &[OsString]) -> Option<Origin> {
    let text = |string: &OsStr| string.to_str().map(str::to_owned);
    command.iter().map(|word| word.to_str()).collect::<Option<Vec<_>>>()?;
    let given = parsed(words);
    let mut options = Vec::new();
    for option in Arguments::command().find_subcommand("freeze")?.get_opts() {
        let (id, long) = (option.get_id().as_str(), option.get_long()?);
        if OF_A_CALL.contains(&long) || !is_typed(&given, id) {
            continue;
        }
        match option.get_action().takes_values() {
            true => options.extend(
                given
                    .get_raw(id)?
                    .map(|value| Some(format!("--{long}={}", value.to_str()?)))
                    .collect::<Option<Vec<_>>>()?,
            ),
            false => options.push(format!("--{long}")),
        }
    }
    Some(Origin {
        options,
        directory: text(std::env::current_dir().ok()?.as_os_str())?,
        search_path: text(&search_path())?,
    })
}

/// Parses the words of a `snapboot freeze` with clap.
fn parsed(words: &[OsString]) -> ArgMatches {
    let all = Arguments::command().try_get_matches_from(words).unwrap_or_else(|mistake| mistake.exit());
    all.subcommand_matches("freeze").expect("words of this subcommand").clone()
}

/// Whether an option stands on the command line, and is not at its default.
fn is_typed(given: &ArgMatches, id: &str) -> bool {
    given.value_source(id) == Some(ValueSource::CommandLine)
}

/// Ends the process as the signal would have, so that a shell sees what happened.
pub fn die_of(signal: i32) -> u8 {
    // It returns only for signals that do not end a process.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    128 + signal as u8
}
