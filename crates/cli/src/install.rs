//! `snapboot install`, `uninstall` and `shellenv`: images in front of installed commands.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use freeze::FreezeOutcome;
use runtime::search_path;
use store::attempt::Attempts;
use store::background::environment_number;
use store::build::{build, For};
use store::tools::{self, Installation, OnPath, Outcome};
use store::{Folder, Store};

use crate::arguments::{Install, ShellEnv, Uninstall};
use crate::freeze::Reporting;
use crate::spinner::Spinner;
use crate::{freeze as freezing, human, render};

/// Runs `snapboot install`; returns the exit status.
pub fn install(arguments: &Install) -> Result<u8> {
    let store = Store::open()?;
    let mut status = 0;
    let mut hidden = Vec::new();
    // A user who has installed one before has read all of it.
    let is_first = tools::all(&store).is_empty();
    let users_path = search_path();
    tools::put_links_first(&store);
    for named in &arguments.commands {
        let spinner = Spinner::start(arguments.verbosity.quiet);
        let outcome = tools::install(&store, named, arguments.in_place, &users_path, !arguments.no_remote, &spinner);
        drop(spinner);
        match outcome {
            Ok(Outcome::Installed(installation)) => {
                if !arguments.verbosity.quiet {
                    render::print(&(summary(&store, &installation) + "\n"))?;
                }
                if installation.on_path != OnPath::Image && !arguments.in_place {
                    hidden.push(installation.installed.name.clone());
                }
            }
            Ok(Outcome::NotFrozen(FreezeOutcome::Interrupted(signal))) => return Ok(freezing::die_of(signal)),
            Ok(Outcome::NotFrozen(outcome)) => {
                let failure = freezing::failure_of(outcome);
                render::message(&format!("snapboot: {} stays as it is: {failure}", named.display()));
                status = crate::status(&failure);
            }
            Err(failure) => status = crate::report_failure(&failure),
        }
    }
    if !hidden.is_empty() && !arguments.verbosity.quiet {
        let remedy = match is_first {
            true => {
                ". Put this line at the end of your shell's start-up file (~/.bashrc, ~/.zshrc), and open a new shell:\n\n  \
                 eval \"$(snapboot shellenv)\"\n"
            }
            false => ": see snapboot shellenv",
        };
        render::message(&format!(
            "snapboot: note: {} {} started from {} only when that directory comes first on PATH, which it does not{remedy}",
            hidden.join(", "),
            if hidden.len() == 1 { "is" } else { "are" },
            store.bin().display()
        ));
    }
    Ok(status)
}

/// Makes an image of the store again, for `snapboot refreeze`; returns the exit status.
pub fn refreeze(folder: &Folder, image: &Path, reporting: &Reporting) -> Result<u8> {
    let Some(own) = folder.lock() else {
        return Err(Failure::refusal(format!("{} is being made now. Try again in a moment.", image.display())));
    };
    let spinner = Spinner::start(reporting.is_quiet);
    let terminal = store::fit::terminal(image);
    let whom = For { environment: &environment_number(), terminal, somebody_waits: true };
    let outcome = build(folder, &own, image, &whom, &spinner);
    drop(spinner);
    match outcome {
        Some(outcome) => freezing::report(outcome, reporting),
        None => Err(Failure::failed(format!("{} does not say of which command it is.", folder.path().display()))),
    }
}

/// One line about an installation.
fn summary(store: &Store, installation: &Installation) -> String {
    let Installation { installed, image, instead_of, .. } = installation;
    let mut line = format!("{}: {} in {}", installed.name, human::size(image.size), human::seconds(image.took));
    if image.is_pulled {
        line += ", from the remote store";
    }
    let folder = image.path.parent().map(|path| Folder::new(path.to_owned()));
    if let Some(times) = folder.and_then(|folder| Attempts::load(&folder).times) {
        let [ordinary, thawed] = [times.ordinary, times.thawed].map(|seconds| human::milliseconds(seconds * 1000.0));
        line += &format!(", --version {ordinary} -> {thawed}");
    }
    line += &match installed.in_place {
        true => format!(", in the place of {}", installed.link.display()),
        false => format!(", in front of {}", installed.program.display()),
    };
    if let Some(before) = instead_of {
        line += &format!("; {} in {} was {} until now", installed.name, store.bin().display(), before.display());
    }
    line
}

/// Runs `snapboot uninstall`; returns the exit status.
pub fn uninstall(arguments: &Uninstall) -> Result<u8> {
    let store = Store::open()?;
    let mut status = 0;
    for named in &arguments.commands {
        match tools::uninstall(&store, named) {
            Ok(_) if arguments.verbosity.quiet => {}
            Ok(installed) => {
                let what = match installed.in_place {
                    true => format!("{} is what it was before", installed.link.display()),
                    false => format!("its name leads to {} again", installed.program.display()),
                };
                render::print(&format!("{}: uninstalled; {what}\n", installed.name))?;
            }
            Err(failure) => status = crate::report_failure(&failure),
        }
    }
    Ok(status)
}

/// Runs `snapboot shellenv`: prints the line that puts the directory of the links first on PATH.
pub fn shellenv(arguments: &ShellEnv) -> Result<u8> {
    let bin = Store::open()?.bin();
    let shell = arguments
        .shell
        .clone()
        .or_else(|| Some(PathBuf::from(std::env::var_os("SHELL")?).file_name()?.to_string_lossy().into_owned()));
    let text = bin.to_str().and_then(|text| shlex::try_quote(text).ok()).ok_or_else(|| {
        Failure::refusal(format!(
            "{} cannot be written as a word of a shell: choose another place with XDG_DATA_HOME.",
            bin.display()
        ))
    })?;
    if bin.as_os_str().as_bytes().contains(&b':') {
        return Err(Failure::refusal(format!("{} cannot be on PATH, because of its colon.", bin.display())));
    }
    let line = match shell.as_deref() {
        Some("fish") => format!("set -gx PATH {text} (string match -v -- {text} $PATH)\n"),
        Some("csh" | "tcsh") => format!("setenv PATH {text}:${{PATH}}\n"),
        _ => format!("export PATH={text}\"${{PATH:+:$PATH}}\"\n"),
    };
    render::print(&line).map(|()| 0)
}
