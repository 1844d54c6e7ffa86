//! The records of files outside an image that describe its starts: IMAGE.seen, IMAGE.thaws, STATE/starts/SUM.

use record::record;

record! {
    /// The head of the file IMAGE.seen, which lists files that had other times in a thaw and the same content.
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
    /// A file whose content, or a directory whose answers, a thaw has compared.
    pub struct SeenFile {
        /// Checksum of its path.
        pub path: u64,
        /// Its mtime at the comparison (ns since 1970).
        pub mtime: i64,
        /// Its ctime at the comparison (ns since 1970).
        pub ctime: i64,
    }
}

record! {
    /// The head of the file IMAGE.thaws, which grows by a byte with each thaw of an image with
    /// [`crate::Settings::max_thaws`].
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
    /// The file STATE/starts/SUM, which counts the starts of an image. The text of the last fallback's reason follows.
    pub struct StartsHead {
        /// [`StartsHead::MAGIC`].
        pub magic: [u8; 8],
        /// The `image_id` of the image's first variant.
        pub image: u64,
        /// Number of starts that thawed.
        pub thaws: u64,
        /// Number of fallbacks since the last thaw.
        pub since: u64,
        /// Number of fallbacks.
        pub fallbacks: u64,
        /// Time of the last fallback (ns since 1970); 0 if there was none.
        pub last: i64,
        /// Size of the reason's text (bytes).
        pub reason: u64,
    }
}

impl StartsHead {
    /// The first bytes of such a file.
    pub const MAGIC: [u8; 8] = *b"SNAPSTRT";
    /// Size of the whole file (bytes). It is constant, so a start needs no disk space to count itself.
    pub const FILE_SIZE: usize = 512;
    /// The variable that names STATE. If it is empty, starts are not counted.
    pub const VARIABLE: &'static str = "SNAPBOOT_STATE";
    /// STATE if the variable is unset: a folder below the first of these variables that is an absolute path.
    pub const PLACES: [(&'static str, &'static str); 2] =
        [("XDG_STATE_HOME", "/snapboot"), ("HOME", "/.local/state/snapboot")];
}
