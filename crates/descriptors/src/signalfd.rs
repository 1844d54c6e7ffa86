//! signalfd(2), with the signals that it accepts.

use image::{descriptor_kind, Descriptor};
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK};

use crate::open::{parse, Open};
use crate::{Captured, Kernel, Result, WriteRow};

pub fn capture(open: &Open<'_>, write: &mut WriteRow<'_>) -> Captured {
    if !open.is_anonymous("[signalfd]") {
        return None;
    }
    let mask = parse(open.field("sigmask"), 16)?;
    write(open.row(descriptor_kind::SIGNALFD, mask), b"");
    Some(Ok(()))
}

pub fn restore<K: Kernel>(row: &Descriptor, kernel: &K) -> Result<K::Fd> {
    kernel.signalfd(row.value, row.flags & (O_NONBLOCK | O_CLOEXEC))
}
