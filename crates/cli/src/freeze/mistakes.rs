//! Mistakes in the command line of `snapboot freeze` that its grammar does not catch.

use std::ffi::{OsStr, OsString};
use std::fmt;

use clap::Args;
use failure::{Failure, Result};
use freeze::Training;

use crate::arguments::Freeze;

/// The names of `--preload`, without blanks around them.
pub fn preloads(given: &[String]) -> Result<Vec<String>> {
    let names: Vec<String> = given.iter().map(|name| name.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        return Err(Failure::refusal(
            "--preload has an empty name in it. Write names with one comma between them, as in --preload flask,requests, and \
             leave --preload out when there is nothing to load.",
        ));
    }
    Ok(names)
}

/// The values of `--train` and `--no-train`.
pub fn training(runs: &[String], is_off: bool) -> Result<Training> {
    if is_off || runs.is_empty() {
        return Ok(if is_off { Training::None } else { Training::Default });
    }
    let words = |run: &String| {
        let words = shlex::split(run).ok_or_else(|| {
            Failure::refusal(format!(
                "--train {run:?} has an opening quote without its end. Write the arguments of one run as for a shell, as in \
                 --train 'check --deploy'."
            ))
        })?;
        Ok(words.into_iter().map(OsString::from).collect())
    };
    Ok(Training::Runs(runs.iter().map(words).collect::<Result<_>>()?))
}

/// An option of `snapboot freeze` among the words of the command.
#[derive(Debug, PartialEq, Eq)]
pub struct Misplaced<'a> {
    word: &'a str,
    program: &'a OsStr,
}

impl fmt::Display for Misplaced<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Misplaced { word, program } = self;
        write!(
            f,
            "{word} stands after the command, so Snapboot passes it to the command. Snapboot's own options come first: \
             snapboot freeze {word} ... -- {}",
            program.display()
        )
    }
}

/// Finds options of `snapboot freeze` among the words of the command, if only a missing `--` makes them ambiguous.
pub fn misplaced_options<'a>(command: &'a [OsString], all: &[OsString]) -> Option<Misplaced<'a>> {
    let before = all.len().checked_sub(command.len() + 1)?;
    if all[before] == "--" {
        return None;
    }
    let own = Freeze::augment_args(clap::Command::new("freeze"));
    let is_own = |word: &str| {
        own.get_opts().any(|option| {
            let long = option.get_long().and_then(|long| word.strip_prefix("--")?.strip_prefix(long));
            long.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
                || option.get_short().is_some_and(|short| word == format!("-{short}"))
        })
    };
    let word = command.iter().skip(1).filter_map(|word| word.to_str()).find(|word| is_own(word))?;
    Some(Misplaced { word, program: &command[0] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preloads_have_names() {
        let names = |text: &str| preloads(&text.split(',').map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(names("a, b").unwrap(), ["a", "b"]);
        for wrong in ["", "a,,b", "a,", " "] {
            assert!(names(wrong).unwrap_err().message.contains("an empty name"), "{wrong}");
        }
    }

    #[test]
    fn options_behind_the_command_are_noticed() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let note = |before: &str, command: &str| {
            let all = words(&format!("snapboot freeze {before} {command}"));
            misplaced_options(&words(command), &all).map(|misplaced| misplaced.to_string())
        };
        assert!(note("-o x.img", "python --preload flask").unwrap().starts_with("--preload stands after the command"));
        assert!(note("-o x.img", "python a.py --policy=trust")
            .unwrap()
            .contains("snapboot freeze --policy=trust ... -- python"));
        assert!(note("-o x.img", "python a.py -o b.img").is_some());
        assert_eq!(note("-o x.img", "python a.py --preloads --out -x"), None);
        assert_eq!(note("-o x.img --", "gunicorn --preload app"), None);
    }
}
