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
use judge::evidence::{CWD, HOST, KERNEL, KERNEL_VERSION};
use recorder::{Accesses, Named, PathAccess};

use super::boot_inputs::{looked_up_below, Ignored, Importer};
use super::control_dir::ControlDir;

/// Empty folders in folders, all with names of their own. They go with the control directory.
pub struct Elsewhere {
    /// What each fact's folders are in, so that who looks there looks above these alone.
    above: [(&'static str, PathBuf); 4],
    folder: PathBuf,
    home: PathBuf,
    bins: [PathBuf; 2],
    /// The runtime's search path.
    search_path: (&'static str, [PathBuf; 2]),
    /// A part of all these names.
    mark: String,
}

impl Elsewhere {
    /// Makes them. `search_path`: the variable that names directories for the runtime to search.
    pub fn create(dir: &ControlDir, search_path: &'static str) -> Result<Elsewhere> {
        let path = dir.path().canonicalize().unwrap_or_else(|_| dir.path().to_owned());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        // What shortens a path shows with these.
        let above =
            [(CWD, "cwd"), ("HOME", "home"), ("PATH", "path"), (search_path, "searched")].map(|(fact, word)| {
                let name = format!("above-{word}-{:x}{}", now.reverse_bits(), "-another-start".repeat(12));
                (fact, path.join(name))
            });
        let mark = format!("{now:x}");
        let folders =
            [(0, "Folder.of"), (1, "Home.of"), (2, "First.of"), (2, "Last.of"), (3, "Before.of"), (3, "Behind.of")]
                .map(|(fact, name): (usize, _)| above[fact].1.join(format!("{name}-{mark}")));
        for folder in &folders {
            fs::create_dir_all(folder).map_err(|error| Failure::io("make the folder", folder, &error))?;
        }
        let [folder, home, first, last, before, behind] = folders;
        let search_path = (search_path, [before, behind]);
        Ok(Elsewhere { above, folder, home, bins: [first, last], search_path, mark })
    }

    /// Another value of a variable that is known to [`crate::session`]'s other start.
    pub fn value(&self, name: &str, value: &OsStr) -> OsString {
        match name {
            "HOME" => self.home.clone().into(),
            "PATH" => {
                let [first, last] = self.bins.each_ref().map(|folder| folder.as_os_str());
                [first, value, last].join(OsStr::new(":"))
            }
            name if name == self.search_path.0 => {
                self.search_path.1.each_ref().map(|folder| folder.as_os_str()).join(OsStr::new(":"))
            }
            // The oldest that thaws: what a program does only from some version on, it does not here.
            KERNEL => format!("4.17.0-{}-for-another-start", self.mark).into(),
            KERNEL_VERSION => format!("#1 SMP {}-for-another-start", self.mark).into(),
            _ => self.made_up_name(name).into(),
        }
    }

    /// A name of a user or host in whose form is what such names have: capitals, a dot, many characters.
    fn made_up_name(&self, name: &str) -> String {
        format!("{name}.of-{}-for-another-start", self.mark)
    }

    /// Facts by which the other boot (`notes`) has done more than to look for something below HOME, below the directory or along PATH: it has
    /// written there, has looked beside these, or for a path with the name of a user, host or kernel. With the first path of each, in words.
    pub fn used_otherwise(&self, notes: &Accesses) -> BTreeMap<&'static str, String> {
        let mut found = BTreeMap::new();
        let own = self.own();
        let names = ["USER", "LOGNAME", HOST, KERNEL, KERNEL_VERSION];
        let names = names.map(|name| (name, self.value(name, OsStr::new("")).to_string_lossy().into_owned()));
        for (path, note) in &notes.places {
            let text = path.as_os_str().as_encoded_bytes();
            let has = |part: &str| memmem(text, part.as_bytes());
            let mut add = |name| {
                found.entry(name).or_insert_with(|| self.in_words(path));
            };
            names.iter().filter(|(_, value)| has(value)).for_each(|(name, _)| add(*name));
            if let Some((name, _)) = own.iter().find(|(_, folder)| path.starts_with(folder)) {
                if note.written || note.made {
                    add(*name);
                }
            } else if let Some((name, _)) = self.above.iter().find(|(_, above)| is_in(path, note, above)) {
                let named: Vec<_> =
                    own.iter().filter(|(_, folder)| has(&folder.to_string_lossy())).map(|(name, _)| *name).collect();
                let names = if named.is_empty() { vec![*name] } else { named };
                names.into_iter().for_each(&mut add);
            }
        }
        found
    }

    /// All folders, with the fact of each.
    fn own(&self) -> [(&'static str, &PathBuf); 6] {
        let ([first, last], (search_path, [before, behind])) = (&self.bins, &self.search_path);
        [
            ("HOME", &self.home),
            (CWD, &self.folder),
            ("PATH", first),
            ("PATH", last),
            (search_path, before),
            (search_path, behind),
        ]
    }

    /// Says of a path where it lies: below a folder of this boot, or above it.
    fn in_words(&self, path: &Path) -> String {
        let below = self.own().iter().find_map(|(_, folder)| Some((path.strip_prefix(folder).ok()?, "below it")));
        let above = self.above.iter().find_map(|(_, above)| Some((path.strip_prefix(above).ok()?, "above it")));
        match below.or(above) {
            Some((name, where_to)) if !name.as_os_str().is_empty() => format!("{} {where_to}", name.display()),
            _ => path.display().to_string(),
        }
    }

    /// What was looked for below HOME, named from there; None where it was listed.
    pub fn looked_up_at_home(&self, notes: &Accesses) -> Option<BTreeSet<PathBuf>> {
        looked_up_in(&self.home, notes)
    }

    /// Whether HOME itself was looked at.
    pub fn looks_at_home(&self, notes: &Accesses) -> bool {
        notes.places.get(&self.home).is_some_and(|note| note.looked)
    }

    /// What was looked for along PATH; None where its directories were listed.
    pub fn looked_up_along_path(&self, notes: &Accesses) -> Option<BTreeSet<PathBuf>> {
        let [first, last] = self.bins.each_ref().map(|folder| looked_up_in(folder, notes));
        Some(&first? | &last?)
    }

    /// Names that were looked up along the search path, each up to its first dot; None where its directories were listed by others than those
    /// who look for modules.
    pub fn looked_up_along_search_path(&self, notes: &Accesses, importers: &[Importer]) -> Option<BTreeSet<OsString>> {
        let mut names = BTreeSet::new();
        for folder in &self.search_path.1 {
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
        self.search_path.0
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
        let is_beside =
            |path: &Path, note: &PathAccess| is_in(path, note, &self.above[0].1) && !path.starts_with(&self.folder);
        if notes.places.iter().any(|(path, note)| is_beside(path, note)) {
            return None;
        }
        let below = |(path, note): (&PathBuf, &PathAccess)| {
            // The folder itself is there in any start.
            path.strip_prefix(&self.folder).ok().filter(|_| note.named.absolutely).map(Path::to_owned)
        };
        Some(notes.places.iter().filter_map(below).collect())
    }
}

/// What is another one in a boot as another start, besides environment and directory.
#[derive(Default)]
pub struct Otherwise {
    /// Whether there are more variables (DIR/more).
    pub more_variables: bool,
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
