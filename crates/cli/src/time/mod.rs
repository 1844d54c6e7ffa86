//! `snapboot time`: measures how long commands take from start to exit, in pairs.

mod counter;
mod histogram;
mod show;
mod spawn;
mod statistics;

use std::ffi::OsString;

use failure::{Failure, Result};

use crate::arguments::Time;
use crate::render;
use crate::spinner::Spinner;
use crate::FAILED;
use spawn::Timed;

/// Starts of each command before the measured ones.
const WARM_UPS: usize = 2;
/// Separates the two commands.
const VERSUS: &str = "--vs";

/// One command and its times.
struct Subject {
    command: Timed,
    /// From start to exit (ms), in the order of the runs.
    wall: Vec<f64>,
    /// Processor time, user and system (ms).
    cpu: Vec<f64>,
    /// Exit statuses other than 0, with the number of occurrences.
    failures: Vec<(String, usize)>,
}

/// Runs the subcommand; returns the exit status.
pub fn main(arguments: &Time) -> Result<u8> {
    let mut subjects: Vec<Subject> = split(&arguments.commands)?
        .into_iter()
        .map(|words| Ok(Subject { command: Timed::new(words)?, wall: vec![], cpu: vec![], failures: vec![] }))
        .collect::<Result<_>>()?;
    let spinner = Spinner::still(false);
    let rounds = WARM_UPS + arguments.runs as usize;
    for round in 0..rounds {
        spinner.phase(format!("round {} of {rounds}", round + 1));
        for subject in &mut subjects {
            if let Some(counter) = subject.command.counter.as_mut().filter(|_| round == WARM_UPS) {
                counter.begin();
            }
            subject.start(round >= WARM_UPS, arguments.allow_failure)?;
        }
    }
    spinner.stop();
    if arguments.json {
        render::print_json(&show::json(&subjects))?;
    } else {
        render::print(&show::page(&subjects))?;
    }
    let failed = subjects.iter().any(|subject| !subject.failures.is_empty() || subject.not_thawed().is_some());
    Ok(if failed && !arguments.allow_failure { FAILED } else { 0 })
}

impl Subject {
    /// How many of the starts of an image have not thawed, and why; None if all have, or it is no image.
    fn not_thawed(&self) -> Option<(usize, String)> {
        let counted = self.command.counter.as_ref()?.counted()?;
        let not_thawed = self.wall.len().saturating_sub(usize::try_from(counted.thaws).ok()?);
        // Guarded starts, and those that another image of the store has taken over, are not counted.
        let unknown = || "snapboot inspect --why, or SNAPBOOT_LOG=1, may tell why".to_owned();
        (not_thawed > 0).then(|| (not_thawed, counted.reason.unwrap_or_else(unknown)))
    }

    /// Starts the command once. A failure in the warm-up ends everything, unless failures are allowed.
    fn start(&mut self, counts: bool, allow_failure: bool) -> Result<()> {
        let run = self.command.run()?;
        if !run.status.success() && !counts && !allow_failure {
            return Err(Failure::failed(self.command.why_it_failed(run.status)));
        }
        if counts {
            self.wall.push(run.wall);
            self.cpu.push(run.cpu);
            if !run.status.success() {
                let status = run.status.to_string();
                match self.failures.iter_mut().find(|(known, _)| *known == status) {
                    Some((_, count)) => *count += 1,
                    None => self.failures.push((status, 1)),
                }
            }
        }
        Ok(())
    }
}

/// One command, or the two on both sides of `--vs`.
fn split(words: &[OsString]) -> Result<Vec<&[OsString]>> {
    let commands: Vec<&[OsString]> = words.split(|word| word == VERSUS).collect();
    // `--vs -- COMMAND` is accepted as well.
    let commands: Vec<&[OsString]> =
        commands.into_iter().map(|words| words.strip_prefix(&[OsString::from("--")]).unwrap_or(words)).collect();
    if commands.len() > 2 || commands.iter().any(|command| command.is_empty()) {
        return Err(Failure::refusal(
            "time takes one command, or two with --vs between them: snapboot time -- COMMAND [ARG...] --vs COMMAND [ARG...].",
        ));
    }
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_at_vs() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        assert_eq!(split(&words("a -n 1")).unwrap(), [words("a -n 1")]);
        assert_eq!(split(&words("a --vs b c")).unwrap(), [words("a"), words("b c")]);
        assert_eq!(split(&words("a --vs -- b")).unwrap(), [words("a"), words("b")]);
        for wrong in ["a --vs", "--vs b", "a --vs b --vs c"] {
            assert_eq!(split(&words(wrong)).unwrap_err().kind, failure::Kind::Refused, "{wrong}");
        }
    }
}
