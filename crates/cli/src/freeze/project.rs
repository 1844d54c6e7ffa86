//! The settings of a project: what `snapboot freeze` without a command freezes, and how. Each key is a long option, and becomes words of
//! the command line: so nothing is declared, checked or explained twice.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, FromArgMatches};
use failure::{Failure, Result};

use super::settings::{self, Settings};
use super::{is_typed, parsed};
use crate::arguments::{Arguments, Freeze};

/// The files, and the table of each that holds the settings. In a directory the first one counts.
const FILES: [(&str, &[&str]); 2] = [("snapboot.toml", &[]), ("pyproject.toml", &["tool", "snapboot"])];
/// Folders in the top directory of a repository.
const REPOSITORIES: [&str; 2] = [".git", ".hg"];

/// A command line with the project's additions.
pub struct Completed {
    pub arguments: Freeze,
    /// The words that mean the same without the project.
    pub words: Vec<OsString>,
    /// The file of the settings.
    pub file: PathBuf,
}

/// Completes a command line without a command, and changes to the project's directory. `typed`: all of its words.
pub fn complete(typed: &[OsString]) -> Result<Completed> {
    let here = std::env::current_dir().map_err(|error| Failure::io("find", Path::new("."), &error))?;
    let (file, settings) = find(&here)?.ok_or_else(|| nothing_to_freeze(&here))?;
    let options = typed.strip_suffix(&["--".into()]).unwrap_or(typed);
    let words = merged(options, &settings);
    let given = parsed(&words);
    let mut arguments = Freeze::from_arg_matches(&given).unwrap_or_else(|mistake| mistake.exit());
    if is_typed(&parsed(options), "output") {
        arguments.output = arguments.output.map(|output| here.join(output));
    }
    let directory = file.parent().unwrap_or(&here);
    if directory != here {
        std::env::set_current_dir(directory).map_err(|error| Failure::io("go to", directory, &error))?;
        std::env::set_var("PWD", directory);
    }
    Ok(Completed { arguments, words, file })
}

fn nothing_to_freeze(here: &Path) -> Failure {
    Failure::refusal(format!(
        "no COMMAND was given, and neither {} nor a directory above it in the same repository has a snapboot.toml, or a pyproject.toml \
         with [tool.snapboot], that names one. Give what you would type to start the program, as in `snapboot freeze -o fastpy -- \
         python`, or write it into snapboot.toml, as in: command = \"python app.py\"",
        here.display()
    ))
}

/// The settings for a directory, and their file.
fn find(here: &Path) -> Result<Option<(PathBuf, Settings)>> {
    for directory in here.ancestors() {
        for (name, table) in FILES {
            let file = directory.join(name);
            if !file.is_file() {
                continue;
            }
            // Opened once, so that the checked file is the one that is read.
            let mut opened = trust::look::open(&file).map_err(|error| Failure::io("read", &file, &error))?;
            let trusted = if directory == here { of_this_directory(here, &file, &opened) } else { trust::open(&file) };
            let trusted = trusted.map(|trusted| opened = trusted);
            let mut text = String::new();
            opened.read_to_string(&mut text).map_err(|error| Failure::io("read", &file, &error))?;
            match (settings::read(&file, &text, table), trusted) {
                // The file has no such table, and may belong to anyone.
                (Ok(None), _) => {}
                (settings, Ok(())) => return Ok(settings?.map(|settings| (file, settings))),
                (_, Err(refusal)) => return Err(of_somebody_else(&file, &refusal)),
            }
        }
        if REPOSITORIES.iter().any(|name| directory.join(name).exists()) {
            break;
        }
    }
    Ok(None)
}

/// Whoever freezes in a directory without a command asks for what its owner has written there, as with `make`. Nobody asks for files that
/// others have put into it, such as into /tmp, or above it.
fn of_this_directory(here: &Path, file: &Path, opened: &File) -> std::result::Result<File, trust::Refusal> {
    let owner = |status: std::io::Result<Metadata>| status.ok().map(|status| (status.uid(), status.mode()));
    let is_of_owner = match (owner(here.metadata()), owner(opened.metadata())) {
        (Some((owner, mode)), Some((uid, file_mode))) => owner == uid && (mode | file_mode) & 0o002 == 0,
        _ => false,
    };
    match opened.try_clone() {
        Ok(file) if is_of_owner => Ok(file),
        _ => trust::open(file),
    }
}

fn of_somebody_else(file: &Path, refusal: &trust::Refusal) -> Failure {
    Failure::refusal(format!(
        "{} names a command to execute, and another user may have written it: {refusal}. Read it first. If you want that command, make \
         sure that only its owner may write to it, and freeze in its directory. Otherwise give a COMMAND.",
        file.display()
    ))
}

/// The command line with the settings that it does not override.
fn merged(options: &[OsString], settings: &Settings) -> Vec<OsString> {
    let typed = parsed(options);
    let own = Arguments::command();
    let own = own.find_subcommand("freeze").expect("a subcommand");
    let is_replaced = |long: &str| {
        own.get_arguments().any(|option| {
            let is_it = option.get_long() == Some(long);
            let rules_out = own.get_arg_conflicts_with(option).iter().any(|other| other.get_long() == Some(long));
            (is_it || rules_out) && is_typed(&typed, option.get_id().as_str())
        })
    };
    let mut words = options[..2].to_vec();
    for (long, written) in &settings.options {
        if !is_replaced(long) {
            words.extend(written.iter().cloned());
        }
    }
    words.extend_from_slice(&options[2..]);
    words.push("--".into());
    words.extend(settings.command.iter().cloned());
    words
}
