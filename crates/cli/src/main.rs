//! The `snapboot` command: arguments in, text, tables and an exit status out. One module for each subcommand.
#![forbid(unsafe_code)]

mod archive;
mod arguments;
mod check;
mod freeze;
mod human;
mod inspect;
mod progress;
mod refreeze;
mod render;
mod run;
mod starts;
mod strings;
mod time;
mod verify;
mod why;

use std::process::ExitCode;

use failure::{Failure, Kind};

use arguments::Subcommand;

/// Exit status for the user's mistakes and for refusals.
const REFUSED: u8 = 2;
/// Exit status when the program itself failed, or when a question that was asked has the answer no.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let result = match arguments::parse().subcommand {
        Subcommand::Freeze(arguments) => freeze::main(&arguments),
        Subcommand::Refreeze(arguments) => refreeze::main(&arguments),
        Subcommand::Run(arguments) => run::main(&arguments),
        Subcommand::Archive(arguments) => archive::main(&arguments.action),
        Subcommand::Inspect(arguments) => inspect::main(&arguments),
        Subcommand::Verify(arguments) => verify::main(&arguments),
        Subcommand::Check(arguments) => check::main(&arguments),
        Subcommand::Time(arguments) => time::main(&arguments),
        Subcommand::Confined(arguments) => Err(::freeze::run_confined(&arguments.program)),
        Subcommand::Watched(arguments) => ::freeze::run_watched(arguments.dir.as_deref()).map_or(Ok(REFUSED), Err),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            render::tell(&format!("snapboot: {failure}"));
            ExitCode::from(status(&failure))
        }
    }
}

/// The exit status that a failure ends with.
fn status(failure: &Failure) -> u8 {
    match failure.kind {
        Kind::Refused => REFUSED,
        Kind::Failed => FAILED,
    }
}
