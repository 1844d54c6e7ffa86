//! Boot archives in the remote store: one machine gives the file that its boots, or `snapboot archive build`, have filled, and others take it
//! before their first boot.
//!
//! The entries of an archive compare their own inputs, by content where times differ. One that does not fit a machine is a miss there, so
//! nothing is compared before an archive is fetched, and its key says only whose it is.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use archive::{input_kind, Archive};
use failure::{Failure, Result};
use freeze::Readers;
use rustix::process::getegid;

use crate::chunks::{cut, Chunk, Chunked};
use crate::draft::Draft;
use crate::pull::Fetched;
use crate::push::{check_may_push, put_manifest, Pushed, Sent};
use crate::sign_command::Sign;
use crate::trusted::Trust;
use crate::{forbidden, key, pull, readers, used, Manifest, Storage};

/// Whose archive it is.
pub struct Place<'a> {
    /// Its file.
    pub file: &'a Path,
    /// The directory of its program.
    pub root: &'a Path,
}

/// What came of a pull.
pub enum Taken {
    /// The archive is there.
    Archive {
        /// How many chunks were fetched.
        chunks: usize,
        /// The bytes of these, compressed.
        bytes: u64,
    },
    /// One is there that is as new.
    Kept,
    /// The remote store has none.
    NoArchive,
}

/// Gives an archive. Without a key the manifest is not signed, and counts in a directory alone.
pub fn push(storage: &Storage, signer: Option<&dyn Sign>, place: &Place<'_>) -> Result<Pushed> {
    check_may_push(storage, place.file)?;
    let archive = open(place.file, place.root)?;
    check_secrets(&archive, place)?;
    let file = File::open(place.file).map_err(|error| Failure::io("read", place.file, &error))?;
    let mut sent = Sent::new(storage);
    let image = sent.send(|each| cut(&file, archive.size(), each))?;
    let manifest = Manifest {
        key: key::of_archive(place.file, place.root),
        name: place.file.display().to_string(),
        runtime: "boot archive".to_owned(),
        created: written(&archive),
        image,
        ..Manifest::default()
    };
    put_manifest(storage, &manifest, signer)?;
    Ok(sent.pushed)
}

/// Takes the newest archive, unless there is one here that is as new. Fails if there is something else at its place.
pub fn pull(storage: &Storage, place: &Place<'_>) -> Result<Taken> {
    let trust = Trust::in_storage(storage)?;
    let key = key::of_archive(place.file, place.root);
    let mut wrong = None;
    for path in pull::candidates(storage, &key)? {
        match trust.read(storage, &path, &key) {
            Ok(Some(manifest)) if !is_newer(&manifest, place) => return Ok(Taken::Kept),
            Ok(Some(manifest)) => match fetch(storage, &manifest.image, place) {
                Ok((chunks, bytes)) => {
                    used::mark(storage, &path);
                    return Ok(Taken::Archive { chunks, bytes });
                }
                Err(failure) => drop(wrong.get_or_insert(failure)),
            },
            Ok(None) => {}
            Err(failure) => drop(wrong.get_or_insert(failure)),
        }
    }
    wrong.map_or(Ok(Taken::NoArchive), Err)
}

/// Puts an archive in its place. Returns how many chunks it has, and the bytes of these.
fn fetch(storage: &Storage, content: &Chunked, place: &Place<'_>) -> Result<(usize, u64)> {
    archive::is_replaceable(place.file).map_err(|error| Failure::refusal(format!("{error}.")))?;
    let folder = place.file.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(|error| Failure::io("make", folder, &error))?;
    let draft = Draft::make(place.file, content.size)?;
    let chunks: Vec<Chunk<'_>> = content.iter().collect();
    let mut fetched = Fetched::default();
    pull::get_chunks(storage, &chunks, &mut fetched, |chunk, bytes| draft.write(chunk.offset, &bytes))?;
    let mut readers = Readers::new(getegid().as_raw());
    let archive = Archive::in_file(draft.file(), place.file, place.root);
    let sources = whole(archive, place.file)?.sources(place.root);
    sources.iter().filter(|path| path.exists()).for_each(|path| readers.add(path));
    draft.publish(readers::archive_mode(&readers))?;
    Ok((fetched.chunks, fetched.bytes))
}

/// Opens one whose every segment is whole.
fn open(file: &Path, root: &Path) -> Result<Archive> {
    whole(Archive::open(file, root), file)
}

fn whole(archive: std::result::Result<Archive, archive::Error>, file: &Path) -> Result<Archive> {
    let archive = archive.map_err(|error| Failure::refusal(format!("{error}.")))?;
    if archive.is_whole() {
        return Ok(archive);
    }
    Err(Failure::passing(format!(
        "{} should be a whole archive, and is being written, or damaged. Try again; snapboot archive prune repairs it.",
        file.display()
    )))
}

fn is_newer(manifest: &Manifest, place: &Place<'_>) -> bool {
    Archive::open(place.file, place.root).map_or(true, |own| written(&own) < manifest.created)
}

/// When its last entry was stored (seconds since 1970).
fn written(archive: &Archive) -> u64 {
    archive.written().and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or_default()
}

/// Fails if an archive may hold a secret: the content of a file that only its owner can read, or of a variable.
fn check_secrets(archive: &Archive, place: &Place<'_>) -> Result<()> {
    let stays =
        |why: String| Err(Failure::refusal(format!("{} stays on this machine: it {why}.", place.file.display())));
    for path in archive.sources(place.root).into_iter().filter(|path| path.is_file()) {
        let status = path.metadata().map_err(|error| Failure::io("read", &path, &error))?;
        if let Some(mode) = forbidden::private_mode(&status) {
            return stays(format!("holds {}, which nobody but the owner may read (mode {mode:04o})", path.display()));
        }
    }
    for entry in archive.live() {
        for input in entry.inputs().filter(|row| row.input.kind == input_kind::VARIABLE) {
            let name = OsStr::from_bytes(entry.name_of(&input));
            if forbidden::is_secret_variable(name) {
                return stays(format!("depends on the value of {}, which looks like a secret", name.to_string_lossy()));
            }
        }
    }
    Ok(())
}
