//! Appends to an archive: one writer at a time, at the end of the file, the head of the new segment last. Decides when an archive is to be
//! written anew (rewrite.rs does that), as `crowded?` in ruby/lib/snapboot/archive/pure/writer.rb does for plain Ruby.

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
use crate::location::Root;
use crate::locked::{check_limit, Locked};
use crate::pack::Decoder;
use crate::records::SegmentHead;
use crate::rewrite;
use crate::segment;
use crate::MAX_SEGMENTS;

/// The result of [`append`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Stored entries, without those that already existed, or whose inputs have changed since.
    pub entries: usize,
    /// Whether a new file has replaced the old one.
    pub is_new_file: bool,
    /// Size of the file after that (bytes).
    pub size: u64,
}

/// Appends a batch to the archive at `path` of a program with files below `root`; creates the archive, and its parent directories, if there
/// is none. The file does not grow beyond `bound` bytes: superseded entries are dropped first, then those whose sources are gone, then the
/// oldest.
///
/// Reads the files that the entries depend on, and leaves out entries whose inputs have changed since their maker saw them. Waits at most a
/// second for other writers. If it fails, the archive is unchanged, or still absent.
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
    draft.entries.retain(|raw| !archive.has_as_newest(raw, &mut decoder));
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
            // No new file can be created in this directory; the old one may still grow.
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

/// Writes a segment after the end of a file, its head last. Does not truncate the file if that fails: it may be mapped, and reading a
/// truncated page ends a process (SIGBUS). So the space is reserved first (fallocate): without space, nothing changes.
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
