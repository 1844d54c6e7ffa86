//! The location of the store, and whether it may be used.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use rustix::process::Pid;

use crate::{Command, Folder};

/// The variable that names another location for the store; `off` for none.
pub const VARIABLE: &str = "SNAPBOOT_STORE";

/// The store of this user: images that starts have asked for, which can be made again at any time, and those of installed commands, which
/// stay until they are uninstalled.
pub struct Store {
    /// Holds a folder for each command.
    cache: PathBuf,
    /// Holds a folder for each installed command, and the links to them.
    data: PathBuf,
}

impl Store {
    /// Finds the store: `$SNAPBOOT_STORE/cache` and `$SNAPBOOT_STORE/data`, or `snapboot/images` in `$XDG_CACHE_HOME` (`~/.cache`) and
    /// `snapboot` in `$XDG_DATA_HOME` (`~/.local/share`). None if it is switched off, or its location is unknown; the home of another user,
    /// where `sudo -E` leads, does not count.
    pub fn find() -> Option<Store> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        if let Some(named) = std::env::var_os(VARIABLE) {
            let named = Some(PathBuf::from(named)).filter(|path| path.is_absolute())?;
            return Some(Store { cache: named.join("cache"), data: named.join("data") });
        }
        let home = || absolute("HOME").filter(|home| trust::is_home(home));
        let below = |name: &str, place: &str| absolute(name).or_else(|| Some(home()?.join(place)));
        Some(Store {
            cache: below("XDG_CACHE_HOME", ".cache")?.join("snapboot/images"),
            data: below("XDG_DATA_HOME", ".local/share")?.join("snapboot"),
        })
    }

    /// A store in this folder.
    #[cfg(test)]
    pub(crate) fn in_folder(folder: &Path) -> Store {
        Store { cache: folder.join("cache"), data: folder.join("data") }
    }

    /// Returns the store, or why there is none.
    pub fn open() -> Result<Store> {
        Store::find().ok_or_else(|| {
            Failure::refusal(format!(
                "there is no store: {VARIABLE} should be an absolute path where it is set (off: none), and HOME a directory of this user \
                 where it is not."
            ))
        })
    }

    /// Holds the folders of commands for which starts have asked.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Holds the files of installed commands.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Holds the folders of installed commands.
    pub fn tools(&self) -> PathBuf {
        self.data.join("tools")
    }

    /// An empty folder, in which no program is started.
    pub(crate) fn empty(&self) -> PathBuf {
        self.data.join("empty")
    }

    /// The directory for PATH.
    pub fn bin(&self) -> PathBuf {
        self.data.join("bin")
    }

    /// The folder of a command, whether it exists or not; if the command is installed, the folder of that.
    pub fn folder(&self, command: &Command) -> Folder {
        let key = command.key();
        let installed = self.tools().join(&key);
        Folder::new(if installed.exists() { installed } else { self.cache.join(key) })
    }

    /// All folders: those of installed commands first, each kind by name.
    pub fn folders(&self) -> Vec<Folder> {
        let of = |place: &Path| {
            let mut found: Vec<PathBuf> =
                fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
            found.sort();
            found
        };
        let all = [of(&self.tools()), of(&self.cache)].concat();
        all.into_iter().map(Folder::new).filter(|folder| folder.command().is_some()).collect()
    }
}

/// Creates a directory of the store with its parents, for this user alone.
pub fn make(path: &Path) -> Result<()> {
    let untrusted = |refusal: trust::Refusal| {
        Failure::refusal(format!(
            "{refusal}, so nothing in {} can be trusted. Remove it, or name another store with {VARIABLE}.",
            path.display()
        ))
    };
    trust::check_place(path).map_err(untrusted)?;
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|error| Failure::io("make", path, &error))?;
    trust::check_own_directory(path).map_err(untrusted)
}

/// Writes a file atomically.
pub fn write(path: &Path, content: &[u8]) -> Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    let new = path.with_file_name(name);
    // A process with the same number may have left it behind.
    let _ = fs::remove_file(&new);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new);
    made.and_then(|mut file| file.write_all(content)).and_then(|()| fs::rename(&new, path)).map_err(|error| {
        let _ = fs::remove_file(&new);
        Failure::io("write", path, &error)
    })
}

/// The process that writes a draft of this name, which will be renamed; None if the name is not a draft's.
pub(crate) fn draft_of(name: &OsStr) -> Option<Pid> {
    let (file, process) = name.to_str()?.strip_prefix('.')?.rsplit_once('.')?;
    file.contains('.').then(|| process.parse().ok().and_then(Pid::from_raw)).flatten()
}
