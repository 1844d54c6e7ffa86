//! When an image of the remote store was used last: an object beside it that readers write, at most once a day each. Its time counts, which is
//! that of the storage, and not what it holds.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use failure::Result;

use crate::{Storage, IMAGES, USED};

/// How old a mark may be that is not written again.
pub const DAY: Duration = Duration::from_secs(24 * 3600);
/// Some storages keep no empty objects.
const CONTENT: &[u8] = b"used\n";

/// Marks an image, by the path of its manifest, as used now. Nothing depends on it: whoever may only read marks nothing.
pub fn mark(storage: &Storage, manifest: &str) {
    // Where nothing can be listed, nothing is ever removed.
    if storage.lists() && !storage.is_read_only() {
        let _ = storage.add_all(vec![(path(manifest), CONTENT.to_vec())], DAY);
    }
}

/// The path of the mark of a manifest.
pub fn path(manifest: &str) -> String {
    format!("{USED}{}", manifest.strip_prefix(IMAGES).unwrap_or(manifest))
}

/// When marks were written, by their paths.
pub fn all(storage: &Storage) -> Result<BTreeMap<String, Option<SystemTime>>> {
    Ok(storage.list(USED)?.into_iter().map(|object| (object.path, object.written)).collect())
}
