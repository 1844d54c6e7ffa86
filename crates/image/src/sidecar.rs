//! The records of files outside of an image that tell of its starts: IMAGE.seen, IMAGE.thaws, STATE/starts/SUM.

use record::record;

record! {
    /// The head of the file IMAGE.seen, in which a thaw remembers what had other times and was the same.
    pub struct SeenHead {
        /// [`SeenHead::MAGIC`].
        pub magic: [u8; 8],
        /// The `image_id` of the image's first variant.
        pub image: u64,
        /// Number of [`SeenFile`] rows that follow.
        pub count: u64,
        /// Checksum of these rows.
        pub sum: u64,
    }
}

impl SeenHead {
    /// The first bytes of such a file.
    pub const MAGIC: [u8; 8] = *b"SNAPSEEN";
}

record! {
    /// A file whose content was compared, or a directory whose answers were.
    pub struct SeenFile {
        /// Checksum of its path.
        pub path: u64,
        /// Time of the last change of its content (ns since 1970) when it was compared.
        pub mtime: i64,
        /// Time of the last change of its inode (ns since 1970) when it was compared.
        pub ctime: i64,
    }
}

record! {
    /// The head of the file IMAGE.thaws, which has one more byte for each thaw of an image with [`crate::Settings::max_thaws`].
    pub struct ThawsHead {
        /// [`ThawsHead::MAGIC`].
        pub magic: [u8; 8],
        /// The `image_id` of the image's first variant.
        pub image: u64,
    }
}

impl ThawsHead {
    /// The first bytes of such a file.
    pub const MAGIC: [u8; 8] = *b"SNAPTHAW";
}

record! {
    /// The file STATE/starts/SUM, in which the starts of an image are counted. The text of the last reason comes after it.
    pub struct StartsHead {
        /// [`StartsHead::MAGIC`].
        pub magic: [u8; 8],
        /// The `image_id` of the image's first variant.
        pub image: u64,
        /// How many starts have thawed.
        pub thaws: u64,
        /// How many have fallen back since the last one that has thawed.
        pub since: u64,
        /// How many have fallen back at all.
        pub fallbacks: u64,
        /// When the last one fell back (ns since 1970); 0 when none has.
        pub last: i64,
        /// Size of the text that says why (bytes).
        pub reason: u64,
    }
}

impl StartsHead {
    /// The first bytes of such a file.
    pub const MAGIC: [u8; 8] = *b"SNAPSTRT";
    /// Size of the whole file (bytes). It never changes, so that a start which counts itself needs no room on the disk.
    pub const FILE_SIZE: usize = 512;
    /// The variable that names STATE. Empty: starts are not counted.
    pub const VARIABLE: &'static str = "SNAPBOOT_STATE";
    /// STATE where that is not set: the first of these variables that is an absolute path, and the folder below it.
    pub const PLACES: [(&'static str, &'static str); 2] =
        [("XDG_STATE_HOME", "/snapboot"), ("HOME", "/.local/state/snapboot")];
}
