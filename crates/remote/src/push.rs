//! Gives an image to the remote store.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use failure::{Failure, Result};
use image_file::info::Info;
use image_file::ImageFile;
use store::Folder;

use crate::chunks::{cut, hex_digest, pack, path_of, Chunked, SIZE};
use crate::difference::{self, Difference, Made};
use crate::sign_command::Sign;
use crate::storage::READ_ONLY;
use crate::trusted::Trust;
use crate::{folder_of, forbidden, key, pull, Manifest, Storage, NEWEST};

/// How many chunks are held in memory at once.
const AT_ONCE: usize = 64;
/// A chunk that is older is written again, so that no prune removes it before the manifest is there.
pub(crate) const RENEW: Duration = Duration::from_secs(12 * 3600);

/// What a push has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// How many chunks the image has, and its difference to the one before.
    pub chunks: usize,
    /// How many of them were not there yet.
    pub new: usize,
    /// The bytes of these, compressed.
    pub sent: u64,
    /// The bytes of all, compressed.
    pub whole: u64,
}

/// Gives an image of a folder of the store. Without a key the manifest is not signed, and counts in a directory alone.
pub fn push(storage: &Storage, signer: Option<&dyn Sign>, image: &Path) -> Result<Pushed> {
    let folder = Folder::containing(image)
        .ok_or_else(|| Failure::refusal(format!("{} should be an image of the store.", image.display())))?;
    let name = folder.command().map(|command| command.name).unwrap_or_default();
    let whose = Whose { key: &key::of_folder(&folder)?, name: &name, folder: Some(&folder) };
    push_as(storage, signer, image, &whose)
}

/// Whose image is given.
pub struct Whose<'a> {
    /// The key of such images.
    pub key: &'a str,
    /// The name of its program, for people.
    pub name: &'a str,
    /// The folder of its command, if it lies in a store.
    pub folder: Option<&'a Folder>,
}

/// Gives an image, wherever it lies.
pub fn push_as(storage: &Storage, signer: Option<&dyn Sign>, image: &Path, whose: &Whose<'_>) -> Result<Pushed> {
    check_may_push(storage, image)?;
    let image = ImageFile::open(image)?;
    forbidden::check(&image)?;
    if image.settings()?.max_thaws != 0 {
        return Err(Failure::refusal(format!(
            "{} stays on this machine: its thaws are limited, and each machine would count its own.",
            image.path.display()
        )));
    }
    let mut sent = Sent::new(storage);
    let content = sent.send(|each| cut(&image.file, image.size, each))?;
    let difference = match newest(storage, whose) {
        Some(manifest) if manifest.identity == difference::identity(&image) => manifest.difference,
        // Without a difference readers fetch all of the image, which is there.
        Some(manifest) => {
            fetched(storage, whose, &manifest, &image).and_then(|before| sent.send_difference(&image, &before).ok()?)
        }
        None => None,
    };
    put_manifest(storage, &manifest(whose, &image, content, difference), signer)?;
    Ok(sent.pushed)
}

/// Fails if this machine may only read there.
pub(crate) fn check_may_push(storage: &Storage, file: &Path) -> Result<()> {
    if storage.is_read_only() {
        return Err(Failure::refusal(format!("{} stays on this machine: {READ_ONLY} is set.", file.display())));
    }
    Ok(())
}

/// What goes to the remote store.
pub(crate) struct Sent<'a> {
    storage: &'a Storage,
    pub(crate) pushed: Pushed,
    seen: BTreeSet<String>,
}

impl<'a> Sent<'a> {
    pub(crate) fn new(storage: &'a Storage) -> Sent<'a> {
        Sent { storage, pushed: Pushed::default(), seen: BTreeSet::new() }
    }

    /// Sends bytes as chunks. `cut` calls what it is given with each of them.
    pub(crate) fn send(
        &mut self,
        cut: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<Chunked> {
        let (mut sent, mut waiting) = (Chunked::default(), Vec::new());
        cut(&mut |chunk| {
            let digest = hex_digest(chunk);
            sent.size += chunk.len() as u64;
            sent.chunks.push(digest.clone());
            self.pushed.chunks += 1;
            if self.seen.insert(digest.clone()) {
                let stored = pack(chunk)?;
                self.pushed.whole += stored.len() as u64;
                waiting.push((path_of(&digest), stored));
            }
            if waiting.len() < AT_ONCE {
                return Ok(());
            }
            self.add(&mut waiting)
        })?;
        self.add(&mut waiting)?;
        Ok(sent)
    }

    fn add(&mut self, waiting: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
        let (new, sent) = self.storage.add_all(std::mem::take(waiting), RENEW)?;
        (self.pushed.new, self.pushed.sent) = (self.pushed.new + new, self.pushed.sent + sent);
        Ok(())
    }

    /// Sends what makes the image of the one before; None if all of it is hardly more.
    fn send_difference(&mut self, image: &ImageFile, before: &ImageFile) -> Result<Option<Difference>> {
        let Some(Made { front, rest, moved }) = difference::between(image, before)? else { return Ok(None) };
        if ((front.len() + rest.len()) as u64) * 4 > self.pushed.whole * 3 {
            return Ok(None);
        }
        let mut send = |bytes: &[u8]| self.send(|each| bytes.chunks(SIZE).try_for_each(each));
        Ok(Some(Difference { from: difference::identity(before), front: send(&front)?, rest: send(&rest)?, moved }))
    }
}

/// The newest manifest of this key that is believed.
fn newest(storage: &Storage, whose: &Whose<'_>) -> Option<Manifest> {
    let trust = Trust::in_storage(storage).ok()?;
    let read = |path: String| trust.read(storage, &path, whose.key).ok().flatten();
    pull::candidates(storage, whose.key).ok()?.into_iter().find_map(read)
}

/// The image of a manifest: that of the folder, or a copy. None if it cannot be had.
fn fetched(storage: &Storage, whose: &Whose<'_>, manifest: &Manifest, image: &ImageFile) -> Option<ImageFile> {
    let there = whose.folder.map(Folder::all_images).unwrap_or_default();
    pull::image_among(&there, &manifest.identity).or_else(|| {
        let draft = pull::fetch_whole(storage, manifest, &image.path).ok()?;
        // It stays open when the draft goes.
        ImageFile::open(draft.path()).ok()
    })
}

fn manifest(whose: &Whose<'_>, image: &ImageFile, content: Chunked, difference: Option<Difference>) -> Manifest {
    let info = Info::read(&image.tables());
    Manifest {
        key: whose.key.to_owned(),
        name: whose.name.to_owned(),
        runtime: info.runtime,
        created: info.created,
        identity: difference::identity(image),
        hash_seed: whose.folder.and_then(store::hash_seed::read),
        image: content,
        difference,
    }
}

/// Last, so that nobody finds an image before its chunks are there.
pub(crate) fn put_manifest(storage: &Storage, manifest: &Manifest, signer: Option<&dyn Sign>) -> Result<()> {
    let folder = folder_of(&manifest.key);
    let name = if storage.lists() { manifest.id() } else { NEWEST.to_owned() };
    storage.put(&format!("{folder}{name}"), manifest.encode(signer)?)
}
