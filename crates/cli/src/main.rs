//! The `snapboot` command: one room for each subcommand.
#![forbid(unsafe_code)]

mod answers;
mod archive;
mod arguments;
mod check;
mod child;
mod entries;
mod facts;
mod failure;
mod fault;
mod freeze;
mod human;
mod info;
mod inspect;
mod installation;
mod kind;
mod opened;
mod page;
mod progress;
mod refreeze;
mod rotation;
mod run;
mod runtime;
mod starts;
mod strings;
mod time;
mod verify;
mod why;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Subcommand};

fn main() -> ExitCode {
    let result = match Arguments::parse().subcommand {
        Subcommand::Freeze(arguments) => freeze::main(&arguments),
        Subcommand::Refreeze(arguments) => refreeze::main(&arguments),
        Subcommand::Run(arguments) => run::main(&arguments),
        Subcommand::Archive(arguments) => archive::main(&arguments.action),
        Subcommand::Inspect(arguments) => inspect::main(&arguments),
        Subcommand::Verify(arguments) => verify::main(&arguments),
        Subcommand::Check(arguments) => check::main(&arguments),
        Subcommand::Time(arguments) => time::main(&arguments),
        Subcommand::Confined(arguments) => freeze::confined(&arguments),
        Subcommand::Watched(arguments) => freeze::watched(&arguments),
    };
    match result {
        Ok(status) => ExitCode::from(status),
        Err(failure) => {
            page::tell(&format!("snapboot: {failure}"));
            ExitCode::from(failure.status)
        }
    }
}
