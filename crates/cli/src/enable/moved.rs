//! The entry in the place of a Ruby that belongs to no system, as version managers and `make install` have put it into a prefix. Its `bin/ruby` is
//! no link but the interpreter itself, so that gets another name in the same folder (crates/entry): a Ruby that was built to be moved finds its
//! files from the folder in which it is.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use entry::ruby::{moved, NAME};
use failure::Result;
use image_file::kind::Kind;

use super::drafts;
use super::entry::{begins_as_entry, Place, Program};

/// The folders whose interpreters the system's package manager owns.
const OF_SYSTEM: [&str; 3] = ["/bin", "/usr/bin", "/usr/sbin"];
/// Prints what a Ruby knows of itself and of its files.
const FACTS: &str =
    "require 'rbconfig'; p RbConfig.ruby, RbConfig::CONFIG, $LOAD_PATH, $0, Process.argv0, RUBY_DESCRIPTION; \
                     p Gem.ruby, Gem.path, Gem.default_dir if defined?(Gem)";
/// The bits of a mode by which a program gets the rights of its owner or group.
const SET_ID: u32 = 0o6000;

/// What `snapboot enable` has made of an interpreter's place.
pub enum Put {
    /// The entry is there.
    Entry(PathBuf),
    /// This Ruby would be another one at another path, so it is where it was.
    Differs(PathBuf),
    /// It is no Ruby for an entry: the system's, a link or a script.
    Unfit,
}

/// Puts the entry into the place of a prefix's Ruby, if that is the same Ruby behind it.
pub fn put(prefix: &Path) -> Result<Put> {
    let place = Place::in_environment(prefix);
    let ruby = place.bin.join(NAME);
    if !has_entry(&ruby) && !is_replaceable(&place, &ruby) {
        return Ok(Put::Unfit);
    }
    let is_same = exchange(&place, &ruby, &Program::find()?);
    if !matches!(is_same, Ok(true)) {
        take_back(prefix)?;
    }
    match is_same {
        Ok(true) => Ok(Put::Entry(ruby)),
        Ok(false) => Ok(Put::Differs(ruby)),
        Err(error) => Err(place.failure("put the entry into", &error)),
    }
}

/// Moves a Ruby and puts the entry into its place. Returns whether it says the same of itself as before; where it does not, the entry may be
/// missing.
fn exchange(place: &Place, ruby: &Path, program: &Program) -> io::Result<bool> {
    let own = facts(ruby, ruby);
    let is_same = |path: &Path| own.is_some() && facts(path, ruby) == own;
    let link = place.kept.join(NAME);
    let entry = place.fill(program)?;
    if !has_entry(ruby) {
        drafts::replace(&place.kept, &moved(ruby), |draft| fs::hard_link(ruby, draft))?;
    }
    let target: PathBuf = [OsStr::new(".."), OsStr::new("bin"), moved(Path::new(NAME)).as_os_str()].iter().collect();
    drafts::replace(&place.kept, &link, |draft| symlink(&target, draft))?;
    if !is_same(&link) {
        return Ok(false);
    }
    // A copy: whoever writes into it instead of replacing it does not write into the one from which others are made.
    drafts::replace(&place.kept, ruby, |draft| fs::copy(&entry, draft).map(drop))?;
    place.name_scripts(OsStr::new(NAME));
    Ok(is_same(ruby))
}

/// Whether the entry is in the place of a Ruby.
fn has_entry(ruby: &Path) -> bool {
    begins_as_entry(ruby) && moved(ruby).is_file()
}

/// Puts back the Ruby. Returns its path where an entry was in its place.
pub fn take_back(prefix: &Path) -> Result<Option<PathBuf>> {
    let place = Place::in_environment(prefix);
    let ruby = place.bin.join(NAME);
    let was_there = begins_as_entry(&ruby);
    if was_there {
        fs::rename(moved(&ruby), &ruby).map_err(|error| place.failure("put back what was in", &error))?;
    } else {
        // One that a reinstalled Ruby has replaced, or that a killed command has left.
        let _ = fs::remove_file(moved(&ruby));
    }
    place.clear(vec![OsString::from(NAME)]);
    Ok(was_there.then_some(ruby))
}

/// Whether an interpreter can have another name in its folder.
fn is_replaceable(place: &Place, ruby: &Path) -> bool {
    let is_systems =
        fs::canonicalize(&place.bin).is_ok_and(|bin| OF_SYSTEM.iter().any(|folder| bin == Path::new(folder)));
    let status = ruby.symlink_metadata();
    let is_plain = status.is_ok_and(|status| status.is_file() && status.permissions().mode() & SET_ID == 0);
    !is_systems && is_plain && place.is_in_place() && matches!(Kind::detect(ruby), Ok(Kind::Program))
}

/// What a Ruby says of itself; None if it fails. `name`: the first word of its command line.
fn facts(program: &Path, name: &Path) -> Option<Vec<u8>> {
    let asked = Command::new(program)
        .arg0(name)
        .args(["-e", FACTS])
        .env("SNAPBOOT", "off")
        .env_remove("RUBYOPT")
        .env_remove("RUBYLIB")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    asked.status.success().then_some(asked.stdout)
}
