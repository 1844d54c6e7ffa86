//! Sockets that were made and not used yet: without address, peer and options of their own.

use image::{descriptor_kind, Descriptor};
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK, S_IFSOCK};

use crate::open::Open;
use crate::{Captured, Kernel, Process, Result, WriteRow};

/// How many bits of a row's value the type has, and the protocol; the family is above them.
const BITS: u32 = 16;
const MASK: u64 = (1 << BITS) - 1;

/// None for a socket in use, which the caller describes.
pub fn capture(open: &Open<'_>, process: &impl Process, write: &mut WriteRow<'_>) -> Captured {
    if open.file_type() != S_IFSOCK || !process.is_unused_socket(open.number) {
        return None;
    }
    let Some([family, kind, protocol]) = process.as_new_socket(open.number) else {
        return Some(Err("is a socket whose options the program has set; \
                         close it in a before_freeze hook, or open it after the freeze point"));
    };
    let value = u64::from(family) << (2 * BITS) | u64::from(kind) << BITS | u64::from(protocol);
    write(open.row(descriptor_kind::SOCKET, value), b"");
    Some(Ok(()))
}

pub fn restore<K: Kernel>(row: &Descriptor, kernel: &K) -> Result<K::Fd> {
    let part = |number: u32| (row.value >> (number * BITS) & MASK) as u32;
    kernel.socket([part(2), part(1), part(0)], row.flags & (O_NONBLOCK | O_CLOEXEC))
}
