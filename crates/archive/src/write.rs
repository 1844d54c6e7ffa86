//! Adding to an archive: one writer at a time, behind what is there, the head of the new segment last.

use std::collections::HashSet;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use record::Record;
use rustix::fs::{FallocateFlags, FlockOperation, OFlags};
use rustix::io::Errno;
use rustix::process::{getrlimit, Resource};

use crate::archive::{open_checked, Archive, Found};
use crate::batch::Batch;
use crate::build::Draft;
use crate::error::Error;
use crate::pack::Decoder;
use crate::place::Root;
use crate::records::SegmentHead;
use crate::rewrite;
use crate::segment;
use crate::MAX_SEGMENTS;

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
/// other writers. Whatever goes wrong, the archive holds what it held before; where there was none, there is none.
pub fn append(path: &Path, root: &Path, batch: Batch, bound: u64) -> Result<Appended, Error> {
    let draft = batch.finish(&Root::new(root));
    let locked = Locked::create(path)?;
    let done = append_to(&locked, root, draft, bound);
    if done.is_err() {
        locked.remove_if_made();
    }
    done
}

fn append_to(locked: &Locked<'_>, root: &Path, mut draft: Draft<'_>, bound: u64) -> Result<Appended, Error> {
    let (path, own) = (locked.path, &Root::new(root));
    let Some(archive) = locked.archive(root)? else {
        return replace(locked, own, None, draft, bound);
    };
    let mut decoder = Decoder::default();
    draft.entries.retain(|raw| !archive.holds(raw, &mut decoder));
    let (entries, size) = (draft.entries.len(), archive.size());
    if !archive.is_whole() || size > bound {
        return replace(locked, own, Some(&archive), draft, bound);
    }
    if entries == 0 {
        return Ok(Appended { entries: 0, is_new_file: false, size });
    }
    let superseding: HashSet<Vec<u8>> = draft.entries.iter().map(|raw| raw.key.to_vec()).collect();
    let too_large = || Error::io("write", path)(io::ErrorKind::FileTooLarge.into());
    let segment = draft.segment(seconds()).ok_or_else(too_large)?;
    let new_size = size + segment.len() as u64;
    let is_too_large = new_size > bound;
    if is_too_large || archive.segments() >= MAX_SEGMENTS || is_mostly_superseded(&archive, &superseding, segment.len())
    {
        let mut draft = Draft::default();
        draft.copy(&segment::alone(&segment));
        match replace(locked, own, Some(&archive), draft, bound) {
            // A directory that takes no new files; the old one may still grow.
            Err(Error::Io { .. }) if !is_too_large => {}
            done => return done,
        }
    }
    check_limit(path, new_size)?;
    write_behind(&locked.file, size, &segment).map_err(Error::io("write", path))?;
    Ok(Appended { entries, is_new_file: false, size: new_size })
}

fn replace(
    locked: &Locked<'_>,
    root: &Root,
    archive: Option<&Archive>,
    new: Draft<'_>,
    bound: u64,
) -> Result<Appended, Error> {
    let (entries, live) = (new.entries.len(), archive.map(Archive::live).unwrap_or_default());
    let done = rewrite::replace(locked, Some(root), live, new, bound)?;
    Ok(Appended { entries, is_new_file: true, size: done.size })
}

/// Whether a third of the file would be of no use any more.
fn is_mostly_superseded(archive: &Archive, superseding: &HashSet<Vec<u8>>, added: usize) -> bool {
    let live = archive.live().into_iter().filter(|entry| !superseding.contains(entry.key_bytes()));
    let used = live.map(|entry| entry.size()).sum::<usize>() + added;
    used as u64 * 3 < (archive.size() - crate::FIRST_SEGMENT + added as u64) * 2
}

/// Writes a segment behind the end of a file, its head last. The file is not cut back when that fails: whoever has mapped what
/// would be cut off would be ended by a look at it. So the room is asked for first, which leaves no trace where there is none.
fn write_behind(file: &File, end: u64, segment: &[u8]) -> io::Result<()> {
    let reserved = rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, end, segment.len() as u64);
    // Not every file system can do that; all else the writing will tell.
    if let Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) = reserved {
        return Err(error.into());
    }
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
    /// Device and inode of the file.
    identity: (u64, u64),
    /// Whether there was none before.
    is_made: bool,
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // Closing it does not do that when a child that was forked meanwhile has it open, too.
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

impl<'a> Locked<'a> {
    /// Opens, or makes, the file and waits for other writers.
    pub fn create(path: &'a Path) -> Result<Self, Error> {
        Self::open(path, |path| match open_checked(path, OFlags::RDWR) {
            Err(error) if error.is_not_found() => {
                match open_checked(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL) {
                    Err(error) if error.is_not_found() => {
                        let parent = path.parent().unwrap_or(path);
                        DirBuilder::new()
                            .recursive(true)
                            .mode(0o700)
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

    /// Opens the file that is there and waits for other writers.
    pub fn existing(path: &'a Path) -> Result<Self, Error> {
        Self::open(path, |path| {
            let (file, identity) = open_checked(path, OFlags::RDWR)?;
            Ok(Some((file, identity, false)))
        })
    }

    /// `attempt` opens the file, and says whether it has made it; `None`: it is to be called once more.
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
            // Meanwhile somebody may have put a new file in its place.
            if locked.is_there() {
                return Ok(locked);
            }
        }
    }

    /// Whether the path leads to this file.
    fn is_there(&self) -> bool {
        rustix::fs::lstat(self.path).is_ok_and(|stat| (stat.st_dev, stat.st_ino) == self.identity)
    }

    /// Takes the file away again if it was made here and nothing could be written: who waits for the lock notices that.
    fn remove_if_made(&self) {
        let is_empty = self.file.metadata().is_ok_and(|metadata| metadata.len() == 0);
        if self.is_made && is_empty && self.is_there() {
            let _ = std::fs::remove_file(self.path);
        }
    }

    /// What the file holds; `None` when it has to be written anew.
    pub fn archive(&self, root: &Path) -> Result<Option<Archive>, Error> {
        let map = |end| Archive::of(&self.file, end, root).map_err(Error::io("map", self.path));
        match Found::in_file(&self.file).map_err(Error::io("read", self.path))? {
            Found::Nothing | Found::Version(_) => Ok(None),
            Found::Archive(end) => map(end).map(Some),
            Found::Damage(end) => Ok(Some(map(end)?.damaged())),
            Found::SomethingElse => Err(Error::NotAnArchive(self.path.to_owned())),
        }
    }
}
