//! The search path of the runtime (PYTHONPATH, RUBYLIB), which another start has two empty directories in: what the boot looked up there counts, and
//! not the value, where nothing else follows from it.

use std::ffi::OsStr;
use std::path::PathBuf;

use judge::environment::Environment;
use judge::reads::Reads;
use recorder::{Accesses, PathAccess, State};

use crate::elsewhere::{stems_below, Elsewhere};
use crate::report::{Report, Searched};

/// Whether a boot can have another search path: nobody has read the variable, and the boot has found nothing in its directories.
pub(super) fn may_be_another(search_path: &str, environment: &Environment, reads: &Reads, notes: &Accesses) -> bool {
    let value = environment.value(search_path).unwrap_or_default();
    let directories: Vec<PathBuf> = std::env::split_paths(value).filter(|it| it.is_absolute()).collect();
    let is_found = |(path, note): (&PathBuf, &PathAccess)| {
        *note.found() != State::Absent
            && directories.iter().any(|directory| path.starts_with(directory) && path != directory)
    };
    environment.leaves(OsStr::new(search_path)) && !reads.asks_for(search_path) && !notes.places.iter().any(is_found)
}

/// Has the names count that were looked up along the search path. `other`: what the boot as another start has looked up and told; `notes` and
/// `searched`: the same of the boot of the image.
pub(super) fn count_names(
    elsewhere: &Elsewhere,
    other: (&Accesses, &Report),
    reads: &mut Reads,
    notes: &Accesses,
    searched: &Searched,
) {
    let variable = elsewhere.search_path();
    match elsewhere.looked_up_along_search_path(other.0, &other.1.importers) {
        None => reads.bind(variable, "a list of its directories"),
        // Somebody may have looked there whom nobody has seen.
        Some(_) if notes.hidden || other.0.hidden => {}
        Some(mut names) => {
            names.extend(searched.names.iter().chain(&other.1.searched.names).cloned());
            searched.directories.iter().for_each(|directory| names.extend(stems_below(directory, notes)));
            names.retain(|name| !name.is_empty());
            reads.search(variable, names);
        }
    }
}
