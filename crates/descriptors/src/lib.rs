//! The kernel objects behind open descriptors: how the freezer records each, and how the launcher makes it again.
//!
//! Each module is one kind of object, with both sides beside each other:
//!
//! - `capture` looks at a descriptor. Where it is of this kind, it writes the rows from which a thaw makes it again, or
//!   says why none can.
//! - `restore` makes it again from its row, with the system calls of a [`Kernel`].
//!
//! To add a kind: its number and meaning in crates/image descriptor_records.rs (`descriptor_kind`), its module here, and its lines in
//! [`capture`], [`restore`] and [`name`]. A system call that no other kind needs is a function of [`Kernel`], which
//! crates/launcher objects.rs answers; what only the process can tell is one of [`Process`], see crates/freezer descriptors.rs.
#![no_std]
#![forbid(unsafe_code)]

use image::{descriptor_kind, Descriptor};
use inputs::Errno;

mod epoll;
mod eventfd;
mod file;
mod inotify;
mod open;
mod pidfd;
mod pipe;
mod signalfd;
mod socket;
mod socket_pair;
mod timerfd;

pub use open::Open;

/// What a system call returns.
pub type Result<T> = core::result::Result<T, Errno>;

/// Why a descriptor cannot be made again, and what helps. It begins with a verb, as it continues a sentence that begins with the descriptor.
pub type Obstacle = &'static str;

/// What `capture` of a module returns: None for a descriptor of another kind.
type Captured = Option<core::result::Result<(), Obstacle>>;

/// Takes each row and the path that belongs to it.
pub type WriteRow<'a> = dyn FnMut(Descriptor, &[u8]) + 'a;

/// What only the process itself can tell of its descriptors.
pub trait Process {
    /// How much can be read from a pipe or socket (bytes); None where the kernel does not say.
    fn bytes_waiting(&self, number: u32) -> Option<u32>;
    /// The capacity of a pipe (bytes).
    fn pipe_capacity(&self, number: u32) -> u64;
    /// Whether `watched` still refers to the file that an epoll instance has registered by that number; true if the kernel cannot tell.
    fn is_watched(&self, epoll: u32, watched: u32) -> bool;
    /// The process that was booted; the frozen one is its child.
    fn booted_pid(&self) -> u64;
    /// The inode of the socket that one call of socketpair(2) has made with the socket of this inode. None for other sockets.
    fn socket_peer(&self, inode: u64) -> Option<u64>;
    /// Family, type and protocol of a socket if its options are those of a new socket; None if not.
    fn as_new_socket(&self, number: u32) -> Option<[u32; 3]>;
    /// Whether a socket has neither an address nor a peer, and does not listen.
    fn is_unused_socket(&self, number: u32) -> bool;
}

