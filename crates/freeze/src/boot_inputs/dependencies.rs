//! Turns the accesses of a boot into what an image stores: files, and answers of the directories that still exist.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use image::{answer_kind, is_selected};
use image_file::directory_answers::{selects_names, DirectoryAnswer, DirectoryAnswers};
use recorder::{Accesses, Identity, PathAccess, State};

use super::ignored::Ignored;
use super::importers::Importer;
use super::relative::is_absolute;
use super::Booted;

/// Maximum length of a chain of dangling links: more than the kernel follows.
const MAX_LINKS: usize = 40;

/// A directory list, and which of its names count: see [`image::is_selected`].
#[derive(Debug)]
pub struct List {
    pub directory: PathBuf,
    /// The names in it at the first listing.
    pub before: BTreeSet<OsString>,
    pub kind: u32,
    pub selection: OsString,
}

impl List {
    /// A list in which all names count.
    pub fn whole(directory: &Path, before: &BTreeSet<OsString>) -> List {
        List::new(directory, before, answer_kind::LISTING, OsString::new())
    }

    fn new(directory: &Path, before: &BTreeSet<OsString>, kind: u32, selection: OsString) -> List {
        List { directory: directory.to_owned(), before: before.clone(), kind, selection }
    }

    /// Whether a name was added or removed since, except by the boot itself.
    pub fn changed(&self, now: &BTreeSet<OsString>, ignored: &Ignored, accesses: &Accesses) -> bool {
        let counts = |name: &&OsString| {
            let is_own = accesses.places.get(&self.directory.join(name)).is_some_and(|access| access.made);
            let (bytes, image) = (name.as_bytes(), ignored.image_name().as_bytes());
            !is_own && is_selected(self.kind, self.selection.as_bytes(), bytes) && !image::is_unlisted(bytes, image)
        };
        self.before.symmetric_difference(now).any(|name| counts(&name))
    }
}

/// What an image stores.
#[derive(Debug, Default)]
pub struct Dependencies {
    /// Files whose content counts, with their identity at the first access.
    pub files: BTreeMap<PathBuf, Identity>,
    /// Answers by directory.
    pub directories: BTreeMap<PathBuf, DirectoryAnswers>,
    /// Directories whose list counts.
    pub lists: Vec<List>,
    /// Names that were found to be directories. Those with a row of their own need no answer.
    pub known: BTreeSet<PathBuf>,
    /// The current state of paths, cached.
    states: HashMap<PathBuf, State>,
    /// Whether paths lead to directories, cached.
    behind: HashMap<PathBuf, bool>,
}

/// Whether code that reports no look-ups has listed a directory.
pub fn is_listed_whole(access: &PathAccess, importer: Option<&Importer>) -> bool {
    access.listed.is_some() && access.opened > importer.map_or(0, |importer| importer.lists)
}

impl Dependencies {
    /// Collapses all accesses except the ignored ones, and adds what the importers looked up. Another table compares
    /// `mapped` files; of these only the links count through which they were found.
    pub fn collect(booted: &Booted<'_>, mapped: &BTreeSet<&Path>) -> Self {
        let Booted { accesses, ignored, importers, script, .. } = *booted;
        let mut collapsed = Dependencies::default();
        for (path, access) in accesses.places.iter().filter(|(path, access)| is_absolute(path, access, script)) {
            if ignored.reason(path, access, &accesses.places).is_none() {
                let importer = importers.iter().find(|importer| importer.directory == *path);
                let is_missed = |importer: &Importer| {
                    collapsed.add_missed(path, access, importer) || collapsed.add_named(path, access, importer)
                };
                if !importer.is_some_and(is_missed) {
                    collapsed.add(path, access);
                    collapsed.add_list(path, access, importer);
                }
            }
        }
        for importer in importers.iter().filter(|importer| !ignored.is_own(&importer.directory)) {
            for name in importer.absent() {
                let path = importer.directory.join(name);
                if !accesses.places.get(&path).is_some_and(|access| access.made || access.written) {
                    collapsed.add_absent(&path, MAX_LINKS);
                }
            }
        }
        collapsed.drop_mapped(mapped);
        collapsed.add_known();
        collapsed
    }

    fn add(&mut self, path: &Path, access: &PathAccess) {
        if access.looked_at_link {
            match &access.state {
                State::Link(target) => self.add_answer(path, DirectoryAnswer::Link(target.clone())),
                State::Absent => self.add_absent(path, MAX_LINKS),
                State::File(_) | State::Directory | State::Special => self.add_answer(path, DirectoryAnswer::Plain),
                State::Unknown => {}
            }
        }
        if !access.looked {
            return;
        }
        match access.target_state() {
            // Of a link the directory does not tell whether its target is still a file.
            State::File(_) if !access.looked_closely && access.behind.is_none() => {
                self.add_answer(path, DirectoryAnswer::File);
            }
            State::File(identity) => {
                self.files.insert(path.to_owned(), *identity);
            }
            State::Directory if access.behind.is_none() => {
                self.known.insert(path.to_owned());
            }
            // A link stays when its target goes away, so the link's directory does not tell.
            State::Directory => {
                self.directories.entry(path.to_owned()).or_default().insert((".".into(), DirectoryAnswer::Directory));
            }
            State::Special => self.add_answer(path, DirectoryAnswer::Special),
            State::Absent => self.add_absent(path, MAX_LINKS),
            // Resolved above, or unknown.
            State::Link(_) | State::Unknown => {}
        }
    }

