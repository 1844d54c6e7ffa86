//! What a boot looked up below HOME, or another directory that a variable names, and did not find counts by where that is in each start, and not
//! where it was in the boot: the user who starts an image may not be the one who made it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use image_file::this_process::ThisProcess;
use judge::environment::Environment;
use judge::reads::Reads;
use recorder::{Accesses, State};

use super::other_start::{row, OtherStart};

impl OtherStart {
    /// Rows ([`image::fact_kind::FOUND`]) of what was looked for below the directory of a variable and was not there. None where something was,
    /// which the other start has not found.
    pub(super) fn found_below(
        &self,
        variable: &str,
        notes: &Accesses,
        environment: &Environment,
    ) -> Option<Vec<Vec<u8>>> {
        let directory = PathBuf::from(environment.value(variable)?);
        let names = self.elsewhere.looked_up_below(variable, &self.notes)?;
        let mut found = Vec::new();
        if self.elsewhere.looks_at(variable, &self.notes) {
            let answer = if directory.join(".").exists() { "there" } else { "absent" };
            found.push(format!("${variable}/.: {answer}").into_bytes());
        }
        for (path, note) in notes.places.iter().filter(|(_, note)| note.looked) {
            let Some(name) = name_below(path, &directory, &names) else { continue };
            match note.found() {
                State::Absent => found.push(row(variable, name, None)),
                State::Directory if note.listed.is_none() => {}
                _ => return None,
            }
        }
        Some(found)
    }

    /// Forgets the places of which a row of `reads` tells, but for those that the other start has looked up as well: these have nothing to do with
    /// HOME. `notes`: of a boot in this environment.
    pub(super) fn forget_places_at_home(&self, reads: &Reads, notes: &mut Accesses, environment: &Environment) {
        let Some(home) = environment.value("HOME").map(PathBuf::from).or_else(home_of_user) else { return };
        let home = home.as_path();
        if !reads.renewed.contains(OsStr::new("HOME")) {
            return;
        }
        let Some(names) = self.elsewhere.looked_up_below("HOME", &self.notes) else { return };
        notes.places.retain(|path, note| {
            let is_named = name_below(path, home, &names).is_some() || path == home;
            let is_without_content = *note.found() == State::Absent || note.listed.is_none();
            let is_kept = note.written || note.made || note.read || self.notes.places.contains_key(path);
            !is_named || !is_without_content || is_kept
        });
    }
}

/// What stands for HOME where that is not set.
fn home_of_user() -> Option<PathBuf> {
    let mut buffer = [0; 4096];
    let size = inputs::facts::home_of_user(&ThisProcess::FOR_BOOT, &mut buffer)?;
    Some(PathBuf::from(OsStr::from_bytes(&buffer[..size])))
}

/// The name of a path from `home`, where that or something above it is among `names`: it may be there in another start.
fn name_below<'p>(path: &'p Path, home: &Path, names: &BTreeSet<PathBuf>) -> Option<&'p Path> {
    let name = path.strip_prefix(home).ok()?;
    let is_wanted = name.ancestors().any(|above| !above.as_os_str().is_empty() && names.contains(above));
    is_wanted.then_some(name)
}

/// Has the folder for Python packages of the user that was not there (`site.USER_SITE`, as the module `site` documents it) count at the HOME of
/// each start, where nothing but that module has read HOME.
pub(super) fn follow_user_site(reads: &mut Reads, notes: &mut Accesses, environment: &Environment) {
    let Some(home) = environment.value("HOME").map(Path::new).filter(|home| home.is_absolute()) else { return };
    let counts = |name: &str| {
        let variable = OsStr::new(name);
        let is_read = reads.renewed.contains(variable) || reads.variables.contains_key(variable);
        is_read && environment.value(name).is_some_and(|value| !value.is_empty())
    };
    if counts("HOME") || counts("PYTHONUSERBASE") {
        return;
    }
    let absent = notes.places.iter().filter(|(_, note)| *note.found() == State::Absent);
    let site = absent.filter_map(|(path, _)| path.strip_prefix(home).ok()).find(|name| is_user_site(name));
    if let Some(name) = site.map(Path::to_owned) {
        reads.found.insert(row("HOME", &name, None));
        notes.places.remove(&home.join(name));
    }
}

fn is_user_site(name: &Path) -> bool {
    let parts: Vec<&[u8]> = name.iter().map(OsStr::as_bytes).collect();
    matches!(parts[..], [b".local", b"lib", version, b"site-packages"] if version.starts_with(b"python"))
}
