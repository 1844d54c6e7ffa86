//! Whether a program only keeps the current directory: a second boot shows it, in an empty folder whose names are unlike all others.
//!
//! The front end finds there what was made of these names, and this what was looked for below that folder and beside it. What was
//! looked for below it is compared where an image is started; who looks beside it or above it depends on where that is.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use failure::{Failure, Result};
use recorder::{Accesses, Named, PathAccess};

use super::boot_inputs::{looked_up_below, Ignored, Importer};
use super::control_dir::ControlDir;

/// A folder in a folder, both with names of their own. They go with the control directory.
pub struct Elsewhere {
    above: PathBuf,
    folder: PathBuf,
}

impl Elsewhere {
    /// Makes them.
    pub fn create(dir: &ControlDir) -> Result<Elsewhere> {
        let path = dir.path().canonicalize().unwrap_or_else(|_| dir.path().to_owned());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let above = path.join(format!("above-{:x}", now.reverse_bits()));
        let folder = above.join(format!("folder-{now:x}"));
        fs::create_dir_all(&folder).map_err(|error| Failure::io("make the folder", &folder, &error))?;
        Ok(Elsewhere { above, folder })
    }

    /// Where the program is booted.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What was looked for below it by absolute paths, named from there; None when something was looked for above it, or its names were
    /// listed by others than those who look for modules.
    pub fn looked_up(&self, notes: &Accesses, importers: &[Importer]) -> Option<BTreeSet<PathBuf>> {
        // A list of the folder by its short name is compared where the image is started.
        let known = importers.iter().find(|it| it.directory == self.folder).map_or(0, |it| it.lists);
        if notes
            .places
            .get(&self.folder)
            .is_some_and(|note| note.listed.is_some() && !note.opened_from_start && note.opened > known)
        {
            return None;
        }
        let is_beside = |path: &Path, note: &PathAccess| {
            path.starts_with(&self.above)
                && !path.starts_with(&self.folder)
                // Links are looked for on the way to any file.
                && (path != self.above || note.listed.is_some())
        };
        if notes.places.iter().any(|(path, note)| is_beside(path, note)) {
            return None;
        }
        let below = |(path, note): (&PathBuf, &PathAccess)| {
            path.strip_prefix(&self.folder)
                .ok()
                .filter(|_| note.named.absolutely && path != &self.folder)
                .map(Path::to_owned)
        };
        Some(notes.places.iter().filter_map(below).collect())
    }
}

/// Has what the boot looked up below `start`, and in the other boot below another folder as well (`looked_up`), count where an image is
/// started. Returns whether that is all that it looked up there by absolute paths.
pub fn follow(looked_up: &BTreeSet<PathBuf>, start: &Path, notes: &mut Accesses, ignored: &Ignored) -> bool {
    for (path, note) in &mut notes.places {
        if path.strip_prefix(start).is_ok_and(|name| looked_up.contains(name)) && note.named.absolutely {
            note.named = Named::FROM_START;
            note.opened_from_start = note.listed.is_some();
        }
    }
    !looked_up_below(start, notes, ignored)
}
