//! The folder of a command: its images, who it is, and what came of the last attempt to make one.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use failure::Result;
use rustix::fs::{access, flock, Access, FlockOperation};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::place;
use crate::Command;

/// So many images of one command are kept: for several environments.
pub const MAX_IMAGES: usize = 8;
/// How long somebody may have the lock who does not keep it: one who only looks, or a builder at its very end.
const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN_TRIES: Duration = Duration::from_millis(20);
/// How names of images end.
const IMAGE: &str = ".img";

/// The file that says whose folder it is.
const COMMAND: &str = "command.json";
/// The file that says as which command the image of a folder is installed.
pub(crate) const INSTALLED: &str = "installed.json";

/// The folder of a command. Holds NUMBER.img for each image, `command.json` (see [`Command`]), `attempt.json`
/// (see [`crate::attempt::Attempts`]), `changes.json` ([`crate::changes::Changes`]), `profile` (what starts have told) and `lock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// The folder of this path, whether it exists or not.
    pub fn new(path: PathBuf) -> Folder {
        Folder { path }
    }

    /// The folder that an image lies in.
    pub fn of(image: &Path) -> Option<Folder> {
        Some(Folder::new(image.parent()?.to_owned()))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its image is in front of an installed command: see tools.rs.
    pub fn is_installed(&self) -> bool {
        self.path.join(INSTALLED).exists()
    }

    /// Whether it is this user's, and nobody else can have written to it.
    pub fn is_own(&self) -> bool {
        trust::check_own_directory(&self.path).is_ok()
    }

    /// Why nobody can write in it, as on a file system that is mounted read-only; None where this user can, or it has yet to be made.
    pub fn cannot_write(&self) -> Option<String> {
        let error = access(&self.path, Access::WRITE_OK).err().filter(|error| *error != Errno::NOENT)?;
        Some(format!("{} cannot be written ({})", self.path.display(), failure::reason(&error.into())))
    }

    /// Makes it, for this command.
    pub fn make(&self, command: &Command) -> Result<()> {
        place::make(self.path.parent().unwrap_or(&self.path))?;
        place::make(&self.path)?;
        if self.command().as_ref() == Some(command) {
            return Ok(());
        }
        self.write(COMMAND, command)
    }

    /// Whose folder it is; None where that is not known.
    pub fn command(&self) -> Option<Command> {
        self.read(COMMAND)
    }

    /// Where that is written. Who removes the store, or what is in it, removes this file.
    pub(crate) fn command_file(&self) -> PathBuf {
        self.path.join(COMMAND)
    }

    /// Its images, by number.
    pub fn images(&self) -> Vec<PathBuf> {
        let numbers = (1..=MAX_IMAGES).map(|number| self.image(number));
        numbers.filter(|image| image.exists()).collect()
    }

    /// Where the first image goes, which links lead to.
    pub fn first_image(&self) -> PathBuf {
        self.image(1)
    }

    /// Where a new image goes: to the first free number, else in the place of the image that was used longest ago.
    pub fn next_image(&self) -> PathBuf {
        let free = (1..=MAX_IMAGES).map(|number| self.image(number)).find(|image| !image.exists());
        free.unwrap_or_else(|| {
            let images = self.images();
            let oldest = images.iter().min_by_key(|image| crate::clock::by_age(crate::limits::last_used(image)));
            oldest.cloned().unwrap_or_else(|| self.image(1))
        })
    }

    fn image(&self, number: usize) -> PathBuf {
        self.path.join(format!("{number}{IMAGE}"))
    }

    /// A link to the program of an installed command, which python/snapboot/front_end/which.py follows.
    pub(crate) fn program_link(&self) -> PathBuf {
        self.path.join("program")
    }

    /// The file in which starts tell what they load.
    pub fn profile(&self) -> PathBuf {
        self.path.join("profile")
    }

    /// Reads a file of the folder; None where it is not there, damaged, or may be somebody else's.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&trust::read(&self.path.join(name)).ok()?).ok()
    }

    /// Writes a file of the folder, whole or not at all.
    pub fn write<T: Serialize>(&self, name: &str, content: &T) -> Result<()> {
        let text = serde_json::to_vec_pretty(content).expect("texts and numbers");
        place::write(&self.path.join(name), &text)
    }

    /// Takes the lock of this folder, until the file is closed; None where somebody else keeps it.
    pub fn lock(&self) -> Option<File> {
        self.lock_within(PATIENCE)
    }

    /// As `lock`; so long somebody else may have it.
    fn lock_within(&self, patience: Duration) -> Option<File> {
        let begun = Instant::now();
        loop {
            let taken = lock(&self.lock_file(), FlockOperation::NonBlockingLockExclusive);
            if taken.is_some() || begun.elapsed() >= patience {
                return taken;
            }
            thread::sleep(BETWEEN_TRIES);
        }
    }

    /// Whether somebody makes an image in it.
    pub fn is_building(&self) -> bool {
        // Shared, so that others who only look are not taken for builders.
        // Where it cannot be opened, as in a store that is read-only, nobody makes one.
        open_at_once(OpenOptions::new().read(true), &self.lock_file())
            .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK))
    }

    fn lock_file(&self) -> PathBuf {
        self.path.join("lock")
    }
}

/// Takes a lock.
pub fn lock(path: &Path, how: FlockOperation) -> Option<File> {
    let mut options = OpenOptions::new();
    let file = open_at_once(options.write(true).create(true).truncate(false).mode(0o600), path).ok()?;
    flock(&file, how).ok()?;
    Some(file)
}

/// Opens a file; of another kind, such as a FIFO, nothing is waited for.
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
}
