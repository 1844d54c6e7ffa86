//! Removes old images from the remote store, and the chunks that no image has any more.
//!
//! Beside writers this is safe: a chunk goes only when it is old, and whoever pushes an image writes its old chunks again. A reader that
//! misses a chunk makes an image of its own.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use failure::{Failure, Result};

use crate::manifest::{Manifest, MOST_BYTES};
use crate::push::RENEW;
use crate::storage::Object;
use crate::{key_of, Storage, CHUNKS, IMAGES};

/// How old a chunk is at least that is removed: twice as old as one that is written again.
const GRACE: Duration = Duration::from_secs(2 * RENEW.as_secs());

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// How many images.
    pub images: usize,
    /// How many chunks.
    pub chunks: usize,
    /// Their size (bytes).
    pub bytes: u64,
}

/// Removes images that were pushed longer ago.
pub fn prune(storage: &Storage, age: Duration) -> Result<Removed> {
    prune_at(storage, age, SystemTime::now())
}

/// Does the same as if it were then.
pub(crate) fn prune_at(storage: &Storage, age: Duration, now: SystemTime) -> Result<Removed> {
    if !storage.lists() {
        return Err(Failure::refusal(format!(
            "{} cannot say what it has, so nothing can be pruned: let it remove by itself what is old.",
            storage.name()
        )));
    }
    let is_older = |object: &Object, age: Duration| {
        object.written.and_then(|written| now.duration_since(written).ok()).is_some_and(|found| found > age)
    };
    let mut removed = Removed::default();
    let mut needed = BTreeSet::new();
    for object in storage.list(IMAGES)? {
        if is_older(&object, age) {
            storage.remove(&object.path)?;
            removed.images += 1;
            continue;
        }
        // Whoever has signed it: others may know their key. What cannot be read ends this, since it may need any chunk.
        if let Some(stored) = storage.get(&object.path, MOST_BYTES)? {
            if let Ok(manifest) = Manifest::decode(&stored, key_of(&object.path), None) {
                needed.extend(manifest.chunks().cloned());
            }
        }
    }
    for object in storage.list(CHUNKS)? {
        if !needed.contains(&object.name) && is_older(&object, GRACE) {
            storage.remove(&object.path)?;
            removed.chunks += 1;
            removed.bytes += object.size;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::{hex_digest, pack, path_of, Chunked};
    use crate::folder_of;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    /// Puts an image of one chunk there.
    fn put(storage: &Storage, content: &[u8]) -> Manifest {
        let digest = hex_digest(content);
        storage.put(&path_of(&digest), pack(content).unwrap()).unwrap();
        let image = Chunked { size: content.len() as u64, chunks: vec![digest] };
        let manifest = Manifest { key: "k".into(), name: "tool".into(), created: 1, image, ..Manifest::default() };
        storage.put(&(folder_of("k") + &manifest.id()), manifest.encode(None).unwrap()).unwrap();
        manifest
    }

    #[test]
    fn what_an_image_needs_and_what_is_new_stays() {
        let top = tempfile::tempdir().unwrap();
        let storage = Storage::open(&format!("file://{}", top.path().display()), DAY).unwrap();
        let [old, new] = [b"one", b"two"].map(|content| put(&storage, content));
        let chunks = || storage.list(CHUNKS).unwrap().into_iter().map(|object| object.name).collect::<BTreeSet<_>>();
        let removed = |images, chunks, bytes| Removed { images, chunks, bytes };
        let now = SystemTime::now();
        assert_eq!(prune_at(&storage, 30 * DAY, now + 2 * DAY).unwrap(), removed(0, 0, 0));
        storage.remove(&(folder_of("k") + &old.id())).unwrap();
        assert_eq!(prune_at(&storage, 30 * DAY, now + DAY / 2).unwrap(), removed(0, 0, 0), "a push may be under way");
        let size = pack(b"one").unwrap().len() as u64;
        assert_eq!(prune_at(&storage, 30 * DAY, now + 2 * DAY).unwrap(), removed(0, 1, size));
        assert_eq!(chunks(), new.chunks().cloned().collect());
        assert_eq!(prune_at(&storage, 30 * DAY, now + 31 * DAY).unwrap(), removed(1, 1, size));
        assert!(chunks().is_empty());
    }
}
