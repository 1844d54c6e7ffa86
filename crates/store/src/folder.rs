//! The folder of a command: its images, its command, and the outcome of the last attempt to make one.

use std::fs::{File, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use failure::Result;
use freeze::{Content, Mark};
use rustix::fs::{access, flock, Access, FlockOperation};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::location;
use crate::no_image_reason::NoImageReason;
use crate::Command;

/// The number of images that are kept for one command, for several environments.
pub const MAX_IMAGES: usize = 8;
/// How long a process may hold the lock that does not keep it: one that only looks, or a builder at its very end.
const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);
/// What stands before and behind the number in the name of an image: of the program's, and of its libraries'.
const LIBRARIES: &str = "libraries-";
const IMAGE: &str = ".img";

/// The file that says whose folder it is.
const COMMAND: &str = "command.json";
/// The file that says as which command a folder's image is installed.
pub(crate) const INSTALLED: &str = "installed.json";

/// The folder of a command, seen as that of images of one kind ([`Content`]). Holds NUMBER.img for each image, `command.json` (see
/// [`Command`]), `attempt.json` (see [`crate::attempt::Attempts`]), `changes.json` ([`crate::changes::Changes`]), `profile` (the reports of
/// starts), `remote.json` ([`crate::remote`]), `hash-seed.json` ([`crate::hash_seed`]) and `lock`. The names of images of libraries, and of what was written about them, begin with `libraries-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
    content: Content,
}

impl Folder {
    /// The folder at this path, whether it exists or not, with images of the program.
    pub fn new(path: PathBuf) -> Folder {
        Folder { path, content: Content::Program }
    }

    /// The folder that contains an image, with images of its kind.
    pub fn containing(image: &Path) -> Option<Folder> {
        let is_of_libraries = image.file_name()?.as_bytes().starts_with(LIBRARIES.as_bytes());
        let content = if is_of_libraries { Content::Libraries } else { Content::Program };
        Some(Folder { path: image.parent()?.to_owned(), content })
    }

    /// The same folder, with images of this kind.
    pub fn with(&self, content: Content) -> Folder {
        Folder { path: self.path.clone(), content }
    }

    /// What its images hold.
    pub fn content(&self) -> Content {
        self.content
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its image replaces an installed command: see tools.rs.
    pub fn is_installed(&self) -> bool {
        self.path.join(INSTALLED).exists()
    }

    /// Whether it belongs to this user, and nobody else can have written to it.
    pub fn is_own(&self) -> bool {
        trust::check_own_directory(&self.path).is_ok()
    }

    /// Why this user cannot write in it, as on a file system that is mounted read-only; None if the user can, or it does not exist yet.
    pub fn cannot_write(&self) -> Option<NoImageReason> {
        let error = access(&self.path, Access::WRITE_OK).err().filter(|error| *error != Errno::NOENT)?;
        Some(NoImageReason::CannotWrite { folder: self.path.clone(), error: error.into() })
    }

    /// Has a link lead to it, whether it exists or not. What cannot be written is left: then starts ask more seldom.
    ///
    /// A program whose arguments belong to its command has several folders; one with images, for which starts ask, is better.
    pub fn link_from(&self, link: &Path) {
        let led = std::fs::read_link(link).ok();
        let is_better = |path: &PathBuf| *path == self.path || !Folder::new(path.clone()).all_images().is_empty();
        if led.as_ref().is_some_and(is_better) {
            return;
        }
        let _ = std::fs::remove_file(link);
        let _ = std::os::unix::fs::symlink(&self.path, link);
    }

    /// Creates it for this command.
    pub fn make(&self, command: &Command) -> Result<()> {
        location::make(self.path.parent().unwrap_or(&self.path))?;
        location::make(&self.path)?;
        if self.command().as_ref() == Some(command) {
            return Ok(());
        }
        self.write(COMMAND, command)
    }

    /// Whose folder it is; None if unknown.
    pub fn command(&self) -> Option<Command> {
        self.read(COMMAND)
    }

    /// The file that says so. Whoever removes the store, or its contents, removes this file.
    pub(crate) fn command_file(&self) -> PathBuf {
        self.path.join(COMMAND)
    }

    /// Its images of all kinds.
    pub fn all_images(&self) -> Vec<PathBuf> {
        [Content::Program, Content::Libraries].iter().flat_map(|content| self.with(*content).images()).collect()
    }

    /// Its images, by number.
    pub fn images(&self) -> Vec<PathBuf> {
        let numbers = (1..=MAX_IMAGES).map(|number| self.image(number));
        numbers.filter(|image| image.exists()).collect()
    }

    /// The path of the first image, to which links lead.
    pub fn first_image(&self) -> PathBuf {
        self.image(1)
    }

    /// The path for a new image: the first free number, else that of the image that was used longest ago.
    pub fn next_image(&self) -> PathBuf {
        let free = (1..=MAX_IMAGES).map(|number| self.image(number)).find(|image| !image.exists());
        free.unwrap_or_else(|| {
            let images = self.images();
            let oldest = images.iter().min_by_key(|image| crate::clock::by_age(crate::eviction::last_used(image)));
            oldest.cloned().unwrap_or_else(|| self.image(1))
        })
    }

    fn image(&self, number: usize) -> PathBuf {
        self.path.join(self.name_for_kind(&format!("{number}{IMAGE}")))
    }

    /// The name of a file that is about images of this kind alone.
    pub fn name_for_kind(&self, name: &str) -> String {
        match self.content {
            Content::Program => name.to_owned(),
            Content::Libraries => format!("{LIBRARIES}{name}"),
        }
    }

    /// A link to the program of an installed command, which python/snapboot/front_end/which.py follows.
    pub(crate) fn program_link(&self) -> PathBuf {
        self.path.join("program")
    }

    /// The file in which starts report what they load.
    pub fn profile(&self) -> PathBuf {
        self.path.join("profile")
    }

    /// Reads a file of the folder; None if it does not exist, is damaged, or may be somebody else's.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&trust::read(&self.path.join(name)).ok()?).ok()
    }

