//! Removes images from the remote store: those that are old, that nobody has used for long, and those that were used longest ago where all
//! of them are too large. And the chunks that no image has any more.
//!
//! Beside writers this is safe: a chunk goes only when it is old, and whoever pushes an image writes its old chunks again. A reader that
//! misses a chunk makes an image of its own. Beside a manifest that cannot be read, as one of another version, no chunk goes: nobody knows which
//! ones it needs, until it is old itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use failure::{Failure, Result};

use crate::manifest::{Manifest, MOST_BYTES};
use crate::push::RENEW;
use crate::storage::{Object, DRAFTS};
use crate::{key_of, lease, used, Storage, CHUNKS, IMAGES};

/// How old a chunk is at least that is removed: twice as old as one that is written again.
const GRACE: Duration = Duration::from_secs(2 * RENEW.as_secs());

/// What goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Images that were pushed longer ago.
    pub older_than: Option<Duration>,
    /// Images that were neither pushed nor used for longer.
    pub unused_for: Option<Duration>,
    /// Images that were used longest ago, until the chunks of the others have this size together (bytes).
    pub max_size: Option<u64>,
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// How many images.
    pub images: usize,
    /// How many chunks.
    pub chunks: usize,
    /// Their size (bytes).
    pub bytes: u64,
    /// How many manifests cannot be read, so that no chunk was removed.
    pub unreadable: usize,
}

/// An image in the remote store.
struct Image {
    path: String,
    /// When it was used last, or pushed; None if the storage does not say so.
    used: Option<SystemTime>,
    /// The digests of its chunks; None if its manifest cannot be read.
    chunks: Option<Vec<String>>,
}

/// Removes what is beyond these limits.
pub fn prune(storage: &Storage, limits: &Limits) -> Result<Removed> {
    prune_at(storage, limits, SystemTime::now())
}

/// Does the same as if it were then.
pub(crate) fn prune_at(storage: &Storage, limits: &Limits, now: SystemTime) -> Result<Removed> {
    if !storage.lists() {
        return Err(Failure::refusal(format!(
            "{} cannot say what it has, so nothing can be pruned: let it remove by itself what is old.",
            storage.name()
        )));
    }
    let age = |time: Option<SystemTime>| time.and_then(|time| now.duration_since(time).ok()).unwrap_or_default();
    let is_beyond = |age: Duration, limit: Option<Duration>| limit.is_some_and(|limit| age > limit);
    let (mut removed, mut images) = (Removed::default(), Vec::new());
    let marks = used::all(storage)?;
    for object in storage.list(IMAGES)? {
        let used = marks.get(&used::path(&object.path)).copied().flatten().max(object.written);
        if is_beyond(age(object.written), limits.older_than) || is_beyond(age(used), limits.unused_for) {
            remove_image(storage, &object.path, &mut removed)?;
            continue;
        }
        // Whoever has signed it: others may know their key.
        if let Some(stored) = storage.get(&object.path, MOST_BYTES)? {
            let manifest = Manifest::decode(&stored, key_of(&object.path), None);
            let chunks = manifest.ok().map(|manifest| manifest.chunks().cloned().collect());
            images.push(Image { path: object.path, used, chunks });
        }
    }
    let chunks = storage.list(CHUNKS)?;
    if let Some(size) = limits.max_size {
        for path in beyond_size(&mut images, &chunks, size) {
            remove_image(storage, &path, &mut removed)?;
        }
    }
    removed.unreadable = images.iter().filter(|image| image.chunks.is_none()).count();
    let needed: BTreeSet<&String> = images.iter().flat_map(|image| image.chunks.iter().flatten()).collect();
    for object in chunks.iter().filter(|_| removed.unreadable == 0) {
        if !needed.contains(&object.name) && age(object.written) > GRACE {
            storage.remove(&object.path)?;
            removed.chunks += 1;
            removed.bytes += object.size;
        }
    }
    let kept: BTreeSet<String> = images.iter().map(|image| used::path(&image.path)).collect();
    for mark in marks.keys().filter(|mark| !kept.contains(*mark)) {
        storage.remove(mark)?;
    }
    lease::remove_ended(storage, now)?;
    if storage.directory().is_some() {
        // Of machines that ended while they wrote.
        let drafts = storage.list(DRAFTS)?;
        drafts.iter().filter(|draft| age(draft.written) > GRACE).try_for_each(|draft| storage.remove(&draft.path))?;
    }
    Ok(removed)
}

fn remove_image(storage: &Storage, path: &str, removed: &mut Removed) -> Result<()> {
    removed.images += 1;
    storage.remove(path)
}

