//! An open descriptor as the kernel describes it.

use image::Descriptor;

/// An open descriptor of the process that is being frozen.
pub struct Open<'a> {
    /// Its number.
    pub number: u32,
    /// Path of its file, or the kernel's name for what has none: what the link /proc/self/fd/NUMBER says.
    pub name: &'a [u8],
    /// Type and permissions, as st_mode of fstat(2).
    pub mode: u32,
    /// How many names its file has.
    pub links: u64,
    /// The inode's number.
    pub inode: u64,
    /// The content of /proc/self/fdinfo/NUMBER, see proc_pid_fdinfo(5).
    pub info: &'a [u8],
}

impl<'a> Open<'a> {
    /// The value of the first line `KEY: VALUE` of the description; empty if it has none.
    pub fn field(&self, key: &'static str) -> &'a [u8] {
        self.fields(key).next().unwrap_or(b"")
    }

    /// The values of all lines with this key.
    pub fn fields(&self, key: &'static str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let rest = move |line: &'a [u8]| line.strip_prefix(key.as_bytes())?.strip_prefix(b":").map(<[u8]>::trim_ascii);
        self.info.split(|&byte| byte == b'\n').filter_map(rest)
    }

    /// The flags with which it is open, `O_CLOEXEC` included.
    pub fn flags(&self) -> u32 {
        parse(self.field("flags"), 8).unwrap_or(0) as u32
    }

    /// Whether it is an object without a file, of this kind: `[eventfd]`.
    pub fn is_anonymous(&self, kind: &str) -> bool {
        self.name.strip_prefix(b"anon_inode:") == Some(kind.as_bytes())
    }

    /// The type of its file: `S_IFREG` and the like.
    pub fn file_type(&self) -> u32 {
        self.mode & linux_raw_sys::general::S_IFMT
    }

    /// Its row, without a peer.
    pub fn row(&self, kind: u32, value: u64) -> Descriptor {
        Descriptor { number: self.number, kind, flags: self.flags(), value, ..Descriptor::default() }
    }
}

/// A number of this base; None for other text.
pub fn parse(digits: &[u8], base: u32) -> Option<u64> {
    core::str::from_utf8(digits).ok().and_then(|digits| u64::from_str_radix(digits, base).ok())
}