    /// Writes a file of the folder atomically.
    pub fn write<T: Serialize>(&self, name: &str, content: &T) -> Result<()> {
        let text = serde_json::to_vec_pretty(content).expect("texts and numbers");
        location::write(&self.path.join(name), &text)
    }

    /// Takes the lock of this folder until it is dropped; None if another process keeps it.
    pub fn lock(&self) -> Option<Lock> {
        self.lock_within(PATIENCE)
    }

    /// Does the same, and waits this long for another process.
    fn lock_within(&self, patience: Duration) -> Option<Lock> {
        let begun = Instant::now();
        loop {
            let taken = lock(&self.lock_file(), FlockOperation::NonBlockingLockExclusive);
            let lock = taken.and_then(|file| Lock::new(self.lock_file(), file));
            // Between the two calls, somebody may have removed the folder.
            let lock = lock.filter(Lock::is_there);
            if lock.is_some() || begun.elapsed() >= patience {
                return lock;
            }
            thread::sleep(BETWEEN_TRIES);
        }
    }

    /// Whether a builder makes an image in it.
    pub fn is_building(&self) -> bool {
        // Shared, so that processes that only look do not take each other for builders. If it cannot be opened, as in a read-only store,
        // nobody makes an image.
        open_at_once(OpenOptions::new().read(true), &self.lock_file())
            .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK))
    }

    fn lock_file(&self) -> PathBuf {
        self.path.join("lock")
    }
}

/// The lock of a folder.
pub struct Lock {
    mark: Mark,
    _file: File,
}

impl Lock {
    fn new(path: PathBuf, file: File) -> Option<Lock> {
        Some(Lock { mark: Mark::new(path, &file).ok()?, _file: file })
    }

    /// What shows whether the folder was removed since.
    pub fn mark(&self) -> &Mark {
        &self.mark
    }

    /// Whether the folder is still there. If it was removed, this is the lock of none, whoever has made it again.
    pub fn is_there(&self) -> bool {
        self.mark.is_there()
    }
}

/// Takes a lock.
pub fn lock(path: &Path, how: FlockOperation) -> Option<File> {
    let mut options = OpenOptions::new();
    let file = open_at_once(options.write(true).create(true).truncate(false).mode(0o600), path).ok()?;
    flock(&file, how).ok()?;
    Some(file)
}

/// Opens a file without waiting, also if it is of another kind, such as a FIFO.
fn open_at_once(options: &mut OpenOptions, path: &Path) -> std::io::Result<File> {
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_only_looks_is_in_nobodys_way() {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::new(top.path().to_owned());
        assert!(!folder.is_building());
        let look = lock(&folder.lock_file(), FlockOperation::NonBlockingLockShared).unwrap();
        assert!(!folder.is_building());
        assert!(folder.lock_within(Duration::ZERO).is_none());
        let builder = thread::spawn({
            let folder = folder.clone();
            move || folder.lock_within(Duration::from_secs(60))
        });
        thread::sleep(BETWEEN_TRIES);
        drop(look);
        let own = builder.join().unwrap();
        assert!(own.is_some() && folder.is_building());
    }

    #[test]
    fn the_lock_of_a_removed_folder_is_the_lock_of_none() {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::new(top.path().join("tool-1"));
        std::fs::create_dir(folder.path()).unwrap();
        let before = folder.lock().unwrap();
        assert!(before.is_there());
        std::fs::remove_dir_all(folder.path()).unwrap();
        assert!(!before.is_there() && folder.lock_within(Duration::ZERO).is_none());
        std::fs::create_dir(folder.path()).unwrap();
        let after = folder.lock().unwrap();
        assert!(!before.is_there() && after.is_there());
    }
}
