//! Open descriptors, which crates/descriptors records and makes again.

use crate::Text;
use record::record;

record! {
    /// An open descriptor that a thaw re-creates.
    pub struct Descriptor {
        /// Its number.
        pub number: u32,
        /// One of [`descriptor_kind`].
        pub kind: u32,
        /// Open flags (O_CLOEXEC included); of WATCH the events.
        pub flags: u32,
        /// The number of the other end, or of what is watched; otherwise 0.
        pub peer: u32,
        /// What the kind says; for files the offset, for registrations the data.
        pub value: u64,
        /// Path of a file or device.
        pub path: Text,
    }
}

/// The kind of a descriptor.
pub mod descriptor_kind {
    /// A regular file or a plain device, opened again by path.
    pub const FILE: u32 = 1;
    /// An eventfd; `value` is its count, and bit 32 says whether it is a semaphore (EFD_SEMAPHORE).
    pub const EVENTFD: u32 = 2;
    /// The reading end of an empty pipe, with `peer` the writing end; `flags` are the reading end's.
    pub const PIPE_READ: u32 = 3;
    /// The writing end of the pipe in the row before. Only its flags are set.
    pub const PIPE_WRITE: u32 = 4;
    /// An epoll instance.
    pub const EPOLL: u32 = 5;
    /// No descriptor: the epoll instance `number` watches `peer`. These rows come last.
    pub const WATCH: u32 = 6;
    /// One end of a pair of unix sockets, with `peer` the other and `value` its type (SOCK_STREAM ...).
    pub const SOCKET_PAIR: u32 = 7;
    /// The other end, in the row behind it.
    pub const SOCKET_PEER: u32 = 8;
    /// A socket without address, peer and options; `value` has family, type and protocol, of 16 bits each.
    pub const SOCKET: u32 = 9;
    /// A timerfd that does not run; `value` is its clock.
    pub const TIMERFD: u32 = 10;
    /// A signalfd; `value` is its mask.
    pub const SIGNALFD: u32 = 11;
    /// The pidfd of the process itself.
    pub const PIDFD: u32 = 12;
    /// An inotify instance that watches nothing.
    pub const INOTIFY: u32 = 13;
}
