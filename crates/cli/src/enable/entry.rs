//! The entry in the place of a virtual environment's interpreter: programs that have an image do not begin with a Python. What was there
//! waits in the folder `.snapboot`, see crates/entry.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use entry::{is_entry, COMMAND, FOLDER, NAMES, START};
use failure::{Failure, Result};
use image_file::kind::Kind;
use installation::Installation;

use super::own_program;

/// The entry itself, in its folder.
const ENTRY: &str = "entry";

/// Puts the entry into the place of each name of an environment's interpreter. Returns their paths: none where they are no links, as in an
/// environment of copies, or lead to something else than an interpreter.
pub fn put(environment: &Path) -> Result<Vec<PathBuf>> {
    let bin = environment.join("bin");
    let failed = |error: io::Error| Failure::io("put the entry into", &bin, &error);
    let found: Option<Vec<OsString>> = names_in(&bin)
        .map_err(failed)?
        .into_iter()
        .map(|name| is_replaceable(&bin.join(&name)).then_some(name))
        .collect();
    let Some(names) = found.filter(|names| !names.is_empty() && environment.join("pyvenv.cfg").is_file()) else {
        return Ok(Vec::new());
    };
    let (command, entry, folder) = (own_program()?, Installation::find()?.entry()?, environment.join(FOLDER));
    let put_all = || {
        fs::create_dir_all(folder.join(NAMES))?;
        replace(&folder.join(COMMAND), |draft| symlink(command, draft))?;
        replace(&folder.join(ENTRY), |draft| fs::copy(entry, draft).map(drop))?;
        // One may lead to another.
        for name in names.iter().filter(|name| bin.join(name).is_symlink()) {
            replace(&folder.join(name), |draft| keep(&bin.join(name), draft))?;
        }
        for name in &names {
            replace(&bin.join(name), |draft| fs::hard_link(folder.join(ENTRY), draft))?;
        }
        Ok(())
    };
    put_all().map_err(failed)?;
    Ok(names.iter().map(|name| bin.join(name)).collect())
}

/// Puts back what was there. Returns its paths.
pub fn take_back(environment: &Path) -> Result<Vec<PathBuf>> {
    let (bin, folder) = (environment.join("bin"), environment.join(FOLDER));
    let take_all = || {
        let mut back = Vec::new();
        for name in names_in(&folder)? {
            let (kept, path) = (folder.join(&name), bin.join(&name));
            // Somebody has put another interpreter there since.
            if !begins_as_entry(&path) {
                fs::remove_file(kept)?;
                continue;
            }
            fs::rename(kept, &path)?;
            back.push(path);
        }
        for entry in fs::read_dir(folder.join(NAMES))?.flatten().filter(|entry| entry.path().is_symlink()) {
            fs::remove_file(entry.path())?;
        }
        for name in [COMMAND, ENTRY] {
            let _ = fs::remove_file(folder.join(name));
        }
        // What somebody else has put there stays.
        let _ = fs::remove_dir(folder.join(NAMES)).and_then(|()| fs::remove_dir(&folder));
        Ok::<_, io::Error>(back)
    };
    match take_all() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        taken => taken.map_err(|error| Failure::io("put back what was in", &bin, &error)),
    }
}

/// The names of interpreters in a folder: `python`, `python3`, `python3.11`.
fn names_in(folder: &Path) -> io::Result<Vec<OsString>> {
    let is_name = |name: &OsStr| {
        name.to_str()
            .and_then(|name| name.strip_prefix("python"))
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
    };
    let mut names: Vec<OsString> =
        fs::read_dir(folder)?.flatten().map(|entry| entry.file_name()).filter(|name| is_name(name)).collect();
    names.sort();
    Ok(names)
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
    let mut start = Vec::new();
    File::open(path).and_then(|file| file.take(START as u64).read_to_end(&mut start)).is_ok() && is_entry(&start)
}

/// Has a link at another path as well, with its times.
fn keep(link: &Path, draft: &Path) -> io::Result<()> {
    fs::hard_link(link, draft).or_else(|_| symlink(fs::read_link(link)?, draft))
}

/// Puts a file into its place at once: starts look for it at any time.
fn replace(path: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<()> {
    let draft = path.with_file_name(format!(".snapboot.{}", std::process::id()));
    let _ = fs::remove_file(&draft);
    make(&draft).and_then(|()| fs::rename(&draft, path)).inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })?;
    // Two names of one file are not exchanged, and the draft stays (rename(2)).
    let _ = fs::remove_file(&draft);
    Ok(())
}
