//! Gives an image to the remote store.

use std::path::Path;
use std::time::Duration;

use failure::{Failure, Result};
use image_file::info::Info;
use image_file::ImageFile;
use store::Folder;

use crate::chunks::{cut, hex_digest, pack, path_of};
use crate::sign_command::Sign;
use crate::storage::READ_ONLY;
use crate::{folder_of, forbidden, key, Manifest, Storage};

/// The name of the only manifest of a key where the storage cannot list those that it has.
pub const NEWEST: &str = "newest";
/// How many chunks are held in memory at once.
const AT_ONCE: usize = 64;
/// A chunk that is older is written again, so that no prune removes it before the manifest is there.
pub(crate) const RENEW: Duration = Duration::from_secs(12 * 3600);

/// What a push has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pushed {
    /// How many chunks the image has.
    pub chunks: usize,
    /// How many of them were not there yet.
    pub new: usize,
    /// The bytes of these, compressed.
    pub sent: u64,
}

/// Gives an image of a folder of the store. Without a key the manifest is not signed, and counts in a directory alone.
pub fn push(storage: &Storage, signer: Option<&dyn Sign>, image: &Path) -> Result<Pushed> {
    let folder = Folder::containing(image)
        .ok_or_else(|| Failure::refusal(format!("{} should be an image of the store.", image.display())))?;
    let name = folder.command().map(|command| command.name).unwrap_or_default();
    push_as(storage, signer, image, &key::of_folder(&folder)?, &name)
}

/// Gives an image under a key. `name`: of its program, for people.
pub fn push_as(storage: &Storage, signer: Option<&dyn Sign>, image: &Path, key: &str, name: &str) -> Result<Pushed> {
    if storage.is_read_only() {
        return Err(Failure::refusal(format!("{} stays on this machine: {READ_ONLY} is set.", image.display())));
    }
    let image = ImageFile::open(image)?;
    forbidden::check(&image)?;
    if image.settings()?.max_thaws != 0 {
        return Err(Failure::refusal(format!(
            "{} stays on this machine: its thaws are limited, and each machine would count its own.",
            image.path.display()
        )));
    }
    let (mut chunks, mut waiting, mut pushed) = (Vec::new(), Vec::new(), Pushed::default());
    let mut send = |waiting: &mut Vec<(String, Vec<u8>)>| -> Result<()> {
        let (new, sent) = storage.add_all(std::mem::take(waiting), RENEW)?;
        (pushed.new, pushed.sent) = (pushed.new + new, pushed.sent + sent);
        Ok(())
    };
    let mut seen = std::collections::BTreeSet::new();
    cut(&image.file, image.size, |chunk| {
        let digest = hex_digest(chunk);
        if seen.insert(digest.clone()) {
            waiting.push((path_of(&digest), pack(chunk)?));
        }
        chunks.push(digest);
        if waiting.len() < AT_ONCE {
            return Ok(());
        }
        send(&mut waiting)
    })?;
    send(&mut waiting)?;
    let manifest = manifest(key, name, &image, chunks);
    put_manifest(storage, &manifest, signer)?;
    Ok(Pushed { chunks: manifest.chunks.len(), ..pushed })
}

fn manifest(key: &str, name: &str, image: &ImageFile, chunks: Vec<String>) -> Manifest {
    let info = Info::read(&image.tables());
    Manifest {
        key: key.to_owned(),
        name: name.to_owned(),
        runtime: info.runtime,
        created: info.created,
        size: image.size,
        chunks,
    }
}

/// Last, so that nobody finds an image before its chunks are there.
fn put_manifest(storage: &Storage, manifest: &Manifest, signer: Option<&dyn Sign>) -> Result<()> {
    let folder = folder_of(&manifest.key);
    let name = if storage.lists() { manifest.id() } else { NEWEST.to_owned() };
    storage.put(&format!("{folder}{name}"), manifest.encode(signer)?)
}
