//! The entry in the place of a virtual environment's interpreter: programs that have an image do not begin with a Python. What was there
//! waits in the folder `.snapboot`, see crates/entry. What an entry needs is the same in the place of a Ruby (`moved.rs`).

use std::ffi::{OsStr, OsString};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use entry::command_line::COMM;
use entry::{beginning, is_entry, COMMAND, FOLDER, NAMES};
use failure::{Failure, Result};
use image_file::kind::Kind;
use installation::Installation;

use super::{drafts, own_program};

/// The entry itself, in its folder. Its other names are those of the interpreter.
const ENTRY: &str = "entry";

/// An environment, or the prefix of a Ruby, with its folders.
pub struct Place {
    environment: PathBuf,
    /// Has the interpreter.
    pub bin: PathBuf,
    /// Has what the entry needs.
    pub kept: PathBuf,
}

/// Puts the entry into the place of each name of an environment's interpreter. Returns their paths: none where they are no links, as in an
/// environment of copies, or lead to something else than an interpreter.
pub fn put(environment: &Path) -> Result<Vec<PathBuf>> {
    let place = Place::in_environment(environment);
    let Some(names) = place.replaceable() else { return Ok(Vec::new()) };
    let program = Program::find()?;
    place.put(&names, &program).map_err(|error| place.failure("put the entry into", &error))?;
    Ok(names.iter().map(|name| place.bin.join(name)).collect())
}

/// Puts back what was there. Returns its paths.
pub fn take_back(environment: &Path) -> Result<Vec<PathBuf>> {
    let place = Place::in_environment(environment);
    place.take_back().map_err(|error| place.failure("put back what was in", &error))
}

/// What an entry is made from.
pub struct Program {
    command: PathBuf,
    entry: PathBuf,
}

impl Program {
    /// That of this installation.
    pub fn find() -> Result<Program> {
        Ok(Program { command: own_program()?, entry: Installation::find()?.entry()? })
    }
}

impl Place {
    /// That of an environment.
    pub fn in_environment(environment: &Path) -> Place {
        let environment = environment.to_owned();
        Place { bin: environment.join("bin"), kept: environment.join(FOLDER), environment }
    }

    /// What is said where something cannot be done in `bin`.
    pub fn failure(&self, what: &str, error: &io::Error) -> Failure {
        Failure::failed(format!(
            "cannot {what} {}: {}. Whoever may change the environment can do it: its owner, where it is not mounted read-only.",
            self.bin.display(),
            failure::reason(error)
        ))
    }

    /// Whether an entry in `bin` finds its folder, which is beside the one in which it is.
    pub fn is_in_place(&self) -> bool {
        let real = [&self.bin, &self.environment].map(|folder| fs::canonicalize(folder).unwrap_or_default());
        real[0].parent() == Some(&real[1])
    }

    /// The interpreter's names that an entry can take; None where it cannot take all.
    fn replaceable(&self) -> Option<Vec<OsString>> {
        let names = names_in(&self.bin);
        (self.is_in_place()
            && self.environment.join("pyvenv.cfg").is_file()
            && !names.is_empty()
            && names.iter().all(|name| is_replaceable(&self.bin.join(name))))
        .then_some(names)
    }

    /// Makes the folder, with all that does not depend on the interpreter. Returns the path of the entry there.
    pub fn fill(&self, program: &Program) -> io::Result<PathBuf> {
        let (kept, entry) = (&self.kept, self.kept.join(ENTRY));
        // Whoever may start the interpreter may start the entry, whatever the umask.
        let mode = self.bin.metadata()?.permissions();
        for folder in [kept, &kept.join(NAMES)] {
            fs::create_dir_all(folder)?;
            fs::set_permissions(folder, mode.clone())?;
        }
        drafts::remove_old(kept);
        drafts::replace(kept, &kept.join(COMMAND), |draft| symlink(&program.command, draft))?;
        drafts::replace(kept, &entry, |draft| {
            fs::copy(&program.entry, draft)?;
            fs::set_permissions(draft, Permissions::from_mode(0o755))
        })?;
        Ok(entry)
    }

    fn put(&self, names: &[OsString], program: &Program) -> io::Result<()> {
        let entry = self.fill(program)?;
        // One may lead to another.
        for name in names {
            self.keep(name)?;
        }
        for name in names {
            drafts::replace(&self.kept, &self.bin.join(name), |draft| fs::hard_link(&entry, draft))?;
        }
        self.name_scripts(&names[0]);
        Ok(())
    }

