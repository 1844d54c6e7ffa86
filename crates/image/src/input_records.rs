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
}

/// What a directory answered when the boot looked a name up: see [`crate::Answers`].
pub mod answer_kind {
    /// The name does not exist.
    pub const ABSENT: u32 = 1;
    /// It is a directory, or a link to one.
    pub const DIRECTORY: u32 = 2;
    /// It exists, and is not a symbolic link.
    pub const PLAIN: u32 = 3;
    /// It is a symbolic link; `value` is its target.
    pub const LINK: u32 = 4;
    /// It exists, and is neither a regular file nor a directory.
    pub const SPECIAL: u32 = 5;
    /// A list of all names that end in `name`; `value` is its digest.
    pub const LISTING: u32 = 6;
    /// The name does not exist, because its first component exists and is not a directory.
    pub const BELOW: u32 = 7;
    /// A list like [`LISTING`] of the metadata of Python distributions (`*.dist-info` and the like): of those in
    /// `name`, separated by `/`, or of all if it is empty.
    pub const DISTRIBUTIONS: u32 = 8;
    /// A list like [`LISTING`] of the names that match one of the patterns in `name`, which are separated by `/`. Each
    /// pattern has one `*`.
    pub const MATCHING: u32 = 9;
    /// No other gem has one of the features in `name`, which are separated by line feeds. `value` has the known
    /// specifications of RubyGems in the directory. See [`crate::is_known`] and [`crate::may_have_feature`].
    pub const FEATURES: u32 = 10;
    /// The name does not exist, or is not a symbolic link.
    pub const UNLINKED: u32 = 11;
}
