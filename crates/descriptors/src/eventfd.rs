//! eventfd(2), with its count.

use image::{descriptor_kind, Descriptor};
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK};

use crate::open::{parse, Open};
use crate::{Captured, Kernel, Result, WriteRow};

/// In a row's value, above the count: each read takes one of the count.
const SEMAPHORE: u64 = 1 << 32;
const EFD_SEMAPHORE: u32 = 1;

pub fn capture(open: &Open<'_>, write: &mut WriteRow<'_>) -> Captured {
    if !open.is_anonymous("[eventfd]") {
        return None;
    }
    let count = parse(open.field("eventfd-count"), 16).and_then(|count| u32::try_from(count).ok());
    // Kernels before 6.5 do not tell.
    let semaphore = if open.field("eventfd-semaphore") == b"1" { SEMAPHORE } else { 0 };
    Some(match count {
        Some(count) => {
            write(open.row(descriptor_kind::EVENTFD, u64::from(count) | semaphore), b"");
            Ok(())
        }
        None => Err("is an eventfd with a larger count than a new one can have; read it before the freeze"),
    })
}

pub fn restore<K: Kernel>(row: &Descriptor, kernel: &K) -> Result<K::Fd> {
    let semaphore = if row.value & SEMAPHORE != 0 { EFD_SEMAPHORE } else { 0 };
    kernel.eventfd(row.value as u32, row.flags & (O_NONBLOCK | O_CLOEXEC) | semaphore)
}
