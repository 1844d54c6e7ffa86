//! The interface of a comparison: the operating system that it asks, and the receiver of the differences. The launcher
//! implements both with bare system calls, image-file with a library; the comparison is the same for both.

use image::Directory;

use crate::{Difference, Errno};

/// The result of a system call.
pub type Result<T> = core::result::Result<T, Errno>;

/// Size, times, mode and identity of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Bytes.
    pub size: u64,
    /// Time of the last change of its content (ns since 1970).
    pub mtime: i64,
    /// Time of the last change of its inode (ns since 1970).
    pub ctime: i64,
    /// Its user.
    pub owner: u32,
    /// Type and permissions, as in stat(2).
    pub mode: u32,
    /// The device that it is on.
    pub device: u64,
    /// Its number there.
    pub inode: u64,
}

impl Status {
    /// The kind of file.
    pub fn kind(&self) -> FileKind {
        // The numbers are part of the kernel's interface, see inode(7).
        match self.mode & 0o170_000 {
            0o040_000 => FileKind::Directory,
            0o100_000 => FileKind::Regular,
            0o120_000 => FileKind::Link,
            _ => FileKind::Special,
        }
    }
}

/// The kind of an entry in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A regular file.
    Regular,
    /// A symbolic link.
    Link,
    /// A device, socket or pipe.
    Special,
}

/// The system calls for files and directories. All paths and names end with a NUL.
pub trait System {
    /// An open directory, which may allow look-ups only.
    type Directory;
    /// The error of an early end, see [`Check::Stop`].
    type Stop: From<image::Error>;
    /// The least number of files in a directory that makes opening it first worthwhile.
    const WORTH_OPENING: u32;

    /// Opens a directory for look-ups.
    fn open_directory(&self, path: &[u8]) -> Result<Self::Directory>;
    /// Closes a directory.
    fn close(&self, directory: Self::Directory);
    /// The status of an open directory.
    fn status(&self, directory: &Self::Directory) -> Result<Status>;
    /// The status of a path, relative to `directory` or else to the current directory. Follows links.
    fn stat(&self, directory: Option<&Self::Directory>, path: &[u8]) -> Result<Status>;
    /// The status of a file, if it can be opened for reading.
    fn stat_readable(&self, path: &[u8]) -> Result<Status>;
    /// The status of a name itself; does not follow a link.
    fn stat_link(&self, directory: &Self::Directory, name: &[u8]) -> Result<Status>;
    /// Reads the target of a symbolic link. Returns the number of bytes written to `target`.
    fn read_link(&self, directory: &Self::Directory, name: &[u8], target: &mut [u8]) -> Result<usize>;
    /// Passes each name in a directory to `each`.
    fn list(&self, directory: &Self::Directory, each: &mut dyn FnMut(&[u8])) -> Result<()>;
    /// Reads the start of a file. Returns the number of bytes written to `start`.
    fn read_start(&self, directory: &Self::Directory, name: &[u8], start: &mut [u8]) -> Result<usize>;
    /// Digest and size (bytes) of a file's content. Never blocks on a pipe.
    fn digest(&self, path: &[u8]) -> Result<([u8; 16], u64)>;
    /// Passes the content of a file to `see`.
    fn with_content(&self, path: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<()>;
    /// The image's answers of a directory.
    fn answers(&self, row: &Directory) -> core::result::Result<&[u8], Self::Stop>;
    /// Passes the name of the image in its directory to `see`; does nothing if it has none. No list contains it.
    fn with_image_name(&self, see: &mut dyn FnMut(&[u8]));
    /// Whether this is the directory of the image.
    fn is_home(&self, directory: &Status) -> bool;
}

/// Receives the differences: the launcher stops at the first, others collect all.
pub trait Check<'t> {
    /// The error that ends the comparison early.
    type Stop: From<image::Error>;

    /// Receives a difference. The comparison continues unless this fails.
    fn differs(&mut self, difference: Difference<'t, '_>) -> core::result::Result<(), Self::Stop>;

    /// Whether an earlier comparison found a file with other times, the present ones, unchanged. `path` has no NUL.
    fn knows(&mut self, _path: &[u8], _now: &Status) -> bool {
        false
    }

    /// Receives a file found unchanged despite other times, in the order of the calls of [`Check::knows`]. `is_new`:
    /// `knows` returned false.
    fn remember(&mut self, _path: &[u8], _now: &Status, _is_new: bool) {}

    /// The directory of this row and its files are compared.
    fn has_done(&mut self, _directory: usize) {}
}
