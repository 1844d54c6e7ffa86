//! pidfd_open(2) of the process itself; that of another process leads to a process that a thaw does not have.

use image::{descriptor_kind, Descriptor};
use linux_raw_sys::general::O_NONBLOCK;

use crate::open::{parse, Open};
use crate::{Captured, Kernel, Process, Result, WriteRow};

pub fn capture(open: &Open<'_>, process: &impl Process, write: &mut WriteRow<'_>) -> Captured {
    if !open.is_anonymous("[pidfd]") && !open.name.starts_with(b"pidfd:") {
        return None;
    }
    if parse(open.field("Pid"), 10) != Some(process.booted_pid()) {
        return Some(Err("is the pidfd of another process; close it in a before_freeze hook"));
    }
    write(open.row(descriptor_kind::PIDFD, 0), b"");
    Some(Ok(()))
}

pub fn restore<K: Kernel>(row: &Descriptor, kernel: &K) -> Result<K::Fd> {
    kernel.own_pidfd(row.flags & O_NONBLOCK)
}
