//! The kernel's error numbers in words.

use core::fmt;

use linux_raw_sys::errno as raw;

/// An error number of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub u32);

impl Errno {
    /// No such file or directory.
    pub const ENOENT: Errno = Errno(raw::ENOENT);
    /// Permission denied.
    pub const EACCES: Errno = Errno(raw::EACCES);
    /// Not a directory.
    pub const ENOTDIR: Errno = Errno(raw::ENOTDIR);
    /// File name too long.
    pub const ENAMETOOLONG: Errno = Errno(raw::ENAMETOOLONG);

    /// Whether it means that nothing of that name exists.
    pub fn is_absence(self) -> bool {
        matches!(self, Errno::ENOENT | Errno::ENOTDIR | Errno::ENAMETOOLONG)
    }
}

impl fmt::Display for Errno {
    /// The C library's text for the errors that users meet; otherwise the number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            raw::EPERM => "operation not permitted",
            raw::ENOENT => "no such file or directory",
            raw::EIO => "input/output error",
            raw::ENOMEM => "out of memory",
            raw::EACCES => "permission denied",
            raw::ENOTDIR => "not a directory",
            raw::EMFILE => "too many open files",
            raw::ENOSPC => "no space left on device",
            raw::EROFS => "read-only file system",
            raw::ELOOP => "too many levels of symbolic links",
            raw::ENAMETOOLONG => "file name too long",
            raw::ENOEXEC => "exec format error",
            raw::E2BIG => "argument list too long",
            number => return write!(f, "errno {number}"),
        })
    }
}
