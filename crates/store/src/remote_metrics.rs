//! What the remote store has been good for on this machine: counts that only grow, for all of it and for each command.

use std::fs;

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::{folder, location, Folder, Store};

/// The file with the counts, in the store and in the folder of each command.
const FILE: &str = "remote-metrics.json";
/// Its lock, in the store.
const LOCK: &str = ".remote-metrics";

/// Counts of looks into the remote store, and of what went there and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoteMetrics {
    /// Looks that led to an image.
    pub hits: u64,
    /// Looks that found none that fits.
    pub misses: u64,
    /// Looks that left the image to another machine, which was making it.
    pub left: u64,
    /// Images that were given.
    pub given: u64,
    /// Looks and gifts that failed: the store could not be used, or something in it was wrong.
    pub errors: u64,
    /// Chunks that were fetched, and given.
    pub chunks_fetched: u64,
    /// See `chunks_fetched`.
    pub chunks_given: u64,
    /// Bytes of all objects that were fetched, and given, as they travel.
    pub bytes_fetched: u64,
    /// See `bytes_fetched`.
    pub bytes_given: u64,
    /// Requests that were made.
    pub requests: u64,
    /// How much longer the freezes of the fetched images took, where they were made, than their ways here (seconds).
    pub seconds_saved: f64,
}

impl RemoteMetrics {
    /// The counts of this machine.
    pub fn of_store(store: &Store) -> RemoteMetrics {
        Folder::new(store.cache().to_owned()).read(FILE).unwrap_or_default()
    }

    /// The counts of a command; None if nothing was ever counted for it.
    pub fn of_folder(folder: &Folder) -> Option<RemoteMetrics> {
        folder.read(FILE)
    }

    /// Adds these counts to those of this machine and of a command. Nothing depends on whether that succeeds.
    pub fn add(&self, folder: Option<&Folder>) {
        let Some(store) = Store::find().filter(|store| location::make(store.cache()).is_ok()) else { return };
        // Several processes count at once.
        let Some(_own) = folder::lock(&store.cache().join(LOCK), FlockOperation::LockExclusive) else { return };
        let all = Folder::new(store.cache().to_owned());
        for place in
            [Some(&all), folder].into_iter().flatten().filter(|place| fs::exists(place.path()).unwrap_or(false))
        {
            let before: RemoteMetrics = place.read(FILE).unwrap_or_default();
            let _ = place.write(FILE, &before.sum(self));
        }
    }

    /// The sums of both.
    fn sum(&self, more: &RemoteMetrics) -> RemoteMetrics {
        RemoteMetrics {
            hits: self.hits + more.hits,
            misses: self.misses + more.misses,
            left: self.left + more.left,
            given: self.given + more.given,
            errors: self.errors + more.errors,
            chunks_fetched: self.chunks_fetched + more.chunks_fetched,
            chunks_given: self.chunks_given + more.chunks_given,
            bytes_fetched: self.bytes_fetched + more.bytes_fetched,
            bytes_given: self.bytes_given + more.bytes_given,
            requests: self.requests + more.requests,
            seconds_saved: self.seconds_saved + more.seconds_saved,
        }
    }
}
