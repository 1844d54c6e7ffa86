//! What the remote store has, and whether it is whole.

use std::collections::BTreeSet;

use failure::{Failure, Result};
use serde::Serialize;

use crate::chunks::{most_bytes_of, path_of, unpack, Chunked};
use crate::trusted::Trust;
use crate::{key_of, Manifest, Storage, IMAGES};

/// An image of the remote store, or why its manifest is none.
pub struct Row {
    /// The path of its manifest.
    pub path: String,
    /// The manifest, if it is believed.
    pub manifest: Result<Manifest>,
}

/// A row for those who read JSON.
#[derive(Serialize)]
pub struct JsonRow<'a> {
    path: &'a str,
    usable: bool,
    why: Option<&'a str>,
    name: Option<&'a str>,
    runtime: Option<&'a str>,
    created: Option<u64>,
    size: Option<u64>,
}

impl Row {
    /// Its form in JSON.
    pub fn json(&self) -> JsonRow<'_> {
        let manifest = self.manifest.as_ref().ok();
        JsonRow {
            path: &self.path,
            usable: manifest.is_some(),
            why: self.manifest.as_ref().err().map(|failure| failure.message.as_str()),
            name: manifest.map(|it| it.name.as_str()),
            runtime: manifest.map(|it| it.runtime.as_str()),
            created: manifest.map(|it| it.created),
            size: manifest.map(|it| it.image.size),
        }
    }
}

/// All images, by path.
pub fn rows(storage: &Storage) -> Result<Vec<Row>> {
    if !storage.lists() {
        return Err(Failure::refusal(format!(
            "{} cannot say what it has: this kind of storage has no lists.",
            storage.name()
        )));
    }
    let trust = Trust::in_storage(storage)?;
    let mut paths: Vec<String> = storage.list(IMAGES)?.into_iter().map(|object| object.path).collect();
    paths.sort();
    let read = |path: String| {
        // None if somebody has removed it meanwhile.
        trust.read(storage, &path, key_of(&path)).transpose().map(|manifest| Row { manifest, path })
    };
    Ok(paths.into_iter().filter_map(read).collect())
}

/// Reads every chunk of an image. Returns what is wrong. `good`: the chunks that were found whole before.
pub fn damage(storage: &Storage, manifest: &Manifest, good: &mut BTreeSet<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for chunk in manifest.contents().flat_map(Chunked::iter) {
        if good.contains(chunk.digest) {
            continue;
        }
        let path = path_of(chunk.digest);
        let checked = storage.get(&path, most_bytes_of(chunk.length)).and_then(|stored| match stored {
            Some(stored) => unpack(&stored, chunk.digest, chunk.length).map(drop),
            None => Err(Failure::failed(format!("the chunk {path} is missing."))),
        });
        match checked {
            Ok(()) => drop(good.insert(chunk.digest.to_owned())),
            Err(failure) => wrong.push(failure.message),
        }
    }
    wrong
}
