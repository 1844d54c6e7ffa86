//! Absent paths below HOME, or below another directory that a variable names, count relative to that directory in each
//! start, and not where it was in the boot: another user may start the image.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use image_file::this_process::ThisProcess;
use judge::environment::Environment;
use judge::reads::Reads;
use recorder::{Accesses, State};

use super::other_start_inputs::{row, OtherStart};

impl OtherStart {
    /// Rows ([`inputs::facts::fact_kind::FOUND`]) for the absent paths below the directory of a variable. None if a path exists
    /// there, which the other start did not find.
    pub fn found_below(&self, variable: &str, accesses: &Accesses, environment: &Environment) -> Option<Vec<Vec<u8>>> {
        let directory = PathBuf::from(environment.value(variable)?);
        let names = self.elsewhere.looked_up_below(variable, &self.accesses)?;
        let mut found = Vec::new();
        if self.elsewhere.looks_at(variable, &self.accesses) {
            let answer = if directory.join(".").exists() { "there" } else { "absent" };
            found.push(format!("${variable}/.: {answer}").into_bytes());
        }
        for (path, access) in accesses.places.iter().filter(|(_, access)| access.looked) {
            let Some(name) = name_below(path, &directory, &names) else { continue };
            match access.target_state() {
                State::Absent => found.push(row(variable, name, None)),
                State::Directory if access.listed.is_none() => {}
                _ => return None,
            }
        }
        Some(found)
    }

    /// Removes the accesses that a row of `reads` covers, except those that the other start made as well: these are
    /// unrelated to HOME. `accesses` come from a boot in this environment.
    pub fn forget_places_at_home(&self, reads: &Reads, accesses: &mut Accesses, environment: &Environment) {
        let Some(home) = environment.value("HOME").map(PathBuf::from).or_else(home_of_user) else { return };
        let home = home.as_path();
        if !reads.renewed.contains(OsStr::new("HOME")) {
            return;
        }
        let Some(names) = self.elsewhere.looked_up_below("HOME", &self.accesses) else { return };
        accesses.places.retain(|path, access| {
            let is_named = name_below(path, home, &names).is_some() || path == home;
            let is_without_content = *access.target_state() == State::Absent || access.listed.is_none();
            let is_kept = access.written || access.made || access.read || self.accesses.places.contains_key(path);
            !is_named || !is_without_content || is_kept
        });
    }
}

/// The default of HOME.
fn home_of_user() -> Option<PathBuf> {
    let mut buffer = [0; 4096];
    let size = inputs::facts::home_of_user(&ThisProcess::FOR_BOOT, &mut buffer)?;
    Some(PathBuf::from(OsStr::from_bytes(&buffer[..size])))
}

/// The path relative to `home`, if it or a parent of it is among `names`: it may exist in another start.
fn name_below<'p>(path: &'p Path, home: &Path, names: &BTreeSet<PathBuf>) -> Option<&'p Path> {
    let name = path.strip_prefix(home).ok()?;
    let is_wanted = name.ancestors().any(|above| !above.as_os_str().is_empty() && names.contains(above));
    is_wanted.then_some(name)
}

/// Makes the missing folder for Python packages of the user (`site.USER_SITE`, documented in the module `site`) count
/// at the HOME of each start, if only that module has read HOME.
pub fn follow_user_site(reads: &mut Reads, accesses: &mut Accesses, environment: &Environment) {
    let Some(home) = environment.value("HOME").map(Path::new).filter(|home| home.is_absolute()) else { return };
    let counts = |name: &str| {
        let variable = OsStr::new(name);
        let is_read = reads.renewed.contains(variable) || reads.variables.contains_key(variable);
        is_read && environment.value(name).is_some_and(|value| !value.is_empty())
    };
    if counts("HOME") || counts("PYTHONUSERBASE") {
        return;
    }
    let absent = accesses.places.iter().filter(|(_, access)| *access.target_state() == State::Absent);
    let site = absent.filter_map(|(path, _)| path.strip_prefix(home).ok()).find(|name| is_user_site(name));
    if let Some(name) = site.map(Path::to_owned) {
        reads.found.insert(row("HOME", &name, None));
        accesses.places.remove(&home.join(name));
    }
}

fn is_user_site(name: &Path) -> bool {
    let parts: Vec<&[u8]> = name.iter().map(OsStr::as_bytes).collect();
    matches!(parts[..], [b".local", b"lib", version, b"site-packages"] if version.starts_with(b"python"))
}
