//! The fixed-size parts of the file, in the order in which a reader meets them.

use record::record;

record! {
    /// The start of the file. The rest of its page is zero.
    pub struct Header {
        /// [`Header::MAGIC`].
        pub magic: [u8; 8],
        /// The format's version.
        pub version: u32,
        /// CRC-32 of the fields before this one.
        pub header_sum: u32,
    }
}

impl Header {
    /// The first bytes of every archive.
    pub const MAGIC: [u8; 8] = *b"\x89SNAPAR\n";
}

record! {
    /// The start of a segment. It is written last: until then the segment does not exist.
    pub struct SegmentHead {
        /// [`SegmentHead::MAGIC`].
        pub magic: [u8; 4],
        /// CRC-32 of the fields after this one.
        pub head_sum: u32,
        /// Bytes of the whole segment, with this record: a multiple of 16.
        pub size: u64,
        /// Where the index starts, from the start of the segment.
        pub index_offset: u64,
        /// Slots of the index: a power of two, and more than there are entries.
        pub slots: u32,
        /// CRC-32 of the index.
        pub index_sum: u32,
        /// Entries of the segment.
        pub entries: u32,
        /// 0.
        pub reserved: u32,
        /// When it was written: seconds since 1970.
        pub written: i64,
    }
}

impl SegmentHead {
    /// The first bytes of every segment.
    pub const MAGIC: [u8; 4] = *b"SEGM";
}

record! {
    /// One slot of an index.
    pub struct Slot {
        /// CRC-32 of the key.
        pub key_sum: u32,
        /// The place of the item; 0: the slot is free.
        pub place: u32,
    }
}

record! {
    /// The start of an entry. Its key, its inputs (rows, then names) and its payload follow.
    pub struct EntryHead {
        /// CRC-32 of the fields after this one, the key and the inputs.
        pub head_sum: u32,
        /// CRC-32 of the payload as stored.
        pub payload_sum: u32,
        /// Bytes of the key.
        pub key_size: u32,
        /// Number of inputs.
        pub inputs: u32,
        /// Bytes of the inputs: their rows and names.
        pub inputs_size: u32,
        /// The encoding of the payload: see `encoding`.
        pub encoding: u32,
        /// Where the payload starts, from the start of the entry: a multiple of 16.
        pub payload_offset: u32,
        /// Bytes of the payload as stored.
        pub payload_size: u32,
        /// Bytes of the payload after decoding.
        pub plain_size: u32,
    }
}

record! {
    /// The position of a packed payload.
    pub struct Packed {
        /// Where its block starts, from the start of the segment, divided by 16.
        pub block: u32,
        /// Where it starts in the block's plain content.
        pub offset: u32,
        /// CRC-32 of the payload after decoding.
        pub plain_sum: u32,
    }
}

record! {
    /// The start of a block of packed payloads. One frame of Zstandard follows.
    pub struct BlockHead {
        /// CRC-32 of the fields after this one and the frame.
        pub block_sum: u32,
        /// Bytes of the frame.
        pub size: u32,
        /// Bytes of the block's plain content.
        pub plain_size: u32,
        /// Number of runs.
        pub runs: u32,
    }
}

record! {
    /// A table of ascending numbers in a block's plain content, which is stored as differences.
    pub struct Run {
        /// Where it starts in the plain content.
        pub offset: u32,
        /// How many numbers of 4 bytes it has.
        pub count: u32,
    }
}

record! {
    /// An input of an entry.
    pub struct Input {
        /// Its kind: see `input_kind`.
        pub kind: u32,
        /// Bytes of its name.
        pub name_size: u32,
        /// Bytes of a file's or a variable's content; otherwise 0.
        pub size: u64,
        /// Time of the last change of the content: nanoseconds since 1970.
        pub mtime: i64,
        /// Time of the last change of the content or of the inode: nanoseconds since 1970.
        pub ctime: i64,
        /// SHA-256 of a file's or a variable's content, or of a directory's listing; otherwise zero.
        pub digest: [u8; 32],
    }
}

record! {
    /// The start of a payload of kind `DIRECTORY`. An index and the names follow.
    pub struct DirectoryHead {
        /// Slots of the index: a power of two, and more than there are names.
        pub slots: u32,
        /// Number of names.
        pub names: u32,
    }
}

/// The encodings of payloads.
pub mod encoding {
    /// Plain.
    pub const PLAIN: u32 = 0;
    /// In a block, together with others: the payload in the entry gives the position.
    pub const PACKED: u32 = 1;
}

/// The kinds of inputs.
pub mod input_kind {
    /// A regular file.
    pub const FILE: u32 = 1;
    /// A directory: the names in it, with their kinds.
    pub const DIRECTORY: u32 = 2;
    /// A path at which there is nothing.
    pub const ABSENT: u32 = 3;
    /// An environment variable that is set.
    pub const VARIABLE: u32 = 4;
    /// An environment variable that is not set.
    pub const UNSET: u32 = 5;
}

/// The kinds of names in a directory.
pub mod name_kind {
    /// A regular file.
    pub const FILE: u8 = 1;
    /// A directory.
    pub const DIRECTORY: u8 = 2;
    /// A symbolic link; its target is not recorded.
    pub const LINK: u8 = 3;
    /// Anything else.
    pub const OTHER: u8 = 4;
}
