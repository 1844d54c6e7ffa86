//! Images through a store that many machines share: one machine makes an image and gives it to the remote store ([`push`]), others take it
//! from there ([`pull`]) instead of making their own.
//!
//! Below `v1/images/KEY/` lie manifests, of boot archives, too ([`archives`]). [`key`] digests what is known before a boot, so that a reader asks for few of them. A [`manifest`]
//! lists the chunks of an image, which lie below `v1/chunks/` by their digests ([`chunks`]). A reader checks who has signed the manifest
//! ([`signing`], [`sign_command`], [`trusted`]), compares the image's inputs, and only then fetches the rest into a [`draft`]: all of it, or
//! what makes it of the image that the reader has already ([`difference`]). [`lease`] sees to it that one of many machines makes what all of
//! them miss. [`prune`] removes what was used longest ago, of which [`used`] keeps marks. [`storage`] speaks with the remote store, and
//! nothing else does.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod archives;
pub mod chunks;
pub mod difference;
pub mod draft;
mod forbidden;
pub mod key;
pub mod lease;
pub mod manifest;
mod moved;
pub mod prune;
pub mod pull;
pub mod push;
mod readers;
pub mod sign_command;
pub mod signing;
pub mod storage;
pub mod survey;
pub mod trusted;
mod used;

pub use manifest::Manifest;
pub use storage::Storage;

use std::path::PathBuf;

/// The folders of all manifests, of all chunks, of all leases, and of the marks of images that were used.
const IMAGES: &str = "v1/images/";
const CHUNKS: &str = "v1/chunks/";
const LEASES: &str = "v1/leases/";
const USED: &str = "v1/used/";

/// The name of the only manifest of a key where the storage cannot list those that it has.
const NEWEST: &str = "newest";

/// The folder of the manifests of a key.
fn folder_of(key: &str) -> String {
    format!("{IMAGES}{key}/")
}

/// The key of the folder in which a manifest lies.
fn key_of(path: &str) -> &str {
    path.strip_prefix(IMAGES).and_then(|rest| rest.split('/').next()).unwrap_or_default()
}

/// A variable with a value; None if it is empty.
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
