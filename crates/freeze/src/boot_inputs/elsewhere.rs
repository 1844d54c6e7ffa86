//! Other values of facts about a start, which show whether a program only keeps the current directory and the like: a
//! second boot runs in an empty folder whose name is unlike all others.
//!
//! The front end finds out what the program made of these names, and this module what it looked up below and beside the
//! folders. A start repeats the look-ups below a folder. A program that looks beside or above it depends on where the
//! folder is.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use failure::{Failure, Result};
use judge::evidence::{CWD, KERNEL, KERNEL_VERSION};
use memchr::memmem;
use recorder::{Accesses, Named, PathAccess};

use super::{looked_up_below, Ignored, Importer};
use crate::control_dir::{make_folder, ControlDir};

/// Other values of facts about a start. Those that are paths lead to empty folders with unique names, which are removed
/// with the control directory.
pub struct Elsewhere {
    places: Vec<Place>,
    /// The variable with the runtime's search path.
    search_path: &'static str,
    /// A part of all these names.
    mark: String,
    /// The folder of the freeze, in which all these are.
    of_freeze: PathBuf,
}

/// The other value of a fact that is a path.
struct Place {
    fact: String,
    /// The parent of its folders. It is theirs alone, so look-ups above a folder show.
    above: PathBuf,
    /// The value; of PATH its first and last entries; of the search path both directories.
    folders: Vec<PathBuf>,
}

/// A variable whose value is a path, and whether there is a directory.
pub struct PathVariable {
    /// The variable.
    pub name: String,
    /// Whether its path leads to a directory.
    pub is_directory: bool,
}

impl Elsewhere {
    /// Creates them for the current directory, HOME, PATH, the search path and `variables`.
    pub fn create(dir: &ControlDir, search_path: &'static str, variables: &[PathVariable]) -> Result<Elsewhere> {
        let path = dir.path().canonicalize().unwrap_or_else(|_| dir.path().to_owned());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        // Digits are not affected by capitalisation.
        let mark = now.to_string();
        let mut made = 0..;
        let mut place = |fact: &str, names: &[&str]| {
            // Long names show code that shortens a path. The fact's own name would hide code that looks for a part of
            // it (`python` in PYTHONPATH).
            let number = made.next().unwrap_or_default();
            let above = path.join(format!("above-{number}-{:x}{}", now.reverse_bits(), "-another-start".repeat(12)));
            let folders = names.iter().map(|name| above.join(format!("{name}.of-{mark}"))).collect();
            Place { fact: fact.to_owned(), above, folders }
        };
        let mut places = vec![
            place(CWD, &["Folder"]),
            place("HOME", &["Home"]),
            place("PATH", &["First", "Last"]),
            place(search_path, &["Before", "Behind"]),
        ];
        places.extend(variables.iter().map(|variable| place(&variable.name, &["There"])));
        let is_absent = |place: &Place| variables.iter().any(|it| it.name == place.fact && !it.is_directory);
        for place in &places {
            let folders = if is_absent(place) { std::slice::from_ref(&place.above) } else { &place.folders };
            for folder in folders {
                make_folder(&place.above)
                    .and_then(|()| make_folder(folder))
                    .map_err(|error| Failure::io("make the directory", folder, &error))?;
            }
        }
        Ok(Elsewhere { places, search_path, mark, of_freeze: path })
    }

    /// The other value of a fact.
    pub fn value(&self, name: &str, value: &OsStr) -> OsString {
        match (name, self.folders(name)) {
            (_, [folder]) => folder.into(),
            (name, [before, behind]) if name == self.search_path => {
                [before, behind].map(|it| it.as_os_str()).join(OsStr::new(":"))
            }
            (_, [first, last]) => [first.as_os_str(), value, last.as_os_str()].join(OsStr::new(":")),
            // The oldest kernel that thaws, to exclude what a program does only from a later version on.
            (KERNEL, _) => format!("4.17.0-{}-for-another-start", self.mark).into(),
            (KERNEL_VERSION, _) => format!("#1 SMP {}-for-another-start", self.mark).into(),
            _ => self.made_up_name(name).into(),
        }
    }

    /// The other value of a fact whose value is a folder.
    pub fn folder_of(&self, fact: &str) -> Option<&Path> {
        self.folders(fact).first().map(PathBuf::as_path)
    }

    /// A path for one more HOME of this user, in which the current directory may be. There is nothing.
    pub fn home_with_folder(&self, user: &OsStr) -> PathBuf {
        self.above_homes().join(user)
    }

    fn above_homes(&self) -> PathBuf {
        self.of_freeze.join(format!("Homes.with-folders-{}", self.mark))
    }

