//! The folder of a command: its images, who it is, and what came of the last attempt to make one.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use rustix::fs::{flock, FlockOperation};
use serde::de::DeserializeOwned;
use serde::Serialize;

use crate::place::{self, is_own};
use crate::Command;

/// So many images of one command are kept: for several environments.
pub const MAX_IMAGES: usize = 8;
/// How names of images end.
const IMAGE: &str = ".img";

/// The folder of a command. Holds NUMBER.img for each image, `command.json` (see [`Command`]), `attempt.json`
/// (see [`crate::attempt::Attempt`]), `profile` (what starts have told) and `lock`.
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

    /// Whether nobody else can have written to it.
    pub fn is_own(&self) -> bool {
        is_own(&self.path) && self.path.parent().is_some_and(is_own)
    }

    /// Makes it, for this command.
    pub fn make(&self, command: &Command) -> Result<()> {
        place::make(self.path.parent().unwrap_or(&self.path))?;
        place::make(&self.path)?;
        if self.command().as_ref() == Some(command) {
            return Ok(());
        }
        self.write("command.json", command)
    }

    /// Whose folder it is; None where that is not known.
    pub fn command(&self) -> Option<Command> {
        self.read("command.json")
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
            let oldest = images.iter().min_by_key(|image| crate::limits::last_used(image));
            oldest.cloned().unwrap_or_else(|| self.image(1))
        })
    }

    fn image(&self, number: usize) -> PathBuf {
        self.path.join(format!("{number}{IMAGE}"))
    }

    /// The file in which starts tell what they load.
    pub fn profile(&self) -> PathBuf {
        self.path.join("profile")
    }

    /// Reads a file of the folder; None where it is not there, or damaged.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&fs::read(self.path.join(name)).ok()?).ok()
    }

    /// Writes a file of the folder, whole or not at all.
    pub fn write<T: Serialize>(&self, name: &str, content: &T) -> Result<()> {
        let path = self.path.join(name);
        let new = self.path.join(format!(".{name}.{}", std::process::id()));
        let text = serde_json::to_vec_pretty(content).expect("texts and numbers");
        fs::write(&new, text).and_then(|()| fs::rename(&new, &path)).map_err(|error| {
            let _ = fs::remove_file(&new);
            Failure::io("write", &path, &error)
        })
    }

    /// Takes the lock of this folder, until the file is closed; None while somebody else has it.
    pub fn lock(&self) -> Option<File> {
        lock(&self.path.join("lock"), FlockOperation::NonBlockingLockExclusive)
    }

    /// Whether somebody makes an image in it.
    pub fn is_building(&self) -> bool {
        self.path.join("lock").exists() && self.lock().is_none()
    }
}

/// Takes a lock.
pub fn lock(path: &Path, how: FlockOperation) -> Option<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path).ok()?;
    flock(&file, how).ok()?;
    Some(file)
}
