//! Replaces a file by one with a single segment, without superseded entries, within its bound.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::archive::{is_replaceable, Archive};
use crate::build::{self, seconds, Draft};
use crate::entry::Entry;
use crate::error::Error;
use crate::key::Kind;
use crate::location::Root;
use crate::locked::{check_limit, Locked};
use crate::records::input_kind;
use crate::segment;
use crate::FIRST_SEGMENT;

/// The result of [`prune`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// Entries before, including superseded and damaged ones.
    pub before: usize,
    /// Entries after.
    pub after: usize,
    /// Size of the file before (bytes).
    pub size_before: u64,
    /// Size of the file after (bytes).
    pub size_after: u64,
}

/// Rewrites an archive: without superseded and damaged entries, without those whose sources are gone, and, beyond `bound` bytes, without
/// the oldest. `root`: the application's current path; without it, files named relative to it are never taken to be gone.
pub fn prune(path: &Path, root: Option<&Path>, bound: u64) -> Result<Pruned, Error> {
    let locked = Locked::existing(path)?;
    // The error names another version, or a missing file.
    Archive::open(path, Path::new("/"))?;
    let root = root.map(Root::new);
    let archive = locked.archive(Path::new("/"))?.ok_or_else(|| Error::NotAnArchive(path.to_owned()))?;
    let (before, size_before) = (archive.entries().count(), archive.size());
    let live = archive.live().into_iter().filter(|entry| !is_gone(entry, root.as_ref())).collect();
    let done = replace(&locked, root.as_ref(), live, Draft::default(), bound)?;
    Ok(Pruned { before, after: done.entries, size_before, size_after: done.size })
}

/// The result of [`replace`].
pub(crate) struct Replaced {
    /// Entries in the new file.
    pub entries: usize,
    /// Its size (bytes).
    pub size: u64,
}

/// Replaces the file with a new one that has the entries `live`, oldest first, followed by `new` ones.
pub(crate) fn replace<'a>(
    locked: &Locked<'_>,
    root: Option<&Root>,
    live: Vec<Entry<'a>>,
    mut new: Draft<'a>,
    bound: u64,
) -> Result<Replaced, Error> {
    let path = locked.path;
    let too_large = || Error::io("write", path)(io::ErrorKind::FileTooLarge.into());
    let newest = std::mem::take(&mut new.entries);
    let superseding: HashSet<&[u8]> = newest.iter().map(|raw| &*raw.key).collect();
    let mut older = live;
    older.retain(|entry| !superseding.contains(entry.key_bytes()));
    drop(superseding);
    new.copy(&older);
    new.entries.extend(newest);
    let mut segment = new.segment(seconds()).ok_or_else(too_large)?;

    let most = bound.saturating_sub(FIRST_SEGMENT);
    // Some space, so that the next entries do not cause another rewrite at once.
    let mut room = most - most / 4;
    while segment.len() as u64 > most && room > 0 {
        let mut kept = segment::alone(&segment);
        kept.retain(|entry| !is_gone(entry, root));
        keep_youngest(&mut kept, room);
        let mut draft = Draft::default();
        draft.copy(&kept);
        segment = draft.segment(seconds()).ok_or_else(too_large)?;
        // Sizes of packed entries are estimates.
        room /= 2;
    }
    let (entries, size) = (segment::alone(&segment).len(), FIRST_SEGMENT + segment.len() as u64);
    check_limit(path, size)?;
    let metadata = locked.file.metadata().map_err(Error::io("look at", path))?;
    put_in_place(path, &segment, &metadata)?;
    Ok(Replaced { entries, size })
}

/// Drops the oldest until the rest fits into `room` bytes, and the descriptions of contexts without entries.
fn keep_youngest(entries: &mut Vec<Entry<'_>>, room: u64) {
    let (mut left, mut used) = (room, HashSet::new());
    entries.reverse();
    entries.retain(|entry| {
        if entry.kind() == Kind::Context {
            return true;
        }
        left = left.saturating_sub(entry.size() as u64);
        let is_kept = left > 0;
        if is_kept {
            used.insert(entry.key().context);
        }
        is_kept
    });
    entries.reverse();
    entries.retain(|entry| {
        entry.kind() != Kind::Context || !entry.key().name.is_empty() || used.contains(&entry.key().context)
    });
}

/// Whether a file or directory among an entry's inputs does not exist any more.
fn is_gone(entry: &Entry<'_>, root: Option<&Root>) -> bool {
    entry.inputs().any(|row| {
        let name = entry.name_of(&row);
        let is_file = matches!(row.input.kind, input_kind::FILE | input_kind::DIRECTORY);
        let path = match root {
            Some(root) => root.join(name),
            None if name.starts_with(b"./") => return false,
            None => name.to_vec(),
        };
        is_file && matches!(rustix::fs::stat(path), Err(Errno::NOENT | Errno::NOTDIR))
    })
}

/// Writes a new file beside the archive and renames it.
fn put_in_place(path: &Path, segment: &[u8], old: &Metadata) -> Result<(), Error> {
    let new = beside(path);
    remove_left_over(&new)?;
    let written = write_new(&new, segment, old).and_then(|()| std::fs::rename(&new, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&new);
        Error::io("write", path)(error)
    })
}

/// Removes the file of a killed writer: only the holder of the lock gets here. A file of any other kind is not ours to remove.
fn remove_left_over(new: &Path) -> Result<(), Error> {
    is_replaceable(new)?;
    match std::fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", new)(error)),
        _ => Ok(()),
    }
}

fn write_new(new: &Path, segment: &[u8], old: &Metadata) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(new, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(&build::first_page())?;
    file.write_all(segment)?;
    // Users who could read the old file can read the new one.
    file.set_permissions(old.permissions())?;
    // An empty file has nothing to lose.
    if old.len() > 0 {
        file.sync_all()?;
    }
    Ok(())
}

/// The name of the new file until it is renamed: the archive's with `.new` appended.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}
