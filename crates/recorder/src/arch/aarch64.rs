//! The system calls that take file names on aarch64. It has only the calls that also take a directory.

use inputs::attributes::Attribute;
use libc::c_long;

use crate::calls::Shape::{self, Address, At, Flagged, List, Name, OpenAt, OpenHow, TwoAt};
use crate::calls::Use::{Look, LookAtLink, Make, Read, ReadLink, Remove, Write};

/// AUDIT_ARCH_AARCH64 of linux/audit.h.
pub const AUDIT: u32 = 0xc000_00b7;

/// Every call that the filter stops at.
pub const TABLE: [(c_long, Shape); 28] = [
    (libc::SYS_openat, OpenAt(0, 1, 2)),
    (libc::SYS_openat2, OpenHow(0, 1, 2)),
    (libc::SYS_newfstatat, Flagged(0, 1, 3)),
    (libc::SYS_statx, Flagged(0, 1, 2)),
    (libc::SYS_faccessat, At(0, 1, Look)),
    (libc::SYS_faccessat2, Flagged(0, 1, 3)),
    (libc::SYS_statfs, Name(0, Look)),
    (libc::SYS_getxattr, Name(0, Look)),
    (libc::SYS_lgetxattr, Name(0, LookAtLink)),
    (libc::SYS_listxattr, Name(0, Look)),
    (libc::SYS_llistxattr, Name(0, LookAtLink)),
    (libc::SYS_readlinkat, At(0, 1, ReadLink)),
    (libc::SYS_execve, Name(0, Read)),
    (libc::SYS_execveat, Flagged(0, 1, 4)),
    (libc::SYS_chdir, Name(0, Look)),
    (libc::SYS_getdents64, List),
    (libc::SYS_inotify_add_watch, Name(1, Look)),
    (libc::SYS_truncate, Name(0, Write)),
    (libc::SYS_utimensat, At(0, 1, Write)),
    (libc::SYS_fchmodat, At(0, 1, Write)),
    (libc::SYS_mkdirat, At(0, 1, Make)),
    (libc::SYS_mknodat, At(0, 1, Make)),
    (libc::SYS_symlinkat, At(1, 2, Make)),
    (libc::SYS_linkat, TwoAt([0, 1, 2, 3], LookAtLink)),
    (libc::SYS_renameat, TwoAt([0, 1, 2, 3], Remove)),
    (libc::SYS_renameat2, TwoAt([0, 1, 2, 3], Remove)),
    (libc::SYS_unlinkat, At(0, 1, Remove)),
    (libc::SYS_bind, Address(1)),
];

/// System calls that set attributes of a process, in addition to those of all architectures.
pub const SETTERS_HERE: &[(c_long, Attribute)] = &[];
