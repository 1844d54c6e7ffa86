//! The records of files and directories that the boot depended on.

use crate::Text;
use record::record;

record! {
    /// A file whose content the boot depended on. One that was not there has zeros, and look-ups, to be repeated when it is there.
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
    /// A directory of inputs: files whose content the boot depended on, and what it learnt about other names.
    pub struct Directory {
        /// Absolute path.
        pub path: Text,
        /// Time of the last change of what is listed in it (ns since 1970), or 0 when it was too young to tell changes apart.
        pub mtime: i64,
        /// Time of the last change of its inode (ns since 1970), or 0.
        pub ctime: i64,
        /// How many rows of the inputs section lie in it: those that follow the rows of the directories before.
        pub inputs: u32,
        /// Sum of [`directory_flag`].
        pub flags: u32,
        /// Where its answers start, from the start of all answers (bytes).
        pub answers_offset: u64,
        /// Their size (bytes); 0 when nothing besides the files counts.
        pub answers_size: u64,
        /// Their checksum.
        pub answers_sum: u64,
    }
}

/// What holds for a directory besides its answers.
pub mod directory_flag {
    /// Where it is not there, its answers hold: they are lists in which nothing was found, or names that were not there.
    pub const MAY_BE_ABSENT: u32 = 1;
    /// An answer is about what lies deeper, of which its times do not tell: where they have changed, the look-up is repeated each time.
    pub const DEEP: u32 = 2;
}

record! {
    /// What the boot has looked up in an input that the whole machine shares. Of an input with look-ups not the content counts but the answers.
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

/// What is looked up in a shared file: see `inputs::lookups`.
pub mod lookup_kind {
    /// Where the dynamic loader's cache says that the library of this name is.
    pub const LIBRARY: u32 = 1;
    /// The line of this name in a table like /etc/passwd.
    pub const NAME: u32 = 2;
    /// The line of this number in a table like /etc/passwd.
    pub const NUMBER: u32 = 3;
    /// Whether the C library's archive of locales has one of this name.
    pub const LOCALE: u32 = 4;
}

/// What a directory answered when the boot looked up a name: see [`crate::Answers`].
pub mod answer_kind {
    /// There is nothing of that name.
    pub const ABSENT: u32 = 1;
    /// It is a directory, or leads to one.
    pub const DIRECTORY: u32 = 2;
    /// It is there, and is no symbolic link.
    pub const PLAIN: u32 = 3;
    /// It is a symbolic link; `value` is its target.
    pub const LINK: u32 = 4;
    /// It is there, and is neither a regular file nor a directory.
    pub const SPECIAL: u32 = 5;
    /// Not one name but all that end in `name`: `value` is the digest of the list.
    pub const LISTING: u32 = 6;
    /// There is nothing of that name, because what its first part names is there and no directory.
    pub const BELOW: u32 = 7;
    /// A list, as [`LISTING`], of what tells of Python's distributions (`*.dist-info` and the like): of those named in `name`, with `/`
    /// between, or of all where it is empty.
    pub const DISTRIBUTIONS: u32 = 8;
    /// A list, as [`LISTING`], of what matches one of the patterns in `name`, with `/` between: each has one `*`.
    pub const MATCHING: u32 = 9;
    /// No other gem has one of the features in `name`, with line feeds between: `value` has the known specifications of RubyGems' in
    /// the directory. See [`crate::is_known`] and [`crate::may_have_feature`].
    pub const FEATURES: u32 = 10;
    /// There is nothing of that name, or what is no symbolic link.
    pub const UNLINKED: u32 = 11;
}
