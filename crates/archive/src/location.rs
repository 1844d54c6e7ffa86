//! The locations of a program's files and of its archive. `ruby/lib/snapboot/archive` has the same rules; the cases of
//! `tests/archive/locations.json` test both.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The application's root. Names below it are written relative to it, so that an archive moves with its application.
#[derive(Clone, Debug)]
pub(crate) struct Root(Vec<u8>);

/// The folder of archives, below the user's cache folder.
pub(crate) const OWN_FOLDER: &str = "snapboot/archives";

/// The kernel's maximum length of a path, with its NUL (bytes).
const LONGEST_PATH: usize = 4096;

impl Root {
    pub fn new(path: &Path) -> Self {
        let bytes = path.as_os_str().as_bytes();
        Root(bytes.strip_suffix(b"/").unwrap_or(bytes).to_vec())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The name of a path, in two parts.
    pub fn name<'p>(&self, path: &'p [u8]) -> [&'p [u8]; 2] {
        match path.strip_prefix(self.0.as_slice()) {
            Some([b'/', below @ ..]) if !self.0.is_empty() && !below.is_empty() => [b"./", below],
            _ => [b"", path],
        }
    }

    /// The path of a name.
    pub fn join(&self, name: &[u8]) -> Vec<u8> {
        let [start, rest] = self.path(name);
        [start, rest].concat()
    }

    /// Passes the path of a name to `look`, without an allocation. A path too long for the kernel is passed as an empty one, at which
    /// nothing exists.
    pub fn with_path<T>(&self, name: &[u8], look: impl FnOnce(&CStr) -> T) -> T {
        let [start, rest] = self.path(name);
        let (mut room, size) = ([0; LONGEST_PATH], start.len() + rest.len());
        if size < LONGEST_PATH {
            room[..start.len()].copy_from_slice(start);
            room[start.len()..size].copy_from_slice(rest);
        }
        match CStr::from_bytes_until_nul(&room) {
            Ok(path) if path.count_bytes() == size => look(path),
            _ => look(c""),
        }
    }

    fn path<'a>(&'a self, name: &'a [u8]) -> [&'a [u8]; 2] {
        match name {
            [b'.', rest @ ..] if rest.starts_with(b"/") => [&self.0, rest],
            _ => [b"", name],
        }
    }
}

/// The program that the archive belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Application {
    /// The directory that names in the archive are relative to.
    pub root: PathBuf,
    /// Identifies this program: the root, or the script of a program without Gemfile.
    anchor: PathBuf,
    has_gemfile: bool,
}

impl Application {
    /// Finds the program that a Ruby process runs.
    ///
    /// Its root is the directory of the Gemfile: of the one that BUNDLE_GEMFILE (`gemfile`) names, else of the nearest one above
    /// the main script, else above the working directory `cwd`. Without one it is the directory of the script; without a script
    /// (`ruby -e`, standard input) `/`.
    pub fn find(gemfile: Option<&OsStr>, script: Option<&Path>, cwd: &Path) -> Self {
        let script = script.map(|script| expand(script, cwd));
        let named = gemfile.filter(|name| !name.is_empty()).map(|name| expand(Path::new(name), cwd));
        let directory = match &named {
            Some(gemfile) => gemfile.parent(),
            None => script.iter().flat_map(|script| script.ancestors().skip(1)).chain(cwd.ancestors()).find(is_bundle),
        };
        if let Some(directory) = directory {
            let root = directory.to_owned();
            return Application { anchor: root.clone(), root, has_gemfile: true };
        }
        let anchor = script.unwrap_or_else(|| PathBuf::from("/"));
        let root = anchor.parent().unwrap_or(Path::new("/")).to_owned();
        Application { root, anchor, has_gemfile: false }
    }

    /// Whether it has a Gemfile, whose gems Bundler sets up at each start.
    pub fn has_gemfile(&self) -> bool {
        self.has_gemfile
    }

    /// The program at that absolute path, of any kind. Names in its archive are absolute, since its files may lie anywhere.
    pub fn of_program(path: &Path) -> Self {
        Application { root: PathBuf::from("/"), anchor: path.to_owned(), has_gemfile: false }
    }

    /// The program with files in that directory, as if it contained a Gemfile.
    pub fn in_directory(directory: &Path) -> Self {
        let root = expand(directory, Path::new("/"));
        Application { anchor: root.clone(), root, has_gemfile: true }
    }

    /// The path of its archive unless SNAPBOOT_ARCHIVE names another: in `tmp/cache` of an application with a directory `tmp`, else in the
    /// store below XDG_CACHE_HOME (`cache_home`) or `.cache` in HOME (`home`). `None` if there is neither: a home that does not exist does
    /// not count, and is not created (service users have one by name only), and neither does another user's.
    pub fn place(&self, cache_home: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
        // /tmp is shared by all users.
        let tmp = self.root.join("tmp");
        if self.has_gemfile && self.root != Path::new("/") && tmp.is_dir() {
            return Some(tmp.join("cache/snapboot.archive"));
        }
        let absolute = |path: &&OsStr| path.as_bytes().starts_with(b"/");
        let cache = match cache_home.filter(absolute) {
            Some(cache) => PathBuf::from(cache),
            None => home.filter(absolute).map(Path::new).filter(|home| trust::is_home(home))?.join(".cache"),
        };
        let digest = Sha256::digest(self.anchor.as_os_str().as_bytes());
        let digest: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let mut name = self.anchor.file_name().unwrap_or(OsStr::new("ruby")).to_owned();
        name.push(format!("-{digest}.archive"));
        Some(cache.join(OWN_FOLDER).join(name))
    }
}

fn is_bundle(directory: &&Path) -> bool {
    ["Gemfile", "gems.rb"].iter().any(|name| directory.join(name).is_file())
}

/// Makes a path absolute, without `.` and `..`, as Ruby's File.expand_path does.
fn expand(path: &Path, cwd: &Path) -> PathBuf {
    use std::path::Component;
    let mut expanded = PathBuf::from("/");
    for component in cwd.join(path).components() {
        match component {
            Component::ParentDir => {
                expanded.pop();
            }
            Component::Normal(name) => expanded.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    expanded
}
