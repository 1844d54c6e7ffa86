//! Adding to an archive: one writer at a time, behind what is there, the head of the new segment last.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use image::Record;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use rustix::process::{getrlimit, Resource};

use crate::archive::{header, open_checked, Archive, Found};
use crate::batch::Batch;
use crate::build::{self, Raw};
use crate::error::Error;
use crate::map::Mapped;
use crate::place::Root;
use crate::records::SegmentHead;
use crate::rewrite;
use crate::MOST_SEGMENTS;

/// How long another writer is waited for. A process that is about to end has no more time.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(2);

/// What [`append`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Entries that were stored: without those that were there already, and those whose inputs have changed since.
    pub entries: usize,
    /// Whether a new file took the place of the old one.
    pub is_new_file: bool,
    /// Size of the file afterwards (bytes).
    pub size: u64,
}

/// Appends a batch to the archive at `path` of a program whose files lie below `root`; makes the archive, and the directories
/// that lead to it, when there is none. The file does not grow beyond `bound` bytes: superseded entries go first, then those
/// whose sources are gone, then the oldest.
///
/// Reads the files that the entries depend on, and leaves out what changed since its maker saw it. Waits at most a second for
/// other writers. Whatever goes wrong, the archive holds what it held before.
pub fn append(path: &Path, root: &Path, batch: Batch, bound: u64) -> Result<Appended, Error> {
    let own = &Root::new(root);
    let raws = batch.finish(own);
    let locked = Locked::create(path)?;
    let Some(archive) = locked.archive(root)? else {
        return replace(&locked, own, None, raws, bound);
    };
    let raws: Vec<Raw<'_>> = raws.into_iter().filter(|raw| !archive.holds(raw)).collect();
    let size = archive.size();
    if raws.is_empty() && archive.is_whole() && size <= bound {
        return Ok(Appended { entries: 0, is_new_file: false, size });
    }
    let added: u64 = raws.iter().map(Raw::size).sum();
    if !archive.is_whole() || size + added + SegmentHead::SIZE as u64 > bound {
        return replace(&locked, own, Some(&archive), raws, bound);
    }
    if archive.segments() >= MOST_SEGMENTS || is_mostly_superseded(&archive, &raws, added) {
        match replace(&locked, own, Some(&archive), raws.clone(), bound) {
            // A directory that takes no new files; the old one may still grow.
            Err(Error::Io { .. }) => {}
            done => return done,
        }
    }
    let too_large = || Error::io("write", path)(io::ErrorKind::FileTooLarge.into());
    let segment = build::segment(&raws, seconds()).ok_or_else(too_large)?;
    check_limit(path, size + segment.len() as u64)?;
    let written = write_behind(&locked.file, size, &segment);
    if let Err(error) = written {
        // Nobody has looked at what lies behind the last segment.
        let _ = locked.file.set_len(size);
        return Err(Error::io("write", path)(error));
    }
    Ok(Appended { entries: raws.len(), is_new_file: false, size: size + segment.len() as u64 })
}

fn replace(
    locked: &Locked<'_>,
    root: &Root,
    archive: Option<&Archive>,
    raws: Vec<Raw<'_>>,
    bound: u64,
) -> Result<Appended, Error> {
    let (entries, live) = (raws.len(), archive.map(Archive::live).unwrap_or_default());
    let done = rewrite::replace(locked, Some(root), live, raws, bound)?;
    Ok(Appended { entries, is_new_file: true, size: done.size })
}

/// Whether a third of the file is of no use any more.
fn is_mostly_superseded(archive: &Archive, raws: &[Raw<'_>], added: u64) -> bool {
    let new: std::collections::HashSet<&[u8]> = raws.iter().map(|raw| &*raw.key).collect();
    let live = archive.live().into_iter().filter(|entry| !new.contains(entry.key_bytes()));
    let used = added + live.map(|entry| entry.size() as u64 + 32).sum::<u64>();
    used * 3 < (archive.size() - crate::FIRST_SEGMENT + added) * 2
}

fn write_behind(file: &File, end: u64, segment: &[u8]) -> io::Result<()> {
    let (head, body) = segment.split_at(SegmentHead::SIZE);
    file.write_all_at(body, end + head.len() as u64)?;
    file.write_all_at(head, end)
}

/// Writing beyond the limit would raise a signal that ends the process.
pub(crate) fn check_limit(path: &Path, size: u64) -> Result<(), Error> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if size > limit => Err(Error::Limit { path: path.to_owned(), limit }),
        _ => Ok(()),
    }
}

/// Seconds since 1970.
pub(crate) fn seconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// An archive's file, open for writing, with nobody else writing.
pub(crate) struct Locked<'a> {
    pub path: &'a Path,
    pub file: File,
}

impl<'a> Locked<'a> {
    /// Opens, or makes, the file and waits for other writers.
    pub fn create(path: &'a Path) -> Result<Self, Error> {
        match Self::open(path, OFlags::CREATE) {
            Err(error) if error.is_absence() => {
                let parent = path.parent().unwrap_or(path);
                DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(Error::io("make", parent))?;
                Self::open(path, OFlags::CREATE)
            }
            done => done,
        }
    }

    /// Opens the file that is there and waits for other writers.
    pub fn existing(path: &'a Path) -> Result<Self, Error> {
        Self::open(path, OFlags::empty())
    }

    fn open(path: &'a Path, flags: OFlags) -> Result<Self, Error> {
        let begin = Instant::now();
        loop {
            let (file, identity) = open_checked(path, OFlags::RDWR | flags)?;
            loop {
                match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => break,
                    Err(Errno::WOULDBLOCK | Errno::INTR) if begin.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
                    Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(Error::Busy(path.to_owned())),
                    Err(error) => return Err(Error::io("lock", path)(error.into())),
                }
            }
            // Meanwhile somebody may have put a new file in its place.
            let there = rustix::fs::lstat(path).map(|stat| (stat.st_dev, stat.st_ino));
            if there == Ok(identity) {
                return Ok(Locked { path, file });
            }
            if begin.elapsed() > PATIENCE {
                return Err(Error::Busy(path.to_owned()));
            }
        }
    }

    /// What the file holds; `None` when it has to be written anew.
    pub fn archive(&self, root: &Path) -> Result<Option<Archive>, Error> {
        if self.file.metadata().map_err(Error::io("look at", self.path))?.len() == 0 {
            return Ok(None);
        }
        let mapped = Mapped::new(&self.file).map_err(Error::io("map", self.path))?;
        match header(&mapped) {
            Found::Nothing | Found::Version(_) => Ok(None),
            Found::Archive => Ok(Some(Archive::over(mapped, root))),
            Found::Damage => Ok(Some(Archive::over(mapped, root).damaged())),
            Found::SomethingElse => Err(Error::NotAnArchive(self.path.to_owned())),
        }
    }
}