    /// Whether a path is in the folder of the freeze, and no value of another start.
    pub fn is_of_freeze(&self, path: &Path) -> bool {
        let is_value = self.places.iter().map(|place| &place.above).any(|above| path.starts_with(above));
        path.starts_with(&self.of_freeze) && !is_value && !path.starts_with(self.above_homes())
    }

    /// Whether the other value of this fact is the path of a folder.
    pub fn is_folder(&self, name: &str) -> bool {
        self.folders(name).len() == 1
    }

    fn place(&self, fact: &str) -> Option<&Place> {
        self.places.iter().find(|place| place.fact == fact)
    }

    fn folders(&self, fact: &str) -> &[PathBuf] {
        self.place(fact).map_or(&[], |place| &place.folders)
    }

    /// A name of a user or host with the features of such names: capitals, a dot, many characters.
    fn made_up_name(&self, name: &str) -> String {
        format!("{name}-{}.of-{}-for-another-start", self.mark, self.mark)
    }

    /// The facts among these that the other boot, with these accesses, used for more than a look-up below a folder or
    /// along PATH: it wrote there, looked beside the folder, or looked up a path with the name of a user, host or
    /// kernel. Each with the first such path, in words.
    pub fn used_otherwise<'n>(
        &self,
        facts: impl Iterator<Item = &'n str>,
        accesses: &Accesses,
    ) -> BTreeMap<&'n str, String> {
        let mut found = BTreeMap::new();
        let (mut places, mut names) = (Vec::new(), Vec::new());
        for name in facts {
            match self.place(name) {
                Some(place) => places.push((name, place)),
                None => names.push((name, self.value(name, OsStr::new("")).to_string_lossy().into_owned())),
            }
        }
        for (path, access) in &accesses.places {
            let text = path.as_os_str().as_encoded_bytes();
            let has = |part: &str| memmem::find(text, part.as_bytes()).is_some();
            let mut add = |name| {
                found.entry(name).or_insert_with(|| self.in_words(path));
            };
            names.iter().filter(|(_, value)| has(value)).for_each(|(name, _)| add(*name));
            let is_own = |place: &Place| place.folders.iter().any(|folder| path.starts_with(folder));
            if let Some((name, _)) = places.iter().find(|(_, place)| is_own(place)) {
                if access.written || access.made {
                    add(*name);
                }
            } else if let Some((name, _)) = places.iter().find(|(_, place)| is_access_to(path, access, &place.above)) {
                let is_named = |place: &Place| place.folders.iter().any(|folder| has(&folder.to_string_lossy()));
                let named: Vec<_> = places.iter().filter(|(_, place)| is_named(place)).map(|(name, _)| *name).collect();
                let names = if named.is_empty() { vec![*name] } else { named };
                names.into_iter().for_each(&mut add);
            }
        }
        found
    }

    /// Describes a path: below a folder of this boot, or above it.
    fn in_words(&self, path: &Path) -> String {
        let folders = self.places.iter().flat_map(|place| &place.folders);
        let mut above = self.places.iter().map(|place| &place.above);
        let below = folders.clone().find_map(|folder| Some((path.strip_prefix(folder).ok()?, "below it")));
        match below.or_else(|| above.find_map(|above| Some((path.strip_prefix(above).ok()?, "above it")))) {
            Some((name, where_to)) if !name.as_os_str().is_empty() => format!("{} {where_to}", name.display()),
            _ => path.display().to_string(),
        }
    }

    /// The paths looked up below the folders of a fact, relative to them; None if one of the folders was listed.
    pub fn looked_up_below(&self, fact: &str, accesses: &Accesses) -> Option<BTreeSet<PathBuf>> {
        let names = self.folders(fact).iter().map(|folder| looked_up_in(folder, accesses));
        names.collect::<Option<Vec<_>>>().map(|names| names.into_iter().flatten().collect())
    }

    /// Whether the folder of a fact was itself looked up.
    pub fn looks_at(&self, fact: &str, accesses: &Accesses) -> bool {
        self.folders(fact).iter().any(|folder| accesses.places.get(folder).is_some_and(|access| access.looked))
    }

    /// Names that were looked up along the search path, each up to its first dot; None if code other than an importer
    /// listed a directory of it.
    pub fn looked_up_along_search_path(
        &self,
        accesses: &Accesses,
        importers: &[Importer],
    ) -> Option<BTreeSet<OsString>> {
        let mut names = BTreeSet::new();
        for folder in self.folders(self.search_path) {
            let importer = importers.iter().find(|it| it.directory == *folder);
            let access = accesses.places.get(folder).filter(|access| access.listed.is_some());
            let lists = importer.map_or(0, |it| it.lists);
            if access.is_some_and(|access| access.opened > lists)
                || importer.is_some_and(|it| !it.selections().is_empty())
            {
                return None;
            }
            names.extend(importer.iter().flat_map(|it| &it.names).map(|(name, _)| stem(name)));
            names.extend(stems_below(folder, accesses));
        }
        Some(names)
    }

    /// The variable with the runtime's search path.
    pub fn search_path(&self) -> &'static str {
        self.search_path
    }

    /// The start directory of the other boot.
    pub fn folder(&self) -> &Path {
        &self.folders(CWD)[0]
    }

    /// The paths looked up below it by absolute names, relative to it; None if something was looked up above it, or if
    /// code other than an importer listed it.
    pub fn looked_up(&self, accesses: &Accesses, importers: &[Importer]) -> Option<BTreeSet<PathBuf>> {
        let place = self.place(CWD)?;
        let folder = &place.folders[0];
        // Each start compares a list of the folder that was made by its relative name.
        let known = importers.iter().find(|it| it.directory == *folder).map_or(0, |it| it.lists);
        if accesses
            .places
            .get(folder)
            .is_some_and(|access| access.listed.is_some() && !access.opened_from_start && access.opened > known)
        {
            return None;
        }
        let is_beside =
            |path: &Path, access: &PathAccess| is_access_to(path, access, &place.above) && !path.starts_with(folder);
        if accesses.places.iter().any(|(path, access)| is_beside(path, access)) {
            return None;
        }
        let below = |(path, access): (&PathBuf, &PathAccess)| {
            // The folder itself exists in any start.
            path.strip_prefix(folder).ok().filter(|_| access.named.absolutely).map(Path::to_owned)
        };
        Some(accesses.places.iter().filter_map(below).collect())
    }
}

