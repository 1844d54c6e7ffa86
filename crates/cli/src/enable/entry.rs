//! The entry in the place of a virtual environment's interpreter: programs that have an image do not begin with a Python. What was there
//! waits in the folder `.snapboot`, see crates/entry.

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

/// An environment with its folders.
struct Place {
    environment: PathBuf,
    bin: PathBuf,
    kept: PathBuf,
}

/// Puts the entry into the place of each name of an environment's interpreter. Returns their paths: none where they are no links, as in an
/// environment of copies, or lead to something else than an interpreter.
pub fn put(environment: &Path) -> Result<Vec<PathBuf>> {
    let place = Place::in_environment(environment);
    let Some(names) = place.replaceable() else { return Ok(Vec::new()) };
    let (command, entry) = (own_program()?, Installation::find()?.entry()?);
    place.put(&names, &command, &entry).map_err(|error| place.failure("put the entry into", &error))?;
    Ok(names.iter().map(|name| place.bin.join(name)).collect())
}

/// Puts back what was there. Returns its paths.
pub fn take_back(environment: &Path) -> Result<Vec<PathBuf>> {
    let place = Place::in_environment(environment);
    place.take_back().map_err(|error| place.failure("put back what was in", &error))
}

impl Place {
    fn in_environment(environment: &Path) -> Place {
        let environment = environment.to_owned();
        Place { bin: environment.join("bin"), kept: environment.join(FOLDER), environment }
    }

    fn failure(&self, what: &str, error: &io::Error) -> Failure {
        Failure::failed(format!(
            "cannot {what} {}: {}. Whoever may change the environment can do it: its owner, where it is not mounted read-only.",
            self.bin.display(),
            failure::reason(error)
        ))
    }

    /// The interpreter's names that an entry can take; None where it cannot take all.
    fn replaceable(&self) -> Option<Vec<OsString>> {
        // An entry finds its folder beside the one in which it is.
        let is_in_place =
            fs::canonicalize(&self.bin).ok()?.parent() == fs::canonicalize(&self.environment).ok().as_deref();
        let names = names_in(&self.bin);
        (is_in_place
            && self.environment.join("pyvenv.cfg").is_file()
            && !names.is_empty()
            && names.iter().all(|name| is_replaceable(&self.bin.join(name))))
        .then_some(names)
    }

    fn put(&self, names: &[OsString], command: &Path, entry: &Path) -> io::Result<()> {
        let (bin, kept) = (&self.bin, &self.kept);
        // Whoever may start the interpreter may start the entry, whatever the umask.
        let mode = bin.metadata()?.permissions();
        for folder in [kept, &kept.join(NAMES)] {
            fs::create_dir_all(folder)?;
            fs::set_permissions(folder, mode.clone())?;
        }
        drafts::remove_old(kept);
        drafts::replace(&self.kept, &kept.join(COMMAND), |draft| symlink(command, draft))?;
        drafts::replace(&self.kept, &kept.join(ENTRY), |draft| {
            fs::copy(entry, draft)?;
            fs::set_permissions(draft, Permissions::from_mode(0o755))
        })?;
        // One may lead to another.
        for name in names {
            self.keep(name)?;
        }
        for name in names {
            drafts::replace(&self.kept, &bin.join(name), |draft| fs::hard_link(kept.join(ENTRY), draft))?;
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
        let named = entry::interpreters_of_base(&self.environment, name);
        match named.iter().find(|path| path.is_file()) {
            Some(interpreter) => drafts::replace(&self.kept, &kept, |draft| symlink(interpreter, draft)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Gives the interpreter the names of the scripts in `bin`, so that ordinary starts of them keep these where nobody may write. Errors are
    /// ignored: a start makes what it needs where it can.
    fn name_scripts(&self, interpreter: &OsStr) {
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
        let lost = names_in(&self.kept).into_iter().chain([COMMAND, ENTRY].map(OsString::from));
        for path in lost.map(|name| self.kept.join(name)).chain(files_in(&self.kept.join(NAMES))) {
            let _ = fs::remove_file(path);
        }
        drafts::remove_old(&self.kept);
        // What somebody else has put there stays.
        let _ = fs::remove_dir(self.kept.join(NAMES));
        let _ = fs::remove_dir(&self.kept);
        Ok(back)
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

fn begins_as_entry(path: &Path) -> bool {
    beginning(path).is_some_and(|start| is_entry(&start))
}

/// What two names of one file have in common.
fn identity(path: &Path) -> Option<(u64, u64)> {
    path.symlink_metadata().ok().map(|status| (status.dev(), status.ino()))
}
