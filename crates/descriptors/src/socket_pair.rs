//! Both ends of socketpair(2) in this process, each open once, with nothing in between: event loops wake themselves by one.

use image::{descriptor_kind, Descriptor};
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK, S_IFSOCK};

use crate::open::Open;
use crate::{finish_pair, Captured, Failed, Kernel, Process, WriteRow};

/// AF_UNIX, see socket(2).
const UNIX: u32 = 1;

pub fn capture(open: &Open<'_>, all: &[Open<'_>], process: &impl Process, write: &mut WriteRow<'_>) -> Captured {
    if open.file_type() != S_IFSOCK {
        return None;
    }
    let peer = process.socket_peer(open.inode)?;
    let with_inode = |inode| all.iter().filter(move |it| it.inode == inode && it.file_type() == S_IFSOCK);
    let (Some(peer), 1, 1) = (with_inode(peer).next(), with_inode(peer).count(), with_inode(open.inode).count()) else {
        return Some(Err("is a unix socket whose peer is in another process, or which was duplicated; \
                         close it in a before_freeze hook"));
    };
    if [open, peer].iter().any(|end| process.bytes_waiting(end.number) != Some(0)) {
        return Some(Err("is a unix socket with unread bytes in it; read them before the freeze"));
    }
    let (Some([UNIX, kind, 0]), Some([UNIX, _, 0])) =
        (process.as_new_socket(open.number), process.as_new_socket(peer.number))
    else {
        return Some(Err("is a unix socket whose options the program has set; \
                         close it in a before_freeze hook, or open it after the freeze point"));
    };
    // Each pair is written once, with its lower number.
    if open.number < peer.number {
        let row = open.row(descriptor_kind::SOCKET_PAIR, kind.into());
        write(Descriptor { peer: peer.number, ..row }, b"");
        write(peer.row(descriptor_kind::SOCKET_PEER, 0), b"");
    }
    Some(Ok(()))
}

pub fn restore<K: Kernel>(row: &Descriptor, peer: Option<Descriptor>, kernel: &K) -> Result<(), Failed> {
    let peer = peer
        .filter(|peer| peer.kind == descriptor_kind::SOCKET_PEER && peer.number == row.peer)
        .ok_or(Failed { text: "the image is damaged: a socket without its peer", errno: None })?;
    let failed = Failed::of_call("cannot make a pair of sockets of the frozen process again");
    let made = kernel.socket_pair([UNIX, row.value as u32, 0], O_CLOEXEC).map_err(&failed)?;
    finish_pair(made, [row, &peer], O_NONBLOCK, failed, kernel)
}
