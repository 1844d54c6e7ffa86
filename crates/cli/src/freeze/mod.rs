//! `snapboot freeze`: from its arguments to a request, and from what came of that to words and an exit status.

mod mistakes;
mod progress;
mod summary;

use std::ffi::OsString;

use failure::{Failure, Result};
use freeze::{Cpu, FreezeOutcome, FreezeRequest};
use image_file::info::Origin;
use installation::Installation;
use runtime::search_path;

use crate::arguments::{self, Freeze};
use crate::render;
use mistakes::{misplaced_options, preloads, training};

/// Runs the subcommand; returns the exit status.
pub fn main(arguments: &Freeze) -> Result<u8> {
    let request = request(arguments)?;
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(note) = misplaced_options(&arguments.command, &words) {
        render::tell(&format!("snapboot: note: {note}"));
    }
    let progress = crate::progress::Progress::start();
    let outcome = freeze::freeze(&request, &progress);
    drop(progress);
    told(outcome)
}

/// Tells what came of a freeze; returns the exit status.
pub fn told(outcome: FreezeOutcome) -> Result<u8> {
    match outcome {
        FreezeOutcome::Written(written) => {
            for warning in &written.warnings {
                render::tell(&format!("snapboot: warning: {warning}"));
            }
            render::print(&summary::text(&written)).map(|()| 0)
        }
        FreezeOutcome::Interrupted(signal) => Ok(die_of(signal)),
        outcome => Err(failure_of(outcome)),
    }
}

/// What to say of a freeze that has written no image.
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

fn request(arguments: &Freeze) -> Result<FreezeRequest> {
    Ok(FreezeRequest {
        command: arguments.command.clone(),
        output: arguments.output.clone(),
        preloads: preloads(&arguments.preload)?,
        recipes: !arguments.no_recipe,
        training: training(&arguments.train, arguments.no_train)?,
        environment: arguments.environment.clone(),
        withheld: arguments.withheld.clone(),
        policy: arguments.policy.number(),
        check_pages: arguments.check_pages,
        cpu: match arguments.cpu {
            arguments::Cpu::Native => Cpu::Native,
            arguments::Cpu::Baseline => Cpu::Baseline,
        },
        variants: arguments.variants,
        max_age: arguments.max_age,
        max_thaws: arguments.max_thaws,
        guards: arguments.guards.clone(),
        origin: origin(&arguments.command),
        store: None,
        installation: Installation::find()?,
    })
}

/// What this process was called with. `command`: the last of its words. None when some of it is no text.
fn origin(command: &[OsString]) -> Option<Origin> {
    let text = |string: OsString| string.into_string().ok();
    let words: Vec<String> = std::env::args_os().map(text).collect::<Option<_>>()?;
    command.iter().map(|word| word.to_str()).collect::<Option<Vec<_>>>()?;
    let mut options = words.get(2..words.len().checked_sub(command.len())?)?.to_vec();
    if options.last().is_some_and(|word| word == "--") {
        options.pop();
    }
    Some(Origin {
        options,
        directory: text(std::env::current_dir().ok()?.into_os_string())?,
        search_path: text(search_path())?,
    })
}

/// Ends the process the way the signal would have, so that a shell sees what happened.
pub fn die_of(signal: i32) -> u8 {
    // It returns only for signals that do not end a process.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    128 + signal as u8
}