/// Records all these descriptors of a process: rows go to `write`, those that cannot be made again to `refuse`, with the
/// obstacle where a module knows one.
pub fn capture<P: Process>(
    all: &[Open<'_>],
    process: &P,
    write: &mut WriteRow<'_>,
    refuse: &mut dyn FnMut(&Open<'_>, Option<Obstacle>),
) {
    for open in all {
        let captured = file::capture(open, write)
            .or_else(|| pipe::capture(open, all, process, write))
            .or_else(|| eventfd::capture(open, write))
            .or_else(|| epoll::capture(open, all, process, write))
            .or_else(|| timerfd::capture(open, write))
            .or_else(|| signalfd::capture(open, write))
            .or_else(|| pidfd::capture(open, process, write))
            .or_else(|| inotify::capture(open, write))
            .or_else(|| socket_pair::capture(open, all, process, write))
            .or_else(|| socket::capture(open, process, write));
        match captured {
            Some(Ok(())) => {}
            Some(Err(obstacle)) => refuse(open, Some(obstacle)),
            None => refuse(open, None),
        }
    }
    // What is watched has to be there first.
    all.iter().for_each(|open| epoll::capture_watches(open, write));
}

/// The system calls that make descriptors again. New descriptors are closed when a program is executed.
pub trait Kernel {
    /// An open descriptor that has no number of the frozen process yet.
    type Fd: Copy;

    /// The number that the kernel has given.
    fn number(&self, descriptor: Self::Fd) -> u32;
    /// Gives a descriptor this number, with `O_CLOEXEC` of `flags`.
    fn renumber(&self, descriptor: Self::Fd, number: u32, flags: u32) -> Result<()>;
    /// Gives a descriptor a number above this one.
    fn renumber_above(&self, descriptor: Self::Fd, number: u32) -> Result<Self::Fd>;
    /// Sets `O_NONBLOCK`, `O_DIRECT` and the like.
    fn set_status_flags(&self, number: u32, flags: u32) -> Result<()>;
    /// openat(2) of an absolute path, which ends with a NUL.
    fn open(&self, path: &[u8], flags: u32) -> Result<Self::Fd>;
    /// lseek(2) from the start.
    fn seek(&self, descriptor: Self::Fd, offset: u64) -> Result<()>;
    /// pipe2(2): reading end, writing end.
    fn pipe(&self, flags: u32) -> Result<[Self::Fd; 2]>;
    /// Sets the capacity of a pipe (bytes); a smaller limit of the system is no failure.
    fn set_pipe_capacity(&self, number: u32, capacity: u64);
    /// eventfd2(2).
    fn eventfd(&self, count: u32, flags: u32) -> Result<Self::Fd>;
    /// epoll_create1(2).
    fn epoll(&self, flags: u32) -> Result<Self::Fd>;
    /// epoll_ctl(2) with EPOLL_CTL_ADD.
    fn watch(&self, epoll: u32, watched: u32, events: u32, data: u64) -> Result<()>;
    /// timerfd_create(2).
    fn timerfd(&self, clock: u32, flags: u32) -> Result<Self::Fd>;
    /// signalfd4(2) with a new descriptor.
    fn signalfd(&self, mask: u64, flags: u32) -> Result<Self::Fd>;
    /// pidfd_open(2) of this process.
    fn own_pidfd(&self, flags: u32) -> Result<Self::Fd>;
    /// inotify_init1(2).
    fn inotify(&self, flags: u32) -> Result<Self::Fd>;
    /// socket(2).
    fn socket(&self, family_type_protocol: [u32; 3], flags: u32) -> Result<Self::Fd>;
    /// socketpair(2).
    fn socket_pair(&self, family_type_protocol: [u32; 3], flags: u32) -> Result<[Self::Fd; 2]>;
}

/// A descriptor that could not be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed {
    /// What was tried.
    pub text: &'static str,
    /// What the kernel said; None for a row that cannot be right.
    pub errno: Option<Errno>,
}

impl Failed {
    fn of_call(text: &'static str) -> impl Fn(Errno) -> Failed {
        move |errno| Failed { text, errno: Some(errno) }
    }
}

/// Makes the descriptor of a row again. `path` is that of the row, with a NUL behind it; `next` returns the row behind it.
/// In a rehearsal (`is_rehearsal`) files are for reading only, whatever the program has opened them for.
pub fn restore<K: Kernel>(
    row: &Descriptor,
    path: &[u8],
    next: impl FnOnce() -> Option<Descriptor>,
    is_rehearsal: bool,
    kernel: &K,
) -> core::result::Result<(), Failed> {
    let made = match row.kind {
        descriptor_kind::FILE => return file::restore(row, path, is_rehearsal, kernel),
        descriptor_kind::PIPE_READ => return pipe::restore(row, next(), kernel),
        descriptor_kind::SOCKET_PAIR => return socket_pair::restore(row, next(), kernel),
        // Made with the row before.
        descriptor_kind::PIPE_WRITE | descriptor_kind::SOCKET_PEER => return Ok(()),
        descriptor_kind::WATCH => return epoll::restore_watch(row, kernel),
        descriptor_kind::EPOLL => epoll::restore(row, kernel),
        descriptor_kind::EVENTFD => eventfd::restore(row, kernel),
        descriptor_kind::TIMERFD => timerfd::restore(row, kernel),
        descriptor_kind::SIGNALFD => signalfd::restore(row, kernel),
        descriptor_kind::PIDFD => pidfd::restore(row, kernel),
        descriptor_kind::INOTIFY => inotify::restore(row, kernel),
        descriptor_kind::SOCKET => socket::restore(row, kernel),
        _ => return Err(Failed { text: "the image is damaged: it has a descriptor of an unknown kind", errno: None }),
    };
    let made = made.map_err(Failed::of_call("cannot make a descriptor of the frozen process again"))?;
    give_number(made, row, kernel)
}

/// What a row is about, for people.
pub fn name(kind: u32) -> &'static str {
    match kind {
        descriptor_kind::FILE => "file",
        descriptor_kind::EVENTFD => "eventfd",
        descriptor_kind::PIPE_READ => "pipe (reading end)",
        descriptor_kind::PIPE_WRITE => "pipe (writing end)",
        descriptor_kind::EPOLL => "epoll",
        descriptor_kind::WATCH => "watched by epoll",
        descriptor_kind::SOCKET_PAIR => "socket of a pair",
        descriptor_kind::SOCKET_PEER => "socket of a pair (its peer)",
        descriptor_kind::SOCKET => "new socket",
        descriptor_kind::TIMERFD => "timerfd",
        descriptor_kind::SIGNALFD => "signalfd",
        descriptor_kind::PIDFD => "pidfd of the process itself",
        descriptor_kind::INOTIFY => "inotify instance",
        _ => "unknown",
    }
}

/// Gives a descriptor the number of its row.
fn give_number<K: Kernel>(made: K::Fd, row: &Descriptor, kernel: &K) -> core::result::Result<(), Failed> {
    kernel.renumber(made, row.number, row.flags).map_err(|errno| match errno {
        // The kernel's word for a number above the limit.
        Errno(linux_raw_sys::errno::EBADF) => Failed {
            text: "the limit of open files (ulimit -n) is too low for the frozen process' descriptors",
            errno: None,
        },
        _ => Failed { text: "cannot give a descriptor of the frozen process its number", errno: Some(errno) },
    })
}

/// Gives both ends of a pipe or pair the numbers of their rows, and those flags of them that are in `status_flags`.
/// `failed` says what cannot be made where a flag cannot be set.
fn finish_pair<K: Kernel>(
    made: [K::Fd; 2],
    rows: [&Descriptor; 2],
    status_flags: u32,
    failed: impl Fn(Errno) -> Failed,
    kernel: &K,
) -> core::result::Result<(), Failed> {
    let [first, mut second] = made;
    // The kernel may have given the second end the number that the first one needs.
    if kernel.number(second) == rows[0].number {
        second = kernel
            .renumber_above(second, rows[0].number.max(rows[1].number))
            .map_err(Failed::of_call("cannot give a descriptor of the frozen process its number"))?;
    }
    give_number(first, rows[0], kernel)?;
    give_number(second, rows[1], kernel)?;
    rows.into_iter().try_for_each(|row| kernel.set_status_flags(row.number, row.flags & status_flags).map_err(&failed))
}

#[cfg(test)]
mod tests;
