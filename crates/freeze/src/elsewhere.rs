//! Whether a program only keeps the current directory: a second boot shows it, in an empty folder whose names are unlike all others.
//!
//! The front end finds there what was made of these names, and this what was looked for below that folder and beside it. What was
//! looked for below it is compared where an image is started; who looks beside it or above it depends on where that is.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use failure::{Failure, Result};
use judge::evidence::{CWD, KERNEL, KERNEL_VERSION};
use recorder::{Accesses, Named, PathAccess};

use super::boot_inputs::{looked_up_below, Ignored, Importer};
use super::control_dir::ControlDir;

/// Other values of facts about a start. Those that are paths lead to empty folders, all with names of their own, which go with the control
/// directory.
pub struct Elsewhere {
    places: Vec<Place>,
    /// The variable that names directories for the runtime to search.
    search_path: &'static str,
    /// A part of all these names.
    mark: String,
}

/// Where a fact of another start leads to.
struct Place {
    fact: String,
    /// What its folders are in, so that who looks there looks above these alone.
    above: PathBuf,
    /// The value; of PATH what comes first and last in it; of the search path both directories.
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
    /// Makes them, for the current directory, HOME, PATH, the variable that names directories for the runtime to search, and `variables`.
    pub fn create(dir: &ControlDir, search_path: &'static str, variables: &[PathVariable]) -> Result<Elsewhere> {
        let path = dir.path().canonicalize().unwrap_or_else(|_| dir.path().to_owned());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        // Digits stay what they are in capitals.
        let mark = now.to_string();
        let place = |fact: &str, names: &[&str]| {
            // What shortens a path shows with these.
            let name = format!("above-{}-{:x}{}", fact.to_lowercase(), now.reverse_bits(), "-another-start".repeat(12));
            let above = path.join(name);
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
                fs::create_dir_all(folder).map_err(|error| Failure::io("make the folder", folder, &error))?;
            }
        }
        Ok(Elsewhere { places, search_path, mark })
    }

    /// Another value of a fact.
    pub fn value(&self, name: &str, value: &OsStr) -> OsString {
        match (name, self.folders(name)) {
            (_, [folder]) => folder.into(),
            (name, [before, behind]) if name == self.search_path => {
                [before, behind].map(|it| it.as_os_str()).join(OsStr::new(":"))
            }
            (_, [first, last]) => [first.as_os_str(), value, last.as_os_str()].join(OsStr::new(":")),
            // The oldest that thaws: what a program does only from some version on, it does not here.
            (KERNEL, _) => format!("4.17.0-{}-for-another-start", self.mark).into(),
            (KERNEL_VERSION, _) => format!("#1 SMP {}-for-another-start", self.mark).into(),
            _ => self.made_up_name(name).into(),
        }
    }

    /// Whether other values of this fact are paths of folders.
    pub fn is_folder(&self, name: &str) -> bool {
        self.folders(name).len() == 1
    }

    fn folders(&self, fact: &str) -> &[PathBuf] {
        self.places.iter().find(|place| place.fact == fact).map_or(&[], |place| &place.folders)
    }

    /// A name of a user or host in whose form is what such names have: capitals, a dot, many characters.
    fn made_up_name(&self, name: &str) -> String {
        format!("{name}-{}.of-{}-for-another-start", self.mark, self.mark)
    }

    /// Those of these facts by which the other boot (`notes`) has done more than to look for something below a folder or along PATH: it has
    /// written there, has looked beside these, or for a path with the name of a user, host or kernel. With the first path of each, in words.
    pub fn used_otherwise<'n>(
        &self,
        facts: impl Iterator<Item = &'n str>,
        notes: &Accesses,
    ) -> BTreeMap<&'n str, String> {
        let mut found = BTreeMap::new();
        let facts: Vec<&str> = facts.collect();
        let (of_folders, names): (Vec<&str>, Vec<&str>) =
            facts.into_iter().partition(|name| !self.folders(name).is_empty());
        let names: Vec<(&str, String)> = names
            .into_iter()
            .map(|name| (name, self.value(name, OsStr::new("")).to_string_lossy().into_owned()))
            .collect();
        let places: Vec<(&str, &Place)> = of_folders
            .into_iter()
            .filter_map(|name| Some((name, self.places.iter().find(|it| it.fact == name)?)))
            .collect();
        for (path, note) in &notes.places {
            let text = path.as_os_str().as_encoded_bytes();
            let has = |part: &str| memmem(text, part.as_bytes());
            let mut add = |name| {
                found.entry(name).or_insert_with(|| self.in_words(path));
            };
            names.iter().filter(|(_, value)| has(value)).for_each(|(name, _)| add(*name));
            let is_own = |place: &Place| place.folders.iter().any(|folder| path.starts_with(folder));
            if let Some((name, _)) = places.iter().find(|(_, place)| is_own(place)) {
                if note.written || note.made {
                    add(*name);
                }
            } else if let Some((name, _)) = places.iter().find(|(_, place)| is_in(path, note, &place.above)) {
                let is_named = |place: &Place| place.folders.iter().any(|folder| has(&folder.to_string_lossy()));
                let named: Vec<_> = places.iter().filter(|(_, place)| is_named(place)).map(|(name, _)| *name).collect();
                let names = if named.is_empty() { vec![*name] } else { named };
                names.into_iter().for_each(&mut add);
            }
        }
        found
    }

    /// Says of a path where it lies: below a folder of this boot, or above it.
    fn in_words(&self, path: &Path) -> String {
        let folders = self.places.iter().flat_map(|place| &place.folders);
        let mut above = self.places.iter().map(|place| &place.above);
        let below = folders.clone().find_map(|folder| Some((path.strip_prefix(folder).ok()?, "below it")));
        match below.or_else(|| above.find_map(|above| Some((path.strip_prefix(above).ok()?, "above it")))) {
            Some((name, where_to)) if !name.as_os_str().is_empty() => format!("{} {where_to}", name.display()),
            _ => path.display().to_string(),
        }
    }

    /// What was looked for below the folders of a fact, named from there; None where one of them was listed.
    pub fn looked_up_below(&self, fact: &str, notes: &Accesses) -> Option<BTreeSet<PathBuf>> {
        let names = self.folders(fact).iter().map(|folder| looked_up_in(folder, notes));
        names.collect::<Option<Vec<_>>>().map(|names| names.into_iter().flatten().collect())
    }

    /// Whether the folder of a fact was itself looked at.
    pub fn looks_at(&self, fact: &str, notes: &Accesses) -> bool {
        self.folders(fact).iter().any(|folder| notes.places.get(folder).is_some_and(|note| note.looked))
    }

    /// Names that were looked up along the search path, each up to its first dot; None where its directories were listed by others than those
    /// who look for modules.
    pub fn looked_up_along_search_path(&self, notes: &Accesses, importers: &[Importer]) -> Option<BTreeSet<OsString>> {
        let mut names = BTreeSet::new();
        for folder in self.folders(self.search_path) {
            let importer = importers.iter().find(|it| it.directory == *folder);
            let note = notes.places.get(folder).filter(|note| note.listed.is_some());
            let lists = importer.map_or(0, |it| it.lists);
            if note.is_some_and(|note| note.opened > lists) || importer.is_some_and(|it| !it.selections().is_empty()) {
                return None;
            }
            names.extend(importer.iter().flat_map(|it| &it.names).map(|(name, _)| stem(name)));
            names.extend(stems_below(folder, notes));
        }
        Some(names)
    }

    /// The variable of the search path.
    pub fn search_path(&self) -> &'static str {
        self.search_path
    }

    /// Where the program is booted.
    pub fn folder(&self) -> &Path {
        &self.folders(CWD)[0]
    }

    /// What was looked for below it by absolute paths, named from there; None when something was looked for above it, or its names were
    /// listed by others than those who look for modules.
    pub fn looked_up(&self, notes: &Accesses, importers: &[Importer]) -> Option<BTreeSet<PathBuf>> {
        let place = self.places.iter().find(|place| place.fact == CWD)?;
        let folder = &place.folders[0];
        // A list of the folder by its short name is compared where the image is started.
        let known = importers.iter().find(|it| it.directory == *folder).map_or(0, |it| it.lists);
        if notes
            .places
            .get(folder)
            .is_some_and(|note| note.listed.is_some() && !note.opened_from_start && note.opened > known)
        {
            return None;
        }
        let is_beside = |path: &Path, note: &PathAccess| is_in(path, note, &place.above) && !path.starts_with(folder);
        if notes.places.iter().any(|(path, note)| is_beside(path, note)) {
            return None;
        }
        let below = |(path, note): (&PathBuf, &PathAccess)| {
            // The folder itself is there in any start.
            path.strip_prefix(folder).ok().filter(|_| note.named.absolutely).map(Path::to_owned)
        };
        Some(notes.places.iter().filter_map(below).collect())
    }
}

