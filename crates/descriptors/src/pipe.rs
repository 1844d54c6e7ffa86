//! Pipes that are empty, and of which this process has each end open once.

use image::{descriptor_kind, Descriptor};
use linux_raw_sys::general::{O_ACCMODE, O_CLOEXEC, O_DIRECT, O_NONBLOCK, O_WRONLY, S_IFIFO};

use crate::open::Open;
use crate::{finish_pair, Captured, Failed, Kernel, Process, WriteRow};

pub fn capture(open: &Open<'_>, all: &[Open<'_>], process: &impl Process, write: &mut WriteRow<'_>) -> Captured {
    if open.file_type() != S_IFIFO || !open.name.starts_with(b"pipe:") {
        return None;
    }
    let writes = |end: &Open<'_>| end.flags() & O_ACCMODE == O_WRONLY;
    let mut others = all.iter().filter(|other| other.inode == open.inode && other.number != open.number);
    let peer = match (others.next(), others.next()) {
        (Some(peer), None) if writes(peer) != writes(open) => peer,
        _ => {
            return Some(Err("is one end of a pipe whose other end is in another process (or which was duplicated); \
                             close it in a before_freeze hook"))
        }
    };
    if writes(open) {
        return Some(Ok(()));
    }
    if process.bytes_waiting(open.number) != Some(0) {
        return Some(Err("is a pipe with unread bytes in it; read them before the freeze"));
    }
    let row = open.row(descriptor_kind::PIPE_READ, process.pipe_capacity(open.number));
    write(Descriptor { peer: peer.number, ..row }, b"");
    write(peer.row(descriptor_kind::PIPE_WRITE, 0), b"");
    Some(Ok(()))
}

pub fn restore<K: Kernel>(read: &Descriptor, write: Option<Descriptor>, kernel: &K) -> Result<(), Failed> {
    let write = write
        .filter(|row| row.kind == descriptor_kind::PIPE_WRITE && row.number == read.peer)
        .ok_or(Failed { text: "the image is damaged: a pipe without a writing end", errno: None })?;
    let failed = Failed::of_call("cannot make a pipe of the frozen process again");
    let made = kernel.pipe(O_CLOEXEC).map_err(&failed)?;
    finish_pair(made, [read, &write], O_NONBLOCK | O_DIRECT, failed, kernel)?;
    if read.value != 0 {
        kernel.set_pipe_capacity(read.number, read.value);
    }
    Ok(())
}
