//! The lock of writers: only one at a time holds an archive's file.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use rustix::process::{getrlimit, Resource};

use crate::archive::{open_checked, Archive, Found};
use crate::error::Error;
use crate::location::OWN_FOLDER;

/// The longest wait for another writer. A process that is about to end has no more time.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

/// An archive's file, open for writing and locked.
pub(crate) struct Locked<'a> {
    pub path: &'a Path,
    pub file: File,
    /// Device and inode of the file.
    identity: (u64, u64),
    /// Whether this writer created it.
    is_made: bool,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Closing the file does not unlock it while a forked child also has it open.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

impl<'a> Locked<'a> {
    /// Opens or creates the file, and waits for other writers.
    pub fn create(path: &'a Path) -> Result<Self, Error> {
        Self::open(path, |path| match open_checked(path, OFlags::RDWR) {
            Err(error) if error.is_not_found() => {
                match open_checked(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
                    Err(error) if error.is_not_found() => {
                        let parent = path.parent().unwrap_or(path);
                        DirBuilder::new()
                            .recursive(true)
                            .mode(mode_of(parent))
                            .create(parent)
                            .map_err(Error::io("make", parent))?;
                        Ok(None)
                    }
                    Err(Error::Io { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
                    done => done.map(|(file, identity)| Some((file, identity, true))),
                }
            }
            done => done.map(|(file, identity)| Some((file, identity, false))),
        })
    }

    /// Opens an existing file, and waits for other writers.
    pub fn existing(path: &'a Path) -> Result<Self, Error> {
        Self::open(path, |path| {
            let (file, identity) = open_checked(path, OFlags::RDWR)?;
            Ok(Some((file, identity, false)))
        })
    }

    /// `attempt` opens the file, and says whether it created it; `None`: call it again.
    fn open(
        path: &'a Path,
        attempt: impl Fn(&Path) -> Result<Option<(File, (u64, u64), bool)>, Error>,
    ) -> Result<Self, Error> {
        let begin = Instant::now();
        loop {
            let opened = attempt(path)?;
            if begin.elapsed() > PATIENCE {
                return Err(Error::Busy(path.to_owned()));
            }
            let Some((file, identity, is_made)) = opened else { continue };
            loop {
                match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => break,
                    Err(Errno::WOULDBLOCK | Errno::INTR) if begin.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                    Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(Error::Busy(path.to_owned())),
                    Err(error) => return Err(Error::io("lock", path)(error.into())),
                }
            }
            let locked = Locked { path, file, identity, is_made };
            // Another writer may have replaced the file meanwhile.
            if locked.is_there() {
                return Ok(locked);
            }
        }
    }

    /// Whether the path leads to this file.
    fn is_there(&self) -> bool {
        rustix::fs::lstat(self.path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.identity)
    }

    /// Removes the file if it was created here and nothing could be written. Writers that wait for the lock notice that.
    pub fn remove_if_made(&self) {
        let is_empty = self.file.metadata().is_ok_and(|metadata| metadata.len() == 0);
        if self.is_made && is_empty && self.is_there() {
            let _ = std::fs::remove_file(self.path);
        }
    }

    /// Opens the archive in the file; `None`: a new file has to replace it.
    pub fn archive(&self, root: &Path) -> Result<Option<Archive>, Error> {
        let map = |end| Archive::read(&self.file, end, root).map_err(Error::io("map", self.path));
        match Found::in_file(&self.file).map_err(Error::io("read", self.path))? {
            Found::Nothing | Found::Version(_) => Ok(None),
            Found::Archive(end) => map(end).map(Some),
            Found::Damage(end) => Ok(Some(map(end)?.damaged())),
            Found::SomethingElse => Err(Error::NotAnArchive(self.path.to_owned())),
        }
    }
}

/// The mode of a directory created for an archive: private if it is Snapboot's own; an application's `tmp/cache` is for others, too.
fn mode_of(directory: &Path) -> u32 {
    match directory.ends_with(OWN_FOLDER) {
        true => 0o700,
        false => 0o777,
    }
}

/// Fails if the file may not grow that large: writing beyond the limit would raise a signal that ends the process.
pub(crate) fn check_limit(path: &Path, size: u64) -> Result<(), Error> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if size > limit => Err(Error::Limit { path: path.to_owned(), limit }),
        _ => Ok(()),
    }
}