    /// A list counts if code other than an importer read it. Importers look names up in it, which count themselves.
    fn add_list(&mut self, path: &Path, access: &PathAccess, importer: Option<&Importer>) {
        let Some(names) = &access.listed else { return };
        if is_listed_whole(access, importer) {
            self.lists.push(List::whole(path, names));
        }
        for (kind, selection) in importer.iter().flat_map(|importer| importer.selections()) {
            self.lists.push(List::new(path, names, kind, selection));
        }
    }

    /// Records that only certain names were looked up in a missing directory: it may appear without them. Returns false
    /// if other look-ups were made.
    fn add_missed(&mut self, path: &Path, access: &PathAccess, importer: &Importer) -> bool {
        let selections = importer.selections();
        let is_all = access.state == State::Absent && access.looked_up == 0 && access.opened <= importer.lists;
        if !is_all || selections.is_empty() || selections.iter().any(|(kind, _)| !selects_names(*kind)) {
            return false;
        }
        let list = |(kind, selection)| List::new(path, &BTreeSet::new(), kind, selection);
        self.lists.extend(selections.into_iter().map(list));
        true
    }

    /// Records that a missing directory keeps its name once it appears, if nothing else was looked up. Returns false
    /// otherwise.
    fn add_named(&mut self, path: &Path, access: &PathAccess, importer: &Importer) -> bool {
        let is_all = access.state == State::Absent && access.looked_up <= importer.named && access.opened == 0;
        let Some(above) = path.ancestors().skip(1).find(|above| self.is_directory(above)) else { return false };
        if !is_all || above.canonicalize().ok().as_deref() != Some(above) {
            return false;
        }
        let own = path.ancestors().take_while(|it| *it != above).filter_map(|it| it.strip_prefix(above).ok());
        let answers = self.directories.entry(above.to_owned()).or_default();
        answers.extend(own.map(|name| (name.as_os_str().to_owned(), DirectoryAnswer::Unlinked)));
        true
    }

    /// Adds an answer to the directory of a path.
    fn add_answer(&mut self, path: &Path, fact: DirectoryAnswer) {
        if let (Some(directory), Some(name)) = (path.parent(), path.file_name()) {
            self.directories.entry(directory.to_owned()).or_default().insert((name.to_owned(), fact));
        }
    }

    /// Records an absent path as an answer of its deepest existing directory: while that does not change, nothing can
    /// appear below it.
    fn add_absent(&mut self, path: &Path, links: usize) {
        let Some(directory) = path.ancestors().skip(1).find(|above| self.is_directory(above)).map(Path::to_owned)
        else {
            return;
        };
        let Ok(name) = path.strip_prefix(&directory) else { return };
        let mut parts = name.components();
        let Some(first) = parts.next() else { return };
        let first = directory.join(first);
        let fact = match self.state_of(first.clone()) {
            State::Absent => DirectoryAnswer::Absent,
            State::Link(target) if links > 0 => {
                // A dangling link: both its target and the absence of that target count.
                let (target, behind) = (target.clone(), directory.join(target).join(parts.as_path()));
                self.add_answer(&first, DirectoryAnswer::Link(target));
                return self.add_absent(&behind, links - 1);
            }
            // A name that is too long for this file system exists nowhere.
            _ if name == Path::new(first.file_name().unwrap_or_default()) => DirectoryAnswer::Absent,
            _ => DirectoryAnswer::Below,
        };
        let name = name.as_os_str().to_owned();
        if name.len() <= image::MAX_NAME {
            self.directories.entry(directory).or_default().insert((name, fact));
        }
    }

    fn drop_mapped(&mut self, mapped: &BTreeSet<&Path>) {
        let inode = |path: &Path| path.metadata().map(|metadata| (metadata.dev(), metadata.ino())).ok();
        let inodes: BTreeSet<_> = mapped.iter().filter_map(|path| inode(path)).collect();
        let is_mapped = |path: &Path| {
            inode(path).is_some_and(|inode| inodes.contains(&inode))
                && path.canonicalize().is_ok_and(|real| mapped.contains(real.as_path()))
        };
        let (dropped, rest): (BTreeMap<_, _>, _) =
            std::mem::take(&mut self.files).into_iter().partition(|(path, _)| is_mapped(path));
        self.files = rest;
        for above in dropped.keys().flat_map(|path| path.ancestors()) {
            if let State::Link(target) = State::read(above) {
                self.add_answer(above, DirectoryAnswer::Link(target));
            }
        }
    }

    /// Directories without a row of their own become answers of their parent directories.
    fn add_known(&mut self) {
        let own: BTreeSet<&Path> = self
            .files
            .keys()
            .filter_map(|file| file.parent())
            .chain(self.directories.keys().map(PathBuf::as_path))
            .collect();
        let rest: Vec<PathBuf> = self.known.iter().filter(|path| !own.contains(path.as_path())).cloned().collect();
        rest.iter().for_each(|path| self.add_answer(path, DirectoryAnswer::Directory));
    }

    fn is_directory(&mut self, path: &Path) -> bool {
        if let Some(known) = self.behind.get(path) {
            return *known;
        }
        let is = State::read_target(path) == State::Directory;
        self.behind.insert(path.to_owned(), is);
        is
    }

    /// The current state of a path.
    fn state_of(&mut self, path: PathBuf) -> &State {
        self.states.entry(path).or_insert_with_key(|path| State::read(path))
    }
}
