//! The records of files and directories that the boot depended on.

use crate::Text;
use record::record;

record! {
    /// A file whose content the boot depended on. A missing file has zeros, and its look-ups are repeated once the file
    /// exists.
    pub struct Input {
        /// Absolute path.
        pub path: Text,
        /// Size in bytes.
        pub size: u64,
        /// Time of the last change of its content (ns since 1970).
        pub mtime: i64,
        /// Time of the last change of its inode (ns since 1970).
        pub ctime: i64,
        /// Digest of its content.
        pub digest: [u8; 16],
    }
}

record! {
    /// A directory of inputs: files whose content the boot depended on, and answers about other names.
    pub struct Directory {
        /// Absolute path.
        pub path: Text,
        /// Time of the last change of its entries (ns since 1970), or 0 if that was too recent to detect later changes.
        pub mtime: i64,
        /// Time of the last change of its inode (ns since 1970), or 0.
        pub ctime: i64,
        /// Number of rows of the inputs section that lie in it. They follow the rows of the directories before it.
        pub inputs: u32,
        /// Sum of [`directory_flag`].
        pub flags: u32,
        /// Where its answers start, relative to the start of all answers (bytes).
        pub answers_offset: u64,
        /// Size of its answers (bytes); 0 if only the files count.
        pub answers_size: u64,
        /// Checksum of its answers.
        pub answers_sum: u64,
    }
}

/// Properties of a directory besides its answers.
pub mod directory_flag {
    /// If the directory is missing, its answers hold: they are lists in which nothing was found, or absent names.
    pub const MAY_BE_ABSENT: u32 = 1;
    /// An answer is about a deeper directory, whose changes the times of this one do not show. Once these times have
    /// changed, every start repeats the look-up.
    pub const DEEP: u32 = 2;
}

record! {
    /// What the boot looked up in an input that the whole machine shares. For an input with look-ups only their answers
    /// count, not its content.
    pub struct FileLookup {
        /// Row of the inputs section.
        pub input: u32,
        /// One of [`lookup_kind`].
        pub kind: u32,
        /// What was looked up.
        pub text: Text,
        /// Digest of the answer.
        pub answer: [u8; 16],
    }
}

/// The kinds of look-ups in a shared file: see `inputs::lookups`.
pub mod lookup_kind {
    /// The path of the library of this name in the dynamic loader's cache.
    pub const LIBRARY: u32 = 1;
    /// The line of this name in a table like /etc/passwd.
    pub const NAME: u32 = 2;
    /// The line of this number in a table like /etc/passwd.
    pub const NUMBER: u32 = 3;
    /// Whether the C library's archive of locales contains one of this name.
    pub const LOCALE: u32 = 4;
    /// The lines with this name or number in a table like /etc/services.
    pub const ENTRY: u32 = 5;
}
