//! The image format: a frozen process as a file.
//!
//! An image is an executable: the launcher, a [`Head`] inside one of the launcher's loaded segments, the data pages of
//! the frozen process, and the *tables*, which say what belongs where. Each kind of record is declared once (see
//! [`record::record!`]); that declaration yields its reader, its writer and its row in
//! `docs/internals/image-format.md`.
//!
//! Nothing read from a file is trusted: this crate checks every offset and length before its use, and every error says
//! what was expected and what was found.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod answers;
pub mod arch;

mod descriptor_records;
mod error;
mod gem_stub;
mod head;
mod input_records;
mod name_selection;
mod records;
mod sidecar;
mod tables;
mod text;
pub mod validate;

pub use answers::{
    answer_kind, has_value, is_list, is_unlisted, mark, AnswersReader, Listing, RecordedAnswer, MAX_NAME,
};
pub use descriptor_records::*;
pub use error::Error;
pub use gem_stub::{is_known, may_have_feature, specification_key, MAX_START};
pub use head::{
    Command, Head, COMMAND_OFFSET, HEAD_AREA, HEAD_OFFSET, MAX_ANSWERS, MAX_TABLES, MAX_VARIANTS, VARIANTS_OFFSET,
};
pub use input_records::*;
pub use name_selection::is_selected;
pub use record::{Field, Record};
pub use records::*;
pub use sidecar::*;
pub use tables::{Entry, Rows, Section, Tables, Trailer};
pub use text::Text;

/// The version of this format. A launcher thaws only images of its own version.
pub const VERSION: u32 = 8;

/// Memory and file offsets are multiples of this (bytes). Linux on x86-64 has no other base page size.
pub const PAGE: u64 = 4096;

/// Where the launcher lives: an address that neither the kernel nor a runtime chooses by itself
/// (x86-64 Linux puts programs at 0x55.. and 0x40.., libraries and stacks at 0x7f..).
pub const RESERVED_START: u64 = 0x1000_0000_0000;

/// The end of the range that belongs to launcher and freezer. A process that has memory of its own here
/// cannot be frozen.
pub const RESERVED_END: u64 = RESERVED_START + 0x20_0000_0000;

/// A 64-bit checksum against accidental damage (XXH3), used for head, command and tables.
pub fn checksum(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

/// A 128-bit digest (XXH3). It replaces a value that must not be stored, such as that of an environment variable.
pub fn digest(bytes: &[u8]) -> [u8; 16] {
    xxhash_rust::xxh3::xxh3_128(bytes).to_le_bytes()
}

/// The same digest, computed piece by piece.
#[derive(Clone, Default)]
pub struct ContentDigest(xxhash_rust::xxh3::Xxh3);

impl ContentDigest {
    /// Adds the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all pieces.
    pub fn finish(&self) -> [u8; 16] {
        self.0.digest128().to_le_bytes()
    }
}

/// Addresses inside the reserved range.
pub mod reserved {
    use crate::RESERVED_START;
    /// How long the launcher took for each directory of inputs, if `snapboot explain` asks.
    pub const TIMES_OF_DIRECTORIES: u64 = RESERVED_START + 0x00d0_0000;
    /// How long the launcher took for each file that it mapped, if `snapboot explain` asks.
    pub const TIMES_OF_FILES: u64 = RESERVED_START + 0x00e0_0000;
    /// The image's head, mapped here by a launcher that got its image as an argument.
    pub const HEAD: u64 = RESERVED_START + 0x00f0_0000;
    /// The tables, mapped here by the launcher.
    pub const TABLES: u64 = RESERVED_START + 0x0100_0000;
    /// The vvar and vdso group while the launcher lays out memory.
    pub const VDSO: u64 = RESERVED_START + 0x0f00_0000;
    /// End of the launcher's leftovers. The new environment follows and stays.
    pub const LEFTOVER_END: u64 = RESERVED_START + 0x1000_0000;
    /// The arguments and the environment of the new process: the block of crates/launcher argument_block.rs.
    pub const ARGUMENT_BLOCK: u64 = LEFTOVER_END;
    /// The launcher checks here which parts of the image are in memory.
    pub const PROBE: u64 = RESERVED_START + 0x8_0000_0000;
    /// The launcher's copy of IMAGE.seen: the files that earlier thaws compared.
    pub const SEEN: u64 = RESERVED_START + 0x10_0000_0000;
    /// The directories' answers while the launcher repeats the look-ups.
    pub const ANSWERS: u64 = RESERVED_START + 0x18_0000_0000;
    /// The path of a changed file, which the launcher assembles for its message: one page.
    pub const CHANGED_PATH: u64 = RESERVED_START + 0x1f_0000_0000;
    /// A file that the whole machine shares, while the launcher looks answers up in it.
    pub const SHARED: u64 = RESERVED_START + 0x1f_1000_0000;
    /// The vvar and vdso group of a kernel other than the image's own. It stays here if frozen memory occupies its
    /// address.
    pub const OTHER_VDSO: u64 = RESERVED_START + 0x1f_2000_0000;
    /// The freezer's working memory, which never gets into an image.
    pub const ARENA: u64 = RESERVED_START + 0x8_0000_0000;
}