/// Takes from these images those that were used longest ago until the chunks of the others have this size. Returns their paths.
fn beyond_size(images: &mut Vec<Image>, chunks: &[Object], size: u64) -> Vec<String> {
    let sizes: BTreeMap<&str, u64> = chunks.iter().map(|object| (object.name.as_str(), object.size)).collect();
    images.sort_by_key(|image| std::cmp::Reverse(image.used));
    let (mut seen, mut total) = (BTreeSet::new(), 0);
    let is_within = |image: &Image| {
        // What cannot be read has an end by its age alone.
        for digest in image.chunks.iter().flatten() {
            if seen.insert(digest.clone()) {
                total += sizes.get(digest.as_str()).copied().unwrap_or(0);
            }
        }
        image.chunks.is_none() || total <= size
    };
    let (kept, beyond): (Vec<Image>, Vec<Image>) = std::mem::take(images).into_iter().partition(is_within);
    *images = kept;
    beyond.into_iter().map(|image| image.path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::{hex_digest, pack, path_of, Chunked};
    use crate::{folder_of, USED};

    const DAY: Duration = Duration::from_secs(24 * 3600);

    /// Puts an image of one chunk there.
    fn put(storage: &Storage, content: &[u8]) -> Manifest {
        let digest = hex_digest(content);
        storage.put(&path_of(&digest), pack(content).unwrap()).unwrap();
        let image = Chunked { size: content.len() as u64, chunks: vec![digest] };
        let manifest = Manifest { key: "k".into(), name: "tool".into(), created: 1, image, ..Manifest::default() };
        storage.put(&path(&manifest), manifest.encode(None).unwrap()).unwrap();
        manifest
    }

    fn path(manifest: &Manifest) -> String {
        folder_of("k") + &manifest.id()
    }

    fn storage() -> (tempfile::TempDir, Storage) {
        let top = tempfile::tempdir().unwrap();
        let storage = Storage::open(&format!("file://{}", top.path().display()), DAY).unwrap();
        (top, storage)
    }

    /// Sets the time of an object.
    fn age(top: &tempfile::TempDir, path: &str, age: Duration) {
        let file = std::fs::File::open(top.path().join(path)).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }

    fn older_than(days: u32) -> Limits {
        Limits { older_than: Some(days * DAY), ..Limits::default() }
    }

    fn names(storage: &Storage, folder: &str) -> BTreeSet<String> {
        storage.list(folder).unwrap().into_iter().map(|object| object.name).collect()
    }

    #[test]
    fn what_an_image_needs_and_what_is_new_stays() {
        let (_top, storage) = storage();
        let [old, new] = [b"one", b"two"].map(|content| put(&storage, content));
        let removed = |images, chunks, bytes| Removed { images, chunks, bytes, unreadable: 0 };
        let now = SystemTime::now();
        assert_eq!(prune_at(&storage, &older_than(30), now + 2 * DAY).unwrap(), removed(0, 0, 0));
        storage.remove(&path(&old)).unwrap();
        assert_eq!(
            prune_at(&storage, &older_than(30), now + DAY / 2).unwrap(),
            removed(0, 0, 0),
            "a push may be under way"
        );
        let size = pack(b"one").unwrap().len() as u64;
        assert_eq!(prune_at(&storage, &older_than(30), now + 2 * DAY).unwrap(), removed(0, 1, size));
        assert_eq!(names(&storage, CHUNKS), new.chunks().cloned().collect());
        assert_eq!(prune_at(&storage, &older_than(30), now + 31 * DAY).unwrap(), removed(1, 1, size));
        assert!(names(&storage, CHUNKS).is_empty());
    }

    #[test]
    fn what_is_used_stays_however_old_it_is() {
        let (top, storage) = storage();
        let [used, unused] = [b"one", b"two"].map(|content| put(&storage, content));
        [&used, &unused].iter().for_each(|image| age(&top, &path(image), 40 * DAY));
        used::mark(&storage, &path(&used));
        let limits = Limits { unused_for: Some(30 * DAY), ..Limits::default() };
        assert_eq!(prune(&storage, &limits).unwrap().images, 1);
        assert_eq!(names(&storage, IMAGES), [used.id()].into());
        let mark = used::path(&path(&used));
        age(&top, &mark, 31 * DAY);
        used::mark(&storage, &path(&used));
        assert_eq!(prune(&storage, &limits).unwrap().images, 0, "a mark is renewed");
        age(&top, &mark, 31 * DAY);
        assert_eq!(prune(&storage, &limits).unwrap().images, 1);
        assert!(names(&storage, USED).is_empty());
    }

    #[test]
    fn what_was_used_longest_ago_goes_first_where_all_are_too_large() {
        let (top, storage) = storage();
        let images = [&[1; 9][..], b"two, which does not compress", &[3; 9]].map(|content| put(&storage, content));
        for (image, days) in images.iter().zip([3, 1, 2]) {
            age(&top, &path(image), days * DAY);
            age(&top, &path_of(&image.image.chunks[0]), 2 * DAY);
        }
        let size = |image: &Manifest| {
            storage.list(CHUNKS).unwrap().into_iter().find(|it| it.name == image.image.chunks[0]).unwrap().size
        };
        let limits = |max_size| Limits { max_size: Some(max_size), ..Limits::default() };
        let all: u64 = images.iter().map(size).sum();
        assert_eq!(prune(&storage, &limits(all)).unwrap(), Removed::default());
        let first = size(&images[0]);
        assert_eq!(
            prune(&storage, &limits(all - 1)).unwrap(),
            Removed { images: 1, chunks: 1, bytes: first, unreadable: 0 }
        );
        used::mark(&storage, &path(&images[2]));
        assert_eq!(prune(&storage, &limits(size(&images[2]))).unwrap().images, 1);
        assert_eq!(names(&storage, IMAGES), [images[2].id()].into(), "the mark counts");
        assert_eq!(prune(&storage, &limits(0)).unwrap().images, 1);
        assert!(names(&storage, CHUNKS).is_empty());
    }

    #[test]
    fn beside_a_manifest_that_cannot_be_read_no_chunk_goes() {
        let (top, storage) = storage();
        let image = put(&storage, b"one");
        storage.put(&path(&image), b"snapboot-manifest-99 of another version".to_vec()).unwrap();
        age(&top, &path_of(&image.image.chunks[0]), 10 * DAY);
        assert_eq!(prune(&storage, &older_than(30)).unwrap(), Removed { unreadable: 1, ..Removed::default() });
        assert_eq!(prune(&storage, &Limits { max_size: Some(0), ..older_than(30) }).unwrap().chunks, 0);
        age(&top, &path(&image), 31 * DAY);
        let removed = prune(&storage, &older_than(30)).unwrap();
        assert_eq!((removed.images, removed.chunks, removed.unreadable), (1, 1, 0));
    }
}
