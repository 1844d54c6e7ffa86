//! Files, directories and devices that behave the same when they are opened again by their path.

use image::{descriptor_kind, Descriptor};
use linux_raw_sys::general::{O_ACCMODE, O_APPEND, O_CREAT, O_EXCL, O_TRUNC, S_IFCHR, S_IFDIR, S_IFREG};

use crate::open::{parse, Open};
use crate::{give_number, Captured, Failed, Kernel, WriteRow};

const PLAIN_DEVICES: [&[u8]; 5] = [b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/random", b"/dev/urandom"];

/// Flags that apply only to the first open.
const ONCE: u32 = O_CREAT | O_EXCL | O_TRUNC;

pub fn capture(open: &Open<'_>, write: &mut WriteRow<'_>) -> Captured {
    // A file with several names does not say which one was used.
    let is_named = open.links > 0 && open.name.starts_with(b"/") && !open.name.ends_with(b" (deleted)");
    let offset = match open.file_type() {
        S_IFREG if is_named => parse(open.field("pos"), 10).unwrap_or(0),
        S_IFDIR if is_named => 0,
        S_IFCHR if PLAIN_DEVICES.contains(&open.name) => 0,
        _ => return None,
    };
    let row = open.row(descriptor_kind::FILE, offset);
    write(Descriptor { flags: row.flags & !ONCE, ..row }, open.name);
    Some(Ok(()))
}

pub fn restore<K: Kernel>(row: &Descriptor, path: &[u8], is_rehearsal: bool, kernel: &K) -> Result<(), Failed> {
    let failed = Failed::of_call("a file that the frozen process holds open cannot be opened");
    let flags = if is_rehearsal { row.flags & !O_ACCMODE } else { row.flags };
    let file = kernel.open(path, flags).map_err(&failed)?;
    if row.value != 0 && row.flags & O_APPEND == 0 {
        kernel.seek(file, row.value).map_err(&failed)?;
    }
    give_number(file, row, kernel)
}
