//! The system calls by which descriptors of the frozen process are made again, see crates/descriptors.
#![allow(unsafe_code)]

use descriptors::{Kernel, Result};
use linux_raw_sys::general::{self as raw, __NR_epoll_create1, __NR_epoll_ctl, __NR_eventfd2, __NR_fcntl};
use linux_raw_sys::general::{__NR_inotify_init1, __NR_lseek, __NR_pidfd_open, __NR_pipe2, __NR_signalfd4};
use linux_raw_sys::general::{__NR_socket, __NR_socketpair, __NR_timerfd_create};

use crate::sys::{self, call, Fd};

/// The kernel under this process.
pub struct Running;

/// A call that involves no memory and returns a descriptor.
fn make(number: u32, arguments: &[usize]) -> Result<Fd> {
    // SAFETY: the callers pass numbers to calls that take numbers.
    unsafe { call(number, arguments) }.map(|fd| Fd(fd as u32))
}

/// A call that involves no memory.
fn set(number: u32, arguments: &[usize]) -> Result<()> {
    make(number, arguments).map(drop)
}

impl Kernel for Running {
    type Fd = Fd;

    fn number(&self, descriptor: Fd) -> u32 {
        descriptor.0
    }

    fn renumber(&self, descriptor: Fd, number: u32, flags: u32) -> Result<()> {
        sys::renumber(descriptor, number, flags)
    }

    fn renumber_above(&self, descriptor: Fd, number: u32) -> Result<Fd> {
        sys::duplicate_above(descriptor, number)
    }

    fn set_status_flags(&self, number: u32, flags: u32) -> Result<()> {
        set(__NR_fcntl, &[number as usize, raw::F_SETFL as usize, flags as usize])
    }

    fn open(&self, path: &[u8], flags: u32) -> Result<Fd> {
        sys::open(path, flags)
    }

    fn seek(&self, descriptor: Fd, offset: u64) -> Result<()> {
        set(__NR_lseek, &[descriptor.0 as usize, offset as usize, raw::SEEK_SET as usize])
    }

    fn pipe(&self, flags: u32) -> Result<[Fd; 2]> {
        let mut ends = [0; 2];
        // SAFETY: the kernel writes two descriptors.
        unsafe { call(__NR_pipe2, &[(&raw mut ends) as usize, flags as usize]) }?;
        Ok(ends.map(Fd))
    }

    fn set_pipe_capacity(&self, number: u32, capacity: u64) {
        let _ = set(__NR_fcntl, &[number as usize, raw::F_SETPIPE_SZ as usize, capacity as usize]);
    }

    fn eventfd(&self, count: u32, flags: u32) -> Result<Fd> {
        make(__NR_eventfd2, &[count as usize, flags as usize])
    }

    fn epoll(&self, flags: u32) -> Result<Fd> {
        make(__NR_epoll_create1, &[flags as usize])
    }

    fn watch(&self, epoll: u32, watched: u32, events: u32, data: u64) -> Result<()> {
        let event = raw::epoll_event { events, data };
        let arguments = [epoll as usize, raw::EPOLL_CTL_ADD as usize, watched as usize, &raw const event as usize];
        // SAFETY: the kernel reads the structure.
        unsafe { call(__NR_epoll_ctl, &arguments) }.map(drop)
    }

    fn timerfd(&self, clock: u32, flags: u32) -> Result<Fd> {
        make(__NR_timerfd_create, &[clock as usize, flags as usize])
    }

    fn signalfd(&self, mask: u64, flags: u32) -> Result<Fd> {
        let arguments = [usize::MAX, &raw const mask as usize, size_of_val(&mask), flags as usize];
        // SAFETY: the kernel reads the mask.
        unsafe { call(__NR_signalfd4, &arguments) }.map(|fd| Fd(fd as u32))
    }

    fn own_pidfd(&self, flags: u32) -> Result<Fd> {
        // SAFETY: the call cannot fail, and involves no memory.
        let pid = unsafe { call(raw::__NR_getpid, &[]) }?;
        make(__NR_pidfd_open, &[pid, flags as usize])
    }

    fn inotify(&self, flags: u32) -> Result<Fd> {
        make(__NR_inotify_init1, &[flags as usize])
    }

    fn socket(&self, [family, kind, protocol]: [u32; 3], flags: u32) -> Result<Fd> {
        make(__NR_socket, &[family as usize, (kind | flags) as usize, protocol as usize])
    }

    fn socket_pair(&self, [family, kind, protocol]: [u32; 3], flags: u32) -> Result<[Fd; 2]> {
        let mut ends = [0; 2];
        let arguments = [family as usize, (kind | flags) as usize, protocol as usize, (&raw mut ends) as usize];
        // SAFETY: the kernel writes two descriptors.
        unsafe { call(__NR_socketpair, &arguments) }?;
        Ok(ends.map(Fd))
    }
}
