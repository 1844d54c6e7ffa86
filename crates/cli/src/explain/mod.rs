//! `snapboot explain`: where the time of a start goes, and what to do about it.

mod advice;
mod archived;
mod compared_start;
mod folder;
mod rows;
mod same;
mod show;
mod trial;

use std::ffi::OsString;
use std::path::Path;

use explain::{Advice, Measurement, Report, Start, Subject};
use failure::{Failure, Result};
use freeze::Written;
use image_file::kind::Kind;
use installation::Installation;

use crate::arguments::Explain;
use crate::human;
use crate::spinner::Spinner;
use crate::{render, run};
use same::Comparison;
use trial::{Obstacle, Outcome, Trial};

/// Runs the subcommand; returns the exit status.
pub fn main(arguments: &Explain) -> Result<u8> {
    let spinner = Spinner::still(arguments.verbosity.quiet);
    let _folder = folder::make()?;
    let commands = split(&arguments.words, arguments.diff)?;
    if !arguments.start.is_empty() && (commands.len() < 2 || arguments.start.len() > 2) {
        return Err(Failure::refusal(
            "--start says which starts are compared, one kind for both or one for each: snapboot explain --start ordinary,archive -- \
             COMMAND [ARG...] --vs COMMAND [ARG...].",
        ));
    }
    let shown_again = match commands.as_slice() {
        [words] => saved(words),
        _ => None,
    };
    let report = match shown_again {
        Some(report) => report,
        None => measured(&commands, arguments, &spinner)?,
    };
    spinner.stop();
    let look = show::Look::of_terminal(arguments.all);
    render::print_as_it_is(&match arguments.json {
        true => human::escaped_in_json(&(explain::json(&report) + "\n")),
        false => human::harmless_page(&show::page(&report, &look), look.has_colour),
    })?;
    if let Some(file) = &arguments.html {
        std::fs::write(file, explain::page(&report)).map_err(|error| Failure::io("write", file, &error))?;
    }
    Ok(0)
}

/// The report of `snapboot explain --json` that these words name, if they are one word, a file.
fn saved(words: &[OsString]) -> Option<Report> {
    let [file] = words else { return None };
    explain::saved_report(&trust::look::read_to_string(Path::new(file)).ok()?)
}

/// Measures a command, or the starts to compare.
fn measured(commands: &[&[OsString]], arguments: &Explain, spinner: &Spinner) -> Result<Report> {
    let Found { starts, no_archive, advice } = match commands {
        [words] if !is_image(words) => command(words, arguments, spinner)?,
        several => Found { starts: as_they_are(several, arguments, spinner)?, no_archive: None, advice: Vec::new() },
    };
    Ok(Report {
        starts,
        no_archive,
        advice,
        snapboot: env!("CARGO_PKG_VERSION").to_owned(),
        machine: machine(),
        when: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    })
}

/// One command, or the two on both sides of `--vs`. `diff`: each word is one.
fn split(words: &[OsString], diff: bool) -> Result<Vec<&[OsString]>> {
    if diff {
        return match words {
            [_, _] => Ok(words.chunks(1).collect()),
            _ => Err(Failure::refusal(format!(
                "--diff takes two images, reports of --json or commands of one word each, not {}. For commands with arguments: \
                 snapboot explain -- COMMAND [ARG...] --vs COMMAND [ARG...].",
                human::count(words.len(), "word")
            ))),
        };
    }
    let commands: Vec<&[OsString]> = words.split(|word| word == "--vs").collect();
    // `--vs -- COMMAND` is accepted as well.
    let commands: Vec<&[OsString]> =
        commands.into_iter().map(|words| words.strip_prefix(&[OsString::from("--")]).unwrap_or(words)).collect();
    if commands.len() > 2 || commands.iter().any(|command| command.is_empty()) {
        return Err(Failure::refusal(
            "explain takes one command or image, or two with --vs between them: snapboot explain -- COMMAND [ARG...] --vs COMMAND [ARG...].",
        ));
    }
    Ok(commands)
}

/// Fails if others may have written to an image whose start is measured.
fn trusted(words: &[OsString]) -> Result<()> {
    let image = Path::new(&words[0]);
    let file = trust::look::open(image).map_err(|error| Failure::io("read", image, &error))?;
    trust::check_open(image, &file).map_err(|refusal| run::not_to_be_run(&refusal))
}

fn is_image(words: &[OsString]) -> bool {
    // A word without a slash is looked up in PATH.
    words[0].as_encoded_bytes().contains(&b'/') && Kind::is_image(Path::new(&words[0]))
}

/// Measures one start of each command or image, and takes one from each report, as --start says; with two, each gets a letter.
fn as_they_are(commands: &[&[OsString]], arguments: &Explain, spinner: &Spinner) -> Result<Vec<Start>> {
    let mut starts = Vec::new();
    for (place, words) in commands.iter().enumerate() {
        // One kind applies to both.
        let kind = arguments.start.get(place).or(arguments.start.last()).copied();
        starts.push(compared_start::start(words, kind, arguments, spinner)?);
    }
    if let [first, second] = starts.as_mut_slice() {
        first.title = format!("A, {}", first.title);
        second.title = format!("B, {}", second.title);
    }
    Ok(starts)
}

