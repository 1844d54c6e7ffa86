//! A new file in the place of an old one: with one segment, without what is of no use, within its bound.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use image::Record;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::build::{self, Raw};
use crate::entry::Entry;
use crate::error::Error;
use crate::key::{Key, Kind};
use crate::place::Root;
use crate::records::{input_kind, SegmentHead};
use crate::write::{check_limit, seconds, Locked};
use crate::FIRST_SEGMENT;

/// What [`prune`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// Entries before, superseded and damaged ones too.
    pub before: usize,
    /// Entries afterwards.
    pub after: usize,
    /// Size of the file before (bytes).
    pub size_before: u64,
    /// Size of the file afterwards (bytes).
    pub size_after: u64,
}

/// Writes an archive anew: without superseded and damaged entries, without those whose sources are gone, and, beyond `bound`
/// bytes, without the oldest. `root`: where the application is now; without it nothing that is named relative to it is taken
/// to be gone.
pub fn prune(path: &Path, root: Option<&Path>, bound: u64) -> Result<Pruned, Error> {
    let locked = Locked::existing(path)?;
    let root = root.map(Root::new);
    let archive = locked.archive(Path::new("/"))?.ok_or_else(|| Error::NotAnArchive(path.to_owned()))?;
    let (before, size_before) = (archive.entries().count(), archive.size());
    let live = archive.live().into_iter().filter(|entry| !is_gone(entry, root.as_ref())).collect();
    let done = replace(&locked, root.as_ref(), live, Vec::new(), bound)?;
    Ok(Pruned { before, after: done.entries, size_before, size_after: done.size })
}

/// What [`replace`] did.
pub(crate) struct Replaced {
    /// Entries in the new file.
    pub entries: usize,
    /// Its size (bytes).
    pub size: u64,
}

/// Writes a new file with the entries `live`, oldest first, and `new` ones behind them, and puts it in the place of the old one.
pub(crate) fn replace(
    locked: &Locked<'_>,
    root: Option<&Root>,
    live: Vec<Entry<'_>>,
    new: Vec<Raw<'_>>,
    bound: u64,
) -> Result<Replaced, Error> {
    let superseding: HashSet<&[u8]> = new.iter().map(|raw| &*raw.key).collect();
    let mut kept: Vec<Raw<'_>> = Vec::new();
    let mut room = bound.saturating_sub(FIRST_SEGMENT + SegmentHead::SIZE as u64);
    let live: Vec<Entry<'_>> = live.into_iter().filter(|entry| !superseding.contains(entry.key_bytes())).collect();
    drop(superseding);
    let size = |raws: &[Raw<'_>]| raws.iter().map(Raw::size).sum::<u64>();
    kept.extend(live.iter().filter_map(Raw::of));
    kept.extend(new.iter().cloned());
    if size(&kept) > room {
        kept = live.iter().filter(|entry| !is_gone(entry, root)).filter_map(Raw::of).chain(new).collect();
    }
    if size(&kept) > room {
        // Some room, so that the next entries do not lead here at once.
        room -= room / 4;
        keep_youngest(&mut kept, room);
    }
    drop_unused_contexts(&mut kept);
    let path = locked.path;
    let segment =
        build::segment(&kept, seconds()).ok_or_else(|| Error::io("write", path)(io::ErrorKind::FileTooLarge.into()))?;
    let size = FIRST_SEGMENT + segment.len() as u64;
    check_limit(path, size)?;
    // What an empty file held cannot be lost.
    let is_precious = locked.file.metadata().is_ok_and(|metadata| metadata.len() > 0);
    put_in_place(path, &segment, is_precious)?;
    Ok(Replaced { entries: kept.len(), size })
}

/// Takes the oldest away until the rest has no more bytes than `room`. Contexts stay; they are small.
fn keep_youngest(raws: &mut Vec<Raw<'_>>, room: u64) {
    let is_context = |raw: &Raw<'_>| raw.key[0] == Kind::Context as u8;
    let mut left = room.saturating_sub(raws.iter().filter(|raw| is_context(raw)).map(Raw::size).sum());
    let mut is_full = false;
    raws.reverse();
    raws.retain(|raw| {
        if is_context(raw) {
            return true;
        }
        is_full |= raw.size() > left;
        if !is_full {
            left -= raw.size();
        }
        !is_full
    });
    raws.reverse();
}

/// Takes away the descriptions of contexts that nothing is in.
fn drop_unused_contexts(raws: &mut Vec<Raw<'_>>) {
    let keys = || raws.iter().filter_map(|raw| Key::parse(&raw.key));
    let used: HashSet<[u8; 8]> = keys().filter(|key| key.kind != Kind::Context).map(|key| key.context).collect();
    raws.retain(|raw| {
        Key::parse(&raw.key)
            .is_some_and(|key| key.kind != Kind::Context || !key.name.is_empty() || used.contains(&key.context))
    });
}

/// Whether a file or directory that an entry was made of is not there any more.
fn is_gone(entry: &Entry<'_>, root: Option<&Root>) -> bool {
    entry.inputs().any(|row| {
        let name = if row.name.is_empty() { entry.key().name } else { row.name };
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
fn put_in_place(path: &Path, segment: &[u8], synchronise: bool) -> Result<(), Error> {
    let new = beside(path);
    let written = write_new(&new, segment, synchronise).and_then(|()| std::fs::rename(&new, path));
    written.map_err(|error| {
        let _ = std::fs::remove_file(&new);
        Error::io("write", path)(error)
    })
}

fn write_new(new: &Path, segment: &[u8], synchronise: bool) -> io::Result<()> {
    // Only who holds the lock comes here: what is there was left by somebody who was killed.
    match std::fs::remove_file(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(new, flags, Mode::RUSR | Mode::WUSR)?);
    file.write_all(&build::first_page())?;
    file.write_all(segment)?;
    if synchronise {
        file.sync_all()?;
    }
    Ok(())
}

/// The name of a file in the making: of the archive with `.new` behind it.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    PathBuf::from(name)
}
