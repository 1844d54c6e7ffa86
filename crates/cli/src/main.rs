//! The `snapboot` command: arguments in, text, tables and an exit status out. One module for each subcommand.
#![forbid(unsafe_code)]

mod archive;
mod arguments;
mod check;
mod describe;
mod enable;
mod explain;
mod freeze;
mod human;
mod inspect;
mod install;
mod list;
mod openmetrics;
mod ordinary;
mod refreeze;
mod remote;
mod render;
mod run;
mod spinner;
mod starts;
mod time;
mod verify;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use failure::{Failure, Kind, Result};
use store::{background, builder, eviction, fallback, learn};

use arguments::Subcommand;

/// Exit status for the user's mistakes and for refusals.
const REFUSED: u8 = 2;
/// Exit status if the program itself failed, or if the answer to a question is no.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let result = at_once(&words).unwrap_or_else(subcommand);
    ExitCode::from(result.unwrap_or_else(|failure| report_failure(&failure)))
}

/// Subcommands on the way of a start, and those that the store starts by itself: handled without parsing options, which takes time. None
/// for any other.
fn at_once(words: &[OsString]) -> Option<Result<u8>> {
    let (subcommand, rest) = words.get(1..)?.split_first()?;
    match (subcommand.to_str()?, rest) {
        ("run", [hyphens, command @ ..]) if hyphens == "--" && !command.is_empty() => {
            Some(run::main(command, eviction::size_limit(), false, None))
        }
        ("run", [option, starts, hyphens, command @ ..])
            if option == run::STARTS && hyphens == "--" && !command.is_empty() =>
        {
            Some(run::main(command, eviction::size_limit(), false, Some(Path::new(starts))))
        }
        ("run", [option, hyphens, command @ ..])
            if option == "--no-freeze" && hyphens == "--" && !command.is_empty() =>
        {
            Some(run::main(command, eviction::size_limit(), true, None))
        }
        ("run", [first, ..]) if !first.as_encoded_bytes().starts_with(b"-") => {
            Some(run::main(rest, eviction::size_limit(), false, None))
        }
        (fallback::SUBCOMMAND, words) => Some(run::fallback(words)),
        (learn::SUBCOMMAND, words) => {
            learn::from(words);
            Some(Ok(0))
        }
        (background::SUBCOMMAND, words) => {
            builder::in_background(words);
            Some(Ok(0))
        }
        _ => None,
    }
}

fn subcommand() -> Result<u8> {
    match arguments::parse().subcommand {
        Subcommand::Freeze(arguments) => freeze::main(&arguments),
        Subcommand::Refreeze(arguments) => refreeze::main(&arguments),
        Subcommand::Run(arguments) => {
            let limit = arguments.store_size.unwrap_or_else(eviction::size_limit);
            run::main(&arguments.words, limit, arguments.no_freeze, None)
        }
        Subcommand::Install(arguments) => install::install(&arguments),
        Subcommand::Uninstall(arguments) => install::uninstall(&arguments),
        Subcommand::List(arguments) => list::main(&arguments),
        Subcommand::Shellenv(arguments) => install::shellenv(&arguments),
        Subcommand::Enable(arguments) => enable::enable(&arguments),
        Subcommand::Disable(arguments) => enable::disable(&arguments),
        Subcommand::Archive(arguments) => archive::main(&arguments.action),
        Subcommand::Remote(arguments) => remote::main(&arguments.action),
        Subcommand::Inspect(arguments) => inspect::main(&arguments),
        Subcommand::Verify(arguments) => verify::main(&arguments),
        Subcommand::Check(arguments) => check::main(&arguments),
        Subcommand::Time(arguments) => time::main(&arguments),
        Subcommand::Explain(arguments) => explain::main(&arguments),
        Subcommand::Completion(arguments) => describe::completion(&arguments),
        Subcommand::Manual(arguments) => describe::manual(&arguments),
        Subcommand::Reference(arguments) => describe::reference(&arguments),
        Subcommand::Tables(_) => describe::tables(),
        Subcommand::Confined(arguments) => Err(::freeze::run_confined(&arguments.program)),
        Subcommand::Watched(arguments) => ::freeze::run_watched(arguments.dir.as_deref()).map_or(Ok(REFUSED), Err),
        Subcommand::Traced(arguments) => {
            Err(::freeze::run_traced(Path::new(&arguments.command[0]), &arguments.command[1..]))
        }
    }
}

/// Reports a failure to the user; returns the exit status.
fn report_failure(failure: &Failure) -> u8 {
    render::message(&format!("snapboot: {failure}"));
    status(failure)
}

/// The exit status that a failure ends with.
fn status(failure: &Failure) -> u8 {
    match failure.kind {
        Kind::Refused => REFUSED,
        Kind::Failed => FAILED,
    }
}
