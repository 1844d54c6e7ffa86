//! Forms of everyday starts that the values of another start do not have: the current directory is the topmost one,
//! HOME itself, or below HOME; HOME is the topmost directory, as in a container for a user without a name.
//!
//! The front end compares what a boot in such a form holds (everyday_forms.py, form_comparison.rb), and this module what it
//! looked up: only names that the other start has looked up as well, below the folders of its own.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use judge::evidence::CWD;
use recorder::{Accesses, PathAccess};

use super::elsewhere::Elsewhere;
use crate::control_dir::make_folder;

const TOP: &str = "/";
const HOME: &str = "HOME";

/// The values of a start in such a form.
pub struct Form {
    /// Names the form for the front end, from 1 on.
    pub number: u32,
    /// The current directory; None for that of the first boot.
    pub folder: Option<PathBuf>,
    /// HOME; None for its value in the first boot.
    pub home: Option<PathBuf>,
}

impl Form {
    /// The forms to try, except that of the first boot. `first`: its current directory. `home`: its HOME if that is a path
    /// that the program keeps. `user`: the name of the user, in which one of the other values of HOME ends. `keeps_folder`:
    /// whether the program keeps the current directory. Makes the folders.
    pub fn all(
        elsewhere: &Elsewhere,
        first: &Path,
        home: Option<&Path>,
        user: &OsStr,
        keeps_folder: bool,
    ) -> Result<Vec<Form>> {
        let top = || Some(PathBuf::from(TOP));
        let mut values = Vec::new();
        if let Some(before) = home.filter(|_| keeps_folder) {
            let home = elsewhere.home_with_folder(user);
            let folder = home.join("Folder");
            for path in [home.parent().unwrap_or(&home), &home, &folder] {
                make_folder(path).map_err(|error| Failure::io("make the directory", path, &error))?;
            }
            if first == before || !first.starts_with(before) {
                values.push((Some(folder), Some(home.clone())));
            }
            if first != before {
                values.push((Some(home.clone()), Some(home)));
            }
        }
        values.extend(keeps_folder.then(|| (top(), None)));
        values.extend(home.map(|_| (None, top())));
        Ok((1..).zip(values).map(|(number, (folder, home))| Form { number, folder, home }).collect())
    }

    /// The value of HOME in such a start, if it has another one than the first boot.
    pub fn variables(&self) -> Vec<(OsString, Option<OsString>)> {
        self.home.iter().map(|home| (HOME.into(), Some(home.into()))).collect()
    }

    /// Whether a boot in this form has looked up nothing but what the first boot or another start did: the same paths, or
    /// the same names below the current directory and HOME.
    pub fn looks_up_the_same(&self, boot: &Accesses, known: [&Accesses; 2], elsewhere: &Elsewhere) -> bool {
        let [_, other] = known;
        let below = |path: &Path, folder: &Option<PathBuf>, fact: &str| {
            let name = path.strip_prefix(folder.as_ref()?).ok()?;
            let there = elsewhere.folder_of(fact)?;
            other.places.get(&if name.as_os_str().is_empty() { there.to_owned() } else { there.join(name) })
        };
        boot.places.iter().filter(|(path, access)| counts(path, access, elsewhere)).all(|(path, access)| {
            let alike = known.iter().filter_map(|accesses| accesses.places.get(path));
            let alike = alike.chain(below(path, &self.folder, CWD)).chain(below(path, &self.home, HOME));
            alike.into_iter().any(|there| access.listed.is_none() || there.listed.is_some())
        })
    }
}

/// Whether an access tells the program something that may differ between starts.
fn counts(path: &Path, access: &PathAccess, elsewhere: &Elsewhere) -> bool {
    let is_of_kernel = path.starts_with("/proc") || path.starts_with("/dev");
    let tells = access.looked || access.read || access.written || access.made || access.listed.is_some();
    tells && !is_of_kernel && !elsewhere.is_of_freeze(path)
}
