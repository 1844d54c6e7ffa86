//! Appending to an archive: one writer at a time, at the end of the file, the head of the new segment last.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use record::Record;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

use crate::archive::Archive;
use crate::batch::Batch;
use crate::build::{seconds, Draft};
use crate::error::Error;
use crate::locked::{check_limit, Locked};
use crate::pack::Decoder;
use crate::place::Root;
use crate::records::SegmentHead;
use crate::rewrite;
use crate::segment;
use crate::MAX_SEGMENTS;

/// What [`append`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Entries that were stored: not those that were already there, or whose inputs have changed since.
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
            // No new file can be made in this directory; the old one may still grow.
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

/// Whether a third of the file would be superseded.
fn is_mostly_superseded(archive: &Archive, superseding: &HashSet<Vec<u8>>, added: usize) -> bool {
    let live = archive.live().into_iter().filter(|entry| !superseding.contains(entry.key_bytes()));
    let used = live.map(|entry| entry.size()).sum::<usize>() + added;
    used as u64 * 3 < (archive.size() - crate::FIRST_SEGMENT + added as u64) * 2
}

/// Writes a segment behind the end of a file, its head last. The file is not truncated when that fails: it may be mapped, and
/// reading a truncated page ends a process (SIGBUS). So the space is reserved first (fallocate): where there is none nothing
/// changes.
fn write_behind(file: &File, end: u64, segment: &[u8]) -> io::Result<()> {
    let reserved = rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, end, segment.len() as u64);
    // Not every file system can do that; for other errors the write below fails, too.
    if let Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) = reserved {
        return Err(error.into());
    }
    let (head, body) = segment.split_at(SegmentHead::SIZE);
    file.write_all_at(body, end + head.len() as u64)?;
    file.write_all_at(head, end)
}
