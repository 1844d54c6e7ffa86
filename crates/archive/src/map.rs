//! A file's bytes as memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::{Mmap, MmapOptions, UncheckedAdvice};

/// Pages are at least this large (bytes). The kernel rounds to its own.
const PAGE: usize = 4096;

/// A file as of its mapping, read-only and shared with every other process that maps it.
pub(crate) struct Mapped(Mmap);

impl Mapped {
    /// Maps the first `size` bytes of a file.
    pub fn new(file: &File, size: u64) -> io::Result<Self> {
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge)?;
        // SAFETY: the bytes below the end of an archive neither change nor go away as long as the file lives: writers append, or
        // put a new file in its place (docs/internals/archive-format.md). Only its owner or root can break that rule, as was
        // checked, and they could change this process by other means.
        unsafe { MmapOptions::new().len(size).map(file) }.map(Mapped)
    }

    /// Drops the whole pages of a part from this process' memory (MADV_DONTNEED). A later read loads them from the file again.
    pub fn release(&self, part: &[u8]) {
        let Some(start) = part.as_ptr().addr().checked_sub(self.0.as_ptr().addr()) else { return };
        let (first, end) = (start.next_multiple_of(PAGE), (start + part.len()) / PAGE * PAGE);
        if start + part.len() <= self.0.len() && first < end {
            // SAFETY: the mapping is of a file, shared, and never written: the same bytes come back. A failure changes nothing.
            let _ = unsafe { self.0.unchecked_advise_range(UncheckedAdvice::DontNeed, first, end - first) };
        }
    }
}

impl Deref for Mapped {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}