/// Further differences of a boot as another start, besides environment and directory.
#[derive(Default)]
pub struct Otherwise {
    /// Whether it has additional variables (DIR/more).
    pub more_variables: bool,
    /// Whether it only looks for comparisons with these values.
    pub watches_values: bool,
    /// By how much its objects have other addresses than in a boot like the first one: 0 for not at all, or a small number.
    pub shifts_addresses: u32,
    /// The number of the [`super::everyday_forms::Form`] of its values; 0 for none.
    pub form: u32,
    /// Facts of host and kernel that the program gets: names and values.
    pub system: Vec<(OsString, OsString)>,
}

/// Whether an access is to a folder or below it. The folder itself must be listed to count: any look-up of a file
/// checks for links on the way.
fn is_access_to(path: &Path, access: &PathAccess, folder: &Path) -> bool {
    path.starts_with(folder) && (path != folder || access.listed.is_some())
}

/// The paths looked up below a folder, relative to it, without those only on the way to others; None if the folder was
/// listed.
fn looked_up_in(folder: &Path, accesses: &Accesses) -> Option<BTreeSet<PathBuf>> {
    if accesses.places.get(folder).is_some_and(|access| access.listed.is_some()) {
        return None;
    }
    let below = accesses.places.iter().filter(|(_, access)| access.looked).map(|(path, _)| path.strip_prefix(folder));
    Some(below.flatten().filter(|name| !name.as_os_str().is_empty()).map(Path::to_owned).collect())
}

/// The first component of each path looked up in a folder, up to its first dot.
pub fn stems_below<'a>(folder: &'a Path, accesses: &'a Accesses) -> impl Iterator<Item = OsString> + use<'a> {
    let below = accesses.places.keys().filter_map(move |path| path.strip_prefix(folder).ok()?.components().next());
    below.map(|name| stem(name.as_os_str()))
}

fn stem(name: &OsStr) -> OsString {
    OsStr::from_bytes(name.as_bytes().split(|&byte| byte == b'.').next().unwrap_or_default()).to_owned()
}

/// Makes the boot's look-ups below `start` relative to the start directory, if the other boot made them below its
/// folder, too (`looked_up`). Returns whether these are all absolute look-ups there, except those of `by_itself`.
pub fn make_relative(
    looked_up: &BTreeSet<PathBuf>,
    start: &Path,
    accesses: &mut Accesses,
    ignored: &Ignored,
    by_itself: impl Fn(&Path) -> bool,
) -> bool {
    for (path, access) in &mut accesses.places {
        let is_meant = path.strip_prefix(start).is_ok_and(|name| looked_up.contains(name));
        if is_meant && access.named.absolutely {
            access.named = Named::FROM_START;
            access.opened_from_start |= path != start && access.listed.is_some();
        }
    }
    !looked_up_below(start, accesses, ignored, by_itself)
}
