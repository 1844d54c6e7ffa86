//! Finds the file of a module: the search of CPython's `FileFinder`, in the listings of directories.
//!
//! What only the file system shows, or Python's own finders decide, is left to them.

use archive::session::{Directories, DirectoryId, LookUp, Session};
use archive::{FileKind, Identity};
use rustix::fs::{stat, FileType};

/// Endings of module files.
pub struct Endings {
    /// Of extension modules, in the order in which they are tried; `.py` and `.pyc` follow.
    pub extensions: Vec<String>,
    /// The text that Python puts between a module's name and `.pyc`, with dots: `.cpython-311.`, or `.cpython-311.opt-1.`. `None`: compiled
    /// files lie elsewhere.
    pub tag: Option<String>,
}

/// A module's file.
pub struct Found {
    pub path: String,
    /// Of a package: its directory.
    pub folder: Option<String>,
    /// The name of the module in `path`: the last part of its name, or `__init__`.
    pub stem_size: usize,
    pub is_extension: bool,
    pub identity: Identity,
}

/// The result of a search in one directory.
pub enum Outcome {
    Found(Found),
    NotHere,
    /// Python has to search.
    Unknown,
}

const SOURCE: &str = ".py";
const COMPILED: &str = ".pyc";
const INITIAL: &str = "__init__";

/// Looks for the module whose name ends in `tail` in the directory at `entry` (an absolute path without a trailing slash).
pub fn search(
    entry: &str,
    tail: &str,
    endings: &Endings,
    directories: &mut Directories,
    session: &mut Session,
) -> Outcome {
    let mut place = Place { directories, session, endings };
    let top = place.directories.id(entry.as_bytes());
    let is_folder = match place.directories.find(top, &[tail.as_bytes()], place.session) {
        LookUp::Found(FileKind::Directory | FileKind::Link) => {
            let folder = format!("{entry}/{tail}");
            let id = place.directories.id(folder.as_bytes());
            match place.module_in(id, &folder, INITIAL) {
                Outcome::Found(found) => return Outcome::Found(Found { folder: Some(folder), ..found }),
                Outcome::Unknown => return Outcome::Unknown,
                Outcome::NotHere => true,
            }
        }
        LookUp::Found(FileKind::Other) | LookUp::Unknown => return Outcome::Unknown,
        LookUp::Found(FileKind::File) | LookUp::NotFound => false,
    };
    match place.module_in(top, entry, tail) {
        // Part of a namespace package, if it is a directory: other entries may have more of it.
        Outcome::NotHere if is_folder => Outcome::Unknown,
        outcome => outcome,
    }
}

struct Place<'a> {
    directories: &'a mut Directories,
    session: &'a mut Session,
    endings: &'a Endings,
}

impl Place<'_> {
    /// The file of that name and one of the endings.
    fn module_in(&mut self, directory: DirectoryId, path: &str, stem: &str) -> Outcome {
        let extensions = self.endings.extensions.iter().map(|ending| (ending.as_str(), true));
        for (ending, is_extension) in extensions.chain([(SOURCE, false), (COMPILED, false)]) {
            match self.directories.find(directory, &[stem.as_bytes(), ending.as_bytes()], self.session) {
                LookUp::NotFound | LookUp::Found(FileKind::Directory) => {}
                // Without its source.
                LookUp::Found(_) if ending == COMPILED => return Outcome::Unknown,
                LookUp::Found(FileKind::File | FileKind::Link) => {
                    let path = format!("{path}/{stem}{ending}");
                    match Self::identity(&path) {
                        Some(identity) => {
                            let stem_size = stem.len();
                            return Outcome::Found(Found { path, folder: None, stem_size, is_extension, identity });
                        }
                        // A link to a directory, or a file that has gone meanwhile.
                        None => return Outcome::Unknown,
                    }
                }
                LookUp::Found(FileKind::Other) | LookUp::Unknown => return Outcome::Unknown,
            }
        }
        Outcome::NotHere
    }

    fn identity(path: &str) -> Option<Identity> {
        let stat = stat(path).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        is_file.then(|| Identity::from_stat(&stat).ok()).flatten()
    }
}

impl Found {
    /// The result of `importlib.util.cache_from_source`, if it is known without a call.
    pub fn cached(&self, endings: &Endings) -> Option<String> {
        let tag = endings.tag.as_deref().filter(|_| !self.is_extension)?;
        let slash = self.path.rfind('/')?;
        let (directory, name) = self.path.split_at(slash);
        Some(format!("{directory}/__pycache__{}{tag}pyc", &name[..=self.stem_size]))
    }
}
