//! The memory of decoded code: allocated from one end to the other, and never freed.
//!
//! Code of modules nearly always lives as long as the process. Memory taken in one piece needs no allocator's bookkeeping, and in huge
//! pages the kernel is entered only once for each 2 MiB.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr::null_mut;

use rustix::mm::{madvise, mmap_anonymous, Advice, MapFlags, ProtFlags};
use rustix::process::{getrlimit, Resource};

/// The size of a huge page, and the smallest unit that the kernel hands out (bytes).
const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;
/// The addresses that are reserved at once (bytes). The unused part takes no memory.
const AREA: usize = 32 << 20;
/// The same if memory is limited: reserved addresses count there.
const LIMITED: usize = 1 << 20;
/// Where objects start (bytes): all of their fields are at most as large.
pub const ALIGNMENT: usize = 8;

/// The part of an area that is still free.
pub struct Memory {
    next: usize,
    end: usize,
    /// The value of `next` when memory was last returned.
    trimmed: usize,
}

impl Memory {
    pub const fn new() -> Self {
        Self { next: 0, end: 0, trimmed: 0 }
    }

    /// `size` bytes, all zero, at a multiple of `ALIGNMENT`; `None` if the kernel has none.
    pub fn take(&mut self, size: usize) -> Option<*mut u8> {
        let size = size.checked_next_multiple_of(ALIGNMENT)?;
        if size > self.end - self.next {
            self.refill(size)?;
        }
        let start = self.next;
        self.next += size;
        Some(start as *mut u8)
    }

    /// Whether more than a huge page was handed out since the last [`Memory::trim`].
    pub fn has_grown(&self) -> bool {
        !(self.trimmed..self.trimmed + HUGE).contains(&self.next)
    }

    /// Returns to the kernel what it has handed out in advance: the rest of the last huge page.
    pub fn trim(&mut self) {
        self.trimmed = self.next;
        let start = self.next.next_multiple_of(PAGE);
        let end = self.next.next_multiple_of(HUGE).min(self.end);
        if start < end {
            // SAFETY: memory of this process that holds zeros, and holds zeros afterwards.
            let _ = unsafe { madvise(start as *mut c_void, end - start, Advice::LinuxDontNeed) };
        }
    }

    fn refill(&mut self, size: usize) -> Option<()> {
        let is_limited = [Resource::As, Resource::Data].into_iter().any(|of| getrlimit(of).current.is_some());
        let length = size.max(if is_limited { LIMITED } else { AREA }).checked_next_multiple_of(HUGE)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let mapped =
            unsafe { mmap_anonymous(null_mut(), length + HUGE, ProtFlags::READ | ProtFlags::WRITE, flags) }.ok()?;
        self.next = (mapped as usize).next_multiple_of(HUGE);
        self.end = self.next + length;
        if !is_limited {
            // SAFETY: a part of that mapping, which nothing else uses. Where there are no huge pages, ordinary ones do.
            let _ = unsafe { madvise(self.next as *mut c_void, length, Advice::LinuxHugepage) };
        }
        Some(())
    }
}
