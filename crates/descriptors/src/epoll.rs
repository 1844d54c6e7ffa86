//! epoll(7) instances, and what they watch.

use image::{descriptor_kind, Descriptor};
use linux_raw_sys::general::O_CLOEXEC;

use crate::open::{parse, Open};
use crate::{Captured, Failed, Kernel, Process, Result, WriteRow};

pub fn capture(open: &Open<'_>, all: &[Open<'_>], process: &impl Process, write: &mut WriteRow<'_>) -> Captured {
    if !open.is_anonymous("[eventpoll]") {
        return None;
    }
    // A thaw can register a number again if it still refers to the file that is watched, and is not a standard stream,
    // which belongs to the new process.
    let is_there = |watch: Watch| {
        all.iter().any(|it| it.number == watch.number && it.inode == watch.inode)
            && process.is_watched(open.number, watch.number)
    };
    if !watches(open).all(is_there) {
        return Some(Err("is an epoll instance that watches standard streams, or what was closed here and is open \
                         elsewhere; close it in a before_freeze hook, or open it after the freeze point"));
    }
    write(open.row(descriptor_kind::EPOLL, 0), b"");
    Some(Ok(()))
}

/// Writes a row for each descriptor that an epoll instance watches.
pub fn capture_watches(open: &Open<'_>, write: &mut WriteRow<'_>) {
    if !open.is_anonymous("[eventpoll]") {
        return;
    }
    for watch in watches(open) {
        let Watch { number: peer, events: flags, data: value, .. } = watch;
        let kind = descriptor_kind::WATCH;
        write(Descriptor { number: open.number, kind, flags, peer, value, ..Descriptor::default() }, b"");
    }
}

pub fn restore<K: Kernel>(row: &Descriptor, kernel: &K) -> Result<K::Fd> {
    kernel.epoll(row.flags & O_CLOEXEC)
}

pub fn restore_watch<K: Kernel>(row: &Descriptor, kernel: &K) -> core::result::Result<(), Failed> {
    kernel
        .watch(row.number, row.peer, row.flags, row.value)
        .map_err(Failed::of_call("cannot let an epoll instance of the frozen process watch a descriptor again"))
}

/// What an epoll instance watches.
struct Watch {
    /// The descriptor's number when it was registered.
    number: u32,
    events: u32,
    data: u64,
    inode: u64,
}

/// Parses the lines `tfd: 5 events: 19 data: 5  pos:0 ino:2c sdev:f`.
fn watches<'a>(open: &'a Open<'_>) -> impl Iterator<Item = Watch> + use<'a> {
    open.fields("tfd").map(|line| {
        let mut words = line.split(|byte| byte.is_ascii_whitespace() || *byte == b':').filter(|word| !word.is_empty());
        let number = parse(words.next().unwrap_or(b""), 10).unwrap_or(0) as u32;
        let mut after = |key: &[u8]| {
            words.find(|word| *word == key);
            words.next().and_then(|word| parse(word, 16)).unwrap_or(0)
        };
        Watch { number, events: after(b"events") as u32, data: after(b"data"), inode: after(b"ino") }
    })
}
