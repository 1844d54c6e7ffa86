//! The search path of the runtime (PYTHONPATH, RUBYLIB). Another start has two empty directories in it. If nothing else
//! follows from the value, only the names count that the boot looked up there.

use std::ffi::OsStr;
use std::path::PathBuf;

use judge::environment::Environment;
use judge::reads::Reads;
use recorder::{Accesses, PathAccess, State};

use super::elsewhere::{stems_below, Elsewhere};
use crate::boot::{Report, Searched};

/// Whether a boot may have another search path: the program has not read the variable, and the boot has found nothing
/// in its directories.
pub fn may_be_another(search_path: &str, environment: &Environment, reads: &Reads, accesses: &Accesses) -> bool {
    let value = environment.value(search_path).unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(value).filter(|it| it.is_absolute()).collect();
    let is_found = |(path, access): (&PathBuf, &PathAccess)| {
        *access.target_state() != State::Absent
            && directories.iter().any(|directory| path.starts_with(directory) && path != directory)
    };
    environment.may_change(OsStr::new(search_path))
        && !reads.asks_for(search_path)
        && !accesses.places.iter().any(is_found)
}

/// Makes the names that were looked up along the search path count. `other` are accesses and report of the boot as
/// another start; `accesses` and `searched` belong to the boot of the image.
pub fn count_names(
    elsewhere: &Elsewhere,
    other: (&Accesses, &Report),
    reads: &mut Reads,
    accesses: &Accesses,
    searched: &Searched,
) {
    let variable = elsewhere.search_path();
    match elsewhere.looked_up_along_search_path(other.0, &other.1.importers) {
        None => reads.bind(variable, "a list of its directories"),
        // A hidden process may have looked there.
        Some(_) if accesses.hidden || other.0.hidden => {}
        Some(mut names) => {
            names.extend(searched.names.iter().chain(&other.1.searched.names).cloned());
            searched.directories.iter().for_each(|directory| names.extend(stems_below(directory, accesses)));
            names.retain(|name| !name.is_empty());
            reads.search(variable, names);
        }
    }
}
