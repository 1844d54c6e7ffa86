//! The system calls that take file names, on x86-64.

use inputs::attributes::Attribute;
use libc::c_long;

use crate::calls::Shape::{self, Address, At, Flagged, List, Name, Open, OpenAt, OpenHow, Two, TwoAt};
use crate::calls::Use::{Look, LookAtLink, Make, Read, ReadLink, Remove, Write};

/// AUDIT_ARCH_X86_64 of linux/audit.h.
pub const AUDIT: u32 = 0xc000_003e;

/// Every call that the filter stops at. Calls that ask for facts (uname, getuid) have no row: the freezer's hooks see them.
pub const TABLE: [(c_long, Shape); 45] = [
    (libc::SYS_open, Open(0, 1)),
    (libc::SYS_openat, OpenAt(0, 1, 2)),
    (libc::SYS_openat2, OpenHow(0, 1, 2)),
    (libc::SYS_creat, Name(0, Make)),
    (libc::SYS_stat, Name(0, Look)),
    (libc::SYS_lstat, Name(0, LookAtLink)),
    (libc::SYS_newfstatat, Flagged(0, 1, 3)),
    (libc::SYS_statx, Flagged(0, 1, 2)),
    (libc::SYS_access, Name(0, Look)),
    (libc::SYS_faccessat, At(0, 1, Look)),
    (libc::SYS_faccessat2, Flagged(0, 1, 3)),
    (libc::SYS_statfs, Name(0, Look)),
    (libc::SYS_getxattr, Name(0, Look)),
    (libc::SYS_lgetxattr, Name(0, LookAtLink)),
    (libc::SYS_listxattr, Name(0, Look)),
    (libc::SYS_llistxattr, Name(0, LookAtLink)),
    (libc::SYS_readlink, Name(0, ReadLink)),
    (libc::SYS_readlinkat, At(0, 1, ReadLink)),
    (libc::SYS_execve, Name(0, Read)),
    (libc::SYS_execveat, Flagged(0, 1, 4)),
    (libc::SYS_chdir, Name(0, Look)),
    (libc::SYS_getdents, List),
    (libc::SYS_getdents64, List),
    (libc::SYS_inotify_add_watch, Name(1, Look)),
    (libc::SYS_truncate, Name(0, Write)),
    (libc::SYS_utime, Name(0, Write)),
    (libc::SYS_utimes, Name(0, Write)),
    (libc::SYS_utimensat, At(0, 1, Write)),
    (libc::SYS_chmod, Name(0, Write)),
    (libc::SYS_fchmodat, At(0, 1, Write)),
    (libc::SYS_mkdir, Name(0, Make)),
    (libc::SYS_mkdirat, At(0, 1, Make)),
    (libc::SYS_mknod, Name(0, Make)),
    (libc::SYS_mknodat, At(0, 1, Make)),
    (libc::SYS_symlink, Name(1, Make)),
    (libc::SYS_symlinkat, At(1, 2, Make)),
    (libc::SYS_link, Two(0, 1, LookAtLink)),
    (libc::SYS_linkat, TwoAt([0, 1, 2, 3], LookAtLink)),
    (libc::SYS_rename, Two(0, 1, Remove)),
    (libc::SYS_renameat, TwoAt([0, 1, 2, 3], Remove)),
    (libc::SYS_renameat2, TwoAt([0, 1, 2, 3], Remove)),
    (libc::SYS_unlink, Name(0, Remove)),
    (libc::SYS_unlinkat, At(0, 1, Remove)),
    (libc::SYS_rmdir, Name(0, Remove)),
    (libc::SYS_bind, Address(1)),
];

/// System calls that set attributes of a process, in addition to those of all architectures.
pub const SETTERS_HERE: &[(c_long, Attribute)] =
    &[(libc::SYS_iopl, Attribute::IoPorts), (libc::SYS_ioperm, Attribute::IoPorts)];
