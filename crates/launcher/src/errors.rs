//! The kernel's error numbers in words.

use core::fmt;

use linux_raw_sys::errno as raw;

use crate::sys::Errno;

impl fmt::Display for Errno {
    /// As the C library says it, where users meet the number; otherwise the number.
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