/// Findings about a command, or about the starts to compare.
struct Found {
    starts: Vec<Start>,
    no_archive: Option<String>,
    advice: Vec<Advice>,
}

/// Measures the starts of a command.
fn command(words: &[OsString], arguments: &Explain, spinner: &Spinner) -> Result<Found> {
    let ordinary = measure(Subject::ordinary(words, &Installation::find()?)?, arguments, spinner)?;
    let (archived, no_archive) = match arguments.no_archive {
        true => (None, None),
        false => match archived::measure(words, Some(&ordinary), arguments, spinner)? {
            Ok(start) => (Some(start), None),
            Err(why) => (None, Some(why.to_string())),
        },
    };
    let best = match arguments.no_freeze {
        true => Best { thawed: None, advice: Vec::new() },
        false => best(words, &ordinary, arguments, spinner)?,
    };
    let with_archive = archived
        .as_ref()
        .and_then(|archived| advice::archived(words, &ordinary, archived, best.thawed.as_ref(), !arguments.no_freeze));
    let mut advice: Vec<Advice> = with_archive.into_iter().chain(best.advice).collect();
    advice.extend(advice::ordinary(words, &ordinary));
    let starts = std::iter::once(ordinary).chain(archived).chain(best.thawed).collect();
    Ok(Found { starts, no_archive, advice })
}

/// The result of all trials.
struct Best {
    thawed: Option<Start>,
    advice: Vec<Advice>,
}

/// Makes a trial freeze of a command, and another one with the modules that its thaw still loads, so that the advice was tried.
fn best(words: &[OsString], ordinary: &Start, arguments: &Explain, spinner: &Spinner) -> Result<Best> {
    let first = match tried(Trial::new(words)?, arguments, spinner)? {
        Ok(first) => first,
        Err(advice) => return Ok(Best { thawed: None, advice }),
    };
    let more = advice::still_loaded(&first);
    if more.is_empty() {
        return Ok(Best { advice: advice::frozen(ordinary, &first, Comparison::Same), thawed: Some(first.thawed) });
    }
    let why_not = match tried(first.trial.preloading(more.clone())?, arguments, spinner)? {
        Err(reasons) => reasons.into_iter().map(|reason| reason.text).collect::<Vec<_>>().join(" "),
        Ok(second) if second.thawed.root.seconds > first.thawed.root.seconds * advice::WORTHWHILE => {
            "A start of such an image was tried, and takes as long.".to_owned()
        }
        Ok(second) => match same::compare(words, &second.trial.started())? {
            Comparison::Differs => Comparison::Differs.to_string(),
            same => return Ok(Best { advice: advice::frozen(ordinary, &second, same), thawed: Some(second.thawed) }),
        },
    };
    let mut advice = advice::frozen(ordinary, &first, Comparison::Same);
    advice.push(advice::not_loaded(&more, &why_not));
    Ok(Best { thawed: Some(first.thawed), advice })
}

/// A trial that has made an image, whose start was measured.
struct Tried {
    trial: Trial,
    written: Box<Written>,
    thawed: Start,
}

/// Freezes, and measures a start of the image; or returns what prevents it.
fn tried(trial: Trial, arguments: &Explain, spinner: &Spinner) -> Result<std::result::Result<Tried, Vec<Advice>>> {
    Ok(match trial.freeze(spinner)? {
        Outcome::Refused(reasons) => Err(advice::refused(&reasons, &trial)),
        Outcome::Written(written) => match thawed(&trial, arguments, spinner) {
            Ok(thawed) => Ok(Tried { trial, written, thawed }),
            Err(failure) => Err(advice::refused(&[Obstacle::Failed(failure)], &trial)),
        },
    })
}

/// Measures a start of the image that a trial has made.
fn thawed(trial: &Trial, arguments: &Explain, spinner: &Spinner) -> Result<Start> {
    let thawed = measure(Subject::thawed(&trial.started())?, arguments, spinner)?;
    // The image is gone when somebody reads this.
    let command = trial.command.iter().chain(&trial.arguments).map(|word| word.to_string_lossy()).collect::<Vec<_>>();
    Ok(Start { command: command.join(" "), ..thawed })
}

fn measure(mut subject: Subject, arguments: &Explain, spinner: &Spinner) -> Result<Start> {
    subject.allow_failure = arguments.allow_failure;
    subject.measure(&Measurement { runs: arguments.runs, report: &|text: &str| spinner.phase(text) })
}

/// CPU and kernel.
fn machine() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, model)| model);
    let kernel = rustix::system::uname();
    format!("{}, Linux {}", model.unwrap_or("unknown CPU"), kernel.release().to_string_lossy())
}
