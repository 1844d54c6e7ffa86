//! `snapboot archive`: boot archives for people.

mod build;
mod list;
mod prune;
mod verify;

use std::path::{Path, PathBuf};

use archive::{Application, Archive, Error};
use failure::{Failure, Result};
use store::remote::{FETCH_ARCHIVE, PUSH_ARCHIVE};

use crate::arguments::ArchiveAction;
use crate::remote;

/// Runs the subcommand.
pub fn main(action: &ArchiveAction) -> Result<u8> {
    match action {
        ArchiveAction::Build(arguments) => build::main(arguments),
        ArchiveAction::List(arguments) => list::main(arguments),
        ArchiveAction::Verify(arguments) => verify::main(arguments),
        ArchiveAction::Prune(arguments) => prune::main(arguments),
        ArchiveAction::Push(arguments) => shared(PUSH_ARCHIVE, Named::find(&arguments.archive)?),
        ArchiveAction::Pull(arguments) => shared(FETCH_ARCHIVE, Named::wanted(&arguments.archive)?),
    }
}

/// Hands over to `snapboot-remote`, with one of its words; returns only if that fails.
fn shared(word: &str, named: Named) -> Result<u8> {
    let root = named.root.unwrap_or_else(|| PathBuf::from("/"));
    remote::execute([word.into(), named.path.into_os_string(), root.into_os_string()])
}

/// An archive that a person named.
struct Named {
    path: PathBuf,
    /// The path of its program, if known.
    root: Option<PathBuf>,
}

impl Named {
    /// The archive at a path, or that of the program in a directory.
    fn find(given: &Path) -> Result<Self> {
        let absolute = std::path::absolute(given).map_err(|error| Failure::io("find", given, &error))?;
        let metadata = absolute.metadata().map_err(|error| Failure::io("read", given, &error))?;
        if !metadata.is_dir() {
            return Ok(Named { root: root_above(&absolute), path: absolute });
        }
        let path = place(&Application::in_directory(&absolute))?;
        if !path.exists() {
            return Err(Failure::refusal(format!(
                "the archive of the program in {} should be at {}, but there is none: it has not been booted with Snapboot yet, or \
                 SNAPBOOT_ARCHIVE named another file then. Boot it, run snapboot archive build, or name the file.",
                given.display(),
                path.display()
            )));
        }
        Ok(Named { path, root: Some(absolute) })
    }

    /// The same for an archive that may not be there yet.
    fn wanted(given: &Path) -> Result<Self> {
        let absolute = std::path::absolute(given).map_err(|error| Failure::io("find", given, &error))?;
        if absolute.is_dir() {
            return Ok(Named { path: place(&Application::in_directory(&absolute))?, root: Some(absolute) });
        }
        Ok(Named { root: root_above(&absolute), path: absolute })
    }

    fn open(&self) -> Result<Archive> {
        Archive::open(&self.path, self.root.as_deref().unwrap_or(Path::new("/"))).map_err(refusal)
    }
}

/// The path at which boots of a program look for its archive.
fn place(application: &Application) -> Result<PathBuf> {
    let variable = std::env::var_os;
    if let Some(named) = variable("SNAPBOOT_ARCHIVE").filter(|named| !named.is_empty() && named != "off") {
        return std::path::absolute(&named).map_err(|error| Failure::io("find", Path::new(&named), &error));
    }
    application.place(variable("XDG_CACHE_HOME").as_deref(), variable("HOME").as_deref()).ok_or_else(|| {
        Failure::refusal(
            "there is neither a directory tmp in the program's nor HOME or XDG_CACHE_HOME in the environment, so Snapboot cannot find \
             its archive. Name the file.",
        )
    })
}

/// The program of an archive in its tmp/cache.
fn root_above(path: &Path) -> Option<PathBuf> {
    let root = path.ancestors().nth(3)?;
    (Application::in_directory(root).place(None, None)? == path).then(|| root.to_owned())
}

/// The failure for an unusable archive: status 2, or 1 if it is damaged.
fn refusal(error: Error) -> Failure {
    match error {
        Error::Damaged(_) => Failure::failed(format!("{error}.")),
        _ => Failure::refusal(format!("{error}.")),
    }
}