/// What is another one in a boot as another start, besides environment and directory.
#[derive(Default)]
pub struct Otherwise {
    /// Whether there are more variables (DIR/more).
    pub more_variables: bool,
    /// Whether only comparisons of a program with these values are looked for.
    pub watches_values: bool,
    /// What the program is told of host and kernel: name and value of each fact.
    pub system: Vec<(OsString, OsString)>,
}

/// Whether something was looked at in a folder. Links are looked for on the way to any file.
fn is_in(path: &Path, note: &PathAccess, folder: &Path) -> bool {
    path.starts_with(folder) && (path != folder || note.listed.is_some())
}

fn memmem(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// What was looked at below a folder, not only on the way to something else, named from there; None where it was listed.
fn looked_up_in(folder: &Path, notes: &Accesses) -> Option<BTreeSet<PathBuf>> {
    if notes.places.get(folder).is_some_and(|note| note.listed.is_some()) {
        return None;
    }
    let below = notes.places.iter().filter(|(_, note)| note.looked).map(|(path, _)| path.strip_prefix(folder));
    Some(below.flatten().filter(|name| !name.as_os_str().is_empty()).map(Path::to_owned).collect())
}

/// What was looked up in a folder, by its first part and up to a dot in that.
pub fn stems_below<'a>(folder: &'a Path, notes: &'a Accesses) -> impl Iterator<Item = OsString> + use<'a> {
    let below = notes.places.keys().filter_map(move |path| path.strip_prefix(folder).ok()?.components().next());
    below.map(|name| stem(name.as_os_str()))
}

fn stem(name: &OsStr) -> OsString {
    OsStr::from_bytes(name.as_bytes().split(|&byte| byte == b'.').next().unwrap_or_default()).to_owned()
}

/// Has what the boot looked up below `start`, and in the other boot below another folder as well (`looked_up`), count where an image is
/// started. Returns whether that is all that it looked up there by absolute paths, but for what `by_itself` says.
pub fn follow(
    looked_up: &BTreeSet<PathBuf>,
    start: &Path,
    notes: &mut Accesses,
    ignored: &Ignored,
    by_itself: impl Fn(&Path) -> bool,
) -> bool {
    for (path, note) in &mut notes.places {
        let is_meant = path.strip_prefix(start).is_ok_and(|name| looked_up.contains(name));
        if is_meant && note.named.absolutely {
            note.named = Named::FROM_START;
            note.opened_from_start |= path != start && note.listed.is_some();
        }
    }
    !looked_up_below(start, notes, ignored, by_itself)
}