    /// Keeps what is at a name of the interpreter, with its times where it is a link. An entry whose link was lost has one to the interpreter
    /// that the environment was made from.
    fn keep(&self, name: &OsStr) -> io::Result<()> {
        let (path, kept) = (self.bin.join(name), self.kept.join(name));
        if path.is_symlink() {
            return drafts::replace(&self.kept, &kept, |draft| {
                fs::hard_link(&path, draft).or_else(|_| symlink(fs::read_link(&path)?, draft))
            });
        }
        if kept.is_file() {
            return Ok(());
        }
        let named = entry::interpreters_elsewhere(&path, name);
        match named.iter().find(|path| path.is_file()) {
            Some(interpreter) => drafts::replace(&self.kept, &kept, |draft| symlink(interpreter, draft)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Gives the interpreter the names of the scripts in `bin`, so that ordinary starts of them keep these where nobody may write. Errors are
    /// ignored: a start makes what it needs where it can.
    pub fn name_scripts(&self, interpreter: &OsStr) {
        let mark = [b"#!", self.bin.as_os_str().as_bytes(), b"/"].concat();
        for script in fs::read_dir(&self.bin).into_iter().flatten().flatten() {
            let start = beginning(&script.path()).unwrap_or_default();
            if let Some(called) = start.strip_prefix(mark.as_slice()) {
                let called = called.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
                let target =
                    Path::new("..").join(if called.is_empty() { interpreter } else { OsStr::from_bytes(called) });
                let name = script.file_name();
                let name = OsStr::from_bytes(&name.as_bytes()[..name.len().min(COMM)]);
                let _ = symlink(target, self.kept.join(NAMES).join(name));
            }
        }
    }

    fn take_back(&self) -> io::Result<Vec<PathBuf>> {
        let mut back = Vec::new();
        let entry = identity(&self.kept.join(ENTRY));
        for name in names_in(&self.bin) {
            let path = self.bin.join(&name);
            // `python -m venv` writes through an entry, which then is none any more.
            let is_ours = begins_as_entry(&path) || !path.is_symlink() && entry.is_some() && identity(&path) == entry;
            if is_ours {
                fs::create_dir_all(&self.kept)?;
                self.keep(&name)?;
                fs::rename(self.kept.join(&name), &path)?;
                back.push(path);
            }
        }
        self.clear(names_in(&self.kept));
        Ok(back)
    }

    /// Removes the folder with all that Snapboot has put there. `names`: of what does not belong to every entry. Errors are ignored.
    pub fn clear(&self, names: Vec<OsString>) {
        let names = names.into_iter().chain([COMMAND, ENTRY].map(OsString::from));
        for path in names.map(|name| self.kept.join(name)).chain(files_in(&self.kept.join(NAMES))) {
            let _ = fs::remove_file(path);
        }
        drafts::remove_old(&self.kept);
        // What somebody else has put there stays.
        let _ = fs::remove_dir(self.kept.join(NAMES));
        let _ = fs::remove_dir(&self.kept);
    }
}

/// The names of interpreters in a folder: `python`, `python3`, `python3.11`.
fn names_in(folder: &Path) -> Vec<OsString> {
    let is_version = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_name = |name: &OsString| name.to_str().and_then(|name| name.strip_prefix("python")).is_some_and(is_version);
    let mut names: Vec<OsString> =
        files_in(folder).filter_map(|path| path.file_name().map(OsStr::to_owned)).filter(is_name).collect();
    names.sort();
    names
}

/// The files and links in a folder.
fn files_in(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_symlink() || !path.is_dir())
}

/// Whether a file is an entry, or a link that can lead to the same interpreter from another folder.
fn is_replaceable(path: &Path) -> bool {
    let Ok(led) = fs::read_link(path) else { return begins_as_entry(path) };
    let is_named_alike =
        |path: PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"python"));
    (led.is_absolute() || led.components().count() == 1)
        && (begins_as_entry(path)
            || fs::canonicalize(path).is_ok_and(is_named_alike) && matches!(Kind::detect(path), Ok(Kind::Program)))
}

/// Whether a file is an entry.
pub fn begins_as_entry(path: &Path) -> bool {
    beginning(path).is_some_and(|start| is_entry(&start))
}

/// What two names of one file have in common.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|status| (status.dev(), status.ino()))
}
