//! The hash seed that images of a command share with those of other machines, so that the next image has much in common with the one before.

use crate::{remote_settings, Folder};

/// The file in a command's folder that holds it.
const FILE: &str = "hash-seed.json";

/// The hash seed that images of this folder share with those of other machines, so that the next one has much in common with them: that of the
/// newest, or one that is drawn now. None without a remote store.
pub(crate) fn shared(folder: &Folder) -> Option<u32> {
    remote_settings::is_named().then(|| {
        read(folder).unwrap_or_else(|| {
            let seed = freeze::new_hash_seed();
            keep(folder, seed);
            seed
        })
    })
}

/// The hash seed of this folder's images, if they share one.
pub fn read(folder: &Folder) -> Option<u32> {
    folder.read(&folder.name_for_kind(FILE))
}

/// Keeps the hash seed that the folder's next image should have.
pub fn keep(folder: &Folder, seed: u32) {
    // If that fails, the next image has another one, and less in common with this one.
    let _ = folder.write(&folder.name_for_kind(FILE), &seed);
}
