//! A file's bytes as memory.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::Mmap;

/// A file as it was when it was mapped, read-only and shared with every other process that maps it.
pub(crate) struct Mapped(Mmap);

impl Mapped {
    /// Maps the whole of a file.
    pub fn new(file: &File) -> io::Result<Self> {
        // SAFETY: the bytes below the end of an archive do not change as long as the file lives: writers append, or put a new
        // file in its place (docs/archive-format.md). Who breaks that rule is its owner or root, as was checked, and could
        // change this process by other means.
        unsafe { Mmap::map(file) }.map(Mapped)
    }
}

impl Deref for Mapped {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.0
    }
}
