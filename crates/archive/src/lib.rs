//! The boot archive: one mapped file per program with data that makes its ordinary start faster: compiled code, parsed data, listings of
//! directories, and other results that were computed from files which have not changed since.
//!
//! A look-up ([`Archive::find`]) reads only the mapping: no system call, no allocation, no table built at start. It finds an [`Entry`] with
//! its inputs; [`Archive::check`] compares these with their current state. After a miss the program queues its result in a [`Batch`], and
//! [`append`] adds that to the file. `docs/internals/archive-format.md` describes the file. [`session`] does these steps for a runtime that
//! boots.
//!
//! Nothing in the file is trusted: a checksum covers every byte that is used, and a part with a wrong checksum is treated as absent. An
//! archive is a cache: everything that can go wrong ends in a miss.
#![deny(unsafe_code)]
#![deny(missing_docs)]

mod archive;
mod batch;
mod build;
mod directory;
mod entry;
mod error;
mod freshness;
mod identity;
mod index;
mod key;
mod location;
mod locked;
mod map;
mod max_size;
mod pack;
mod records;
mod rewrite;
mod segment;
pub mod session;
#[cfg(test)]
mod tests;
mod tree;
mod write;

pub use archive::{is_replaceable, Archive};
pub use batch::{Batch, NewEntry, NewInput};
pub use directory::{list_directory, DirectoryList, FileKind};
pub use entry::{Entry, Inputs, Row};
pub use error::Error;
pub use freshness::{Freshness, Policy};
pub use identity::{Content, Identity};
pub use key::{Context, Key, Kind, Scope};
pub use location::Application;
pub use max_size::{bound, NoBound};
pub use pack::Decoder;
pub use records::{
    encoding, input_kind, name_kind, BlockHead, DirectoryHead, EntryHead, Header, Input, Packed, Run, SegmentHead, Slot,
};
pub use rewrite::{prune, Pruned};
pub use tree::{tree_state, Tree};
pub use write::{append, Appended};

/// The version of this format. An archive of another version is not used, and replaced when something is stored.
pub const VERSION: u32 = 1;

/// Where the first segment starts (bytes): a page behind the start of the file.
pub const FIRST_SEGMENT: u64 = 4096;

/// Segments, entries and payloads start at multiples of this (bytes).
pub const ALIGNMENT: u64 = 16;

/// With more segments than this the next writer merges them into one.
pub const MAX_SEGMENTS: usize = 8;

/// The largest payload, as it was stored and after decoding (bytes).
pub const MAX_PAYLOAD: u64 = 1 << 30;

/// The largest block of packed payloads, before it is packed (bytes).
pub const MAX_BLOCK: u64 = 1 << 28;

/// The default bound of an archive's size (bytes).
pub const DEFAULT_BOUND: u64 = 256 << 20;

/// A file that changed more recently than this (nanoseconds) may change again without a difference in its times.
pub const SETTLING: i64 = 20_000_000;

/// The CRC-32 (IEEE) of some bytes.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
