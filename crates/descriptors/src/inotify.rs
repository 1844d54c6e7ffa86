//! inotify(7) instances that watch nothing yet.

use image::{descriptor_kind, Descriptor};
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK};

use crate::open::Open;
use crate::{Captured, Kernel, Result, WriteRow};

pub fn capture(open: &Open<'_>, write: &mut WriteRow<'_>) -> Captured {
    if !open.is_anonymous("inotify") {
        return None;
    }
    // A line for each file that is watched: `inotify wd:1 ino:2c ...`.
    if open.fields("inotify wd").next().is_some() {
        return Some(Err(
            "is an inotify instance that watches files; what happens to them before a thaw would be missed: \
                         watch them after the freeze point",
        ));
    }
    write(open.row(descriptor_kind::INOTIFY, 0), b"");
    Some(Ok(()))
}

pub fn restore<K: Kernel>(row: &Descriptor, kernel: &K) -> Result<K::Fd> {
    kernel.inotify(row.flags & (O_NONBLOCK | O_CLOEXEC))
}
