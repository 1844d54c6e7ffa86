//! Finds the pages that differ from a fresh mapping, and writes them.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use image::PAGE;

use crate::sys::File;

/// Gaps of clean pages between written ones up to this size are stored, too, to save mappings (bytes): in anonymous
/// memory as holes, in files as copies.
pub const ANONYMOUS_GAP: u64 = 256 * 1024;
pub const FILE_GAP: u64 = 32 * 1024;

/// Bits of an entry of /proc/self/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const FILE_OR_SHARED: u64 = 1 << 61;
/// MADV_GUARD_INSTALL. Kernels before 6.15 have such pages and do not report them.
const GUARD: u64 = 1 << 58;

/// Reads /proc/self/pagemap.
pub struct PageMap(File);

impl PageMap {
    /// Opens it.
    pub fn open() -> Result<PageMap, i32> {
        File::open(b"/proc/self/pagemap\0", libc::O_RDONLY).map(PageMap)
    }

    /// The runs of pages in `range` that the process wrote: present or swapped, and not a file's. A run includes gaps
    /// of at most `gap` bytes.
    pub fn written(&self, range: Range<u64>, gap: u64) -> Result<Vec<Range<u64>>, i32> {
        self.runs(range, gap, |entry| entry & (PRESENT | SWAPPED) != 0 && entry & FILE_OR_SHARED == 0)
    }

    /// The runs of guard pages in `range`. The kernel reports them as swapped too, but they are unreadable.
    pub fn guards(&self, range: Range<u64>) -> Result<Vec<Range<u64>>, i32> {
        self.runs(range, 0, |entry| entry & GUARD != 0)
    }

    fn runs(&self, range: Range<u64>, gap: u64, counts: impl Fn(u64) -> bool) -> Result<Vec<Range<u64>>, i32> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        let mut entries = [0u8; 32 * 1024];
        let mut page = range.start / PAGE;
        let end = range.end / PAGE;
        while page < end {
            let wanted = ((end - page) as usize * 8).min(entries.len());
            let count = self.0.read_at(&mut entries[..wanted], page * 8)?;
            if count == 0 {
                return Err(libc::EIO);
            }
            for entry in entries[..count].chunks_exact(8) {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(entry);
                let entry = u64::from_le_bytes(bytes);
                if counts(entry) {
                    let start = page * PAGE;
                    match runs.last_mut() {
                        Some(run) if start - run.end <= gap => run.end = start + PAGE,
                        _ => runs.push(start..start + PAGE),
                    }
                }
                page += 1;
            }
        }
        Ok(runs)
    }
}

/// Copies memory of the process into the image; zeroed pages become holes.
pub struct PageWriter<'a> {
    memory: File,
    image: &'a File,
    buffer: Vec<u8>,
}

impl<'a> PageWriter<'a> {
    /// Writes into `image`.
    pub fn new(image: &'a File) -> Result<PageWriter<'a>, i32> {
        let memory = File::open(b"/proc/self/mem\0", libc::O_RDONLY)?;
        let buffer = vec![0; 1 << 20];
        Ok(PageWriter { memory, image, buffer })
    }

    /// Writes the bytes of `range` at `offset` of the image. Reads through /proc/self/mem, which also reaches
    /// unreadable pages.
    pub fn write(&mut self, range: Range<u64>, mut offset: u64) -> Result<(), i32> {
        let mut address = range.start;
        while address < range.end {
            let wanted = ((range.end - address) as usize).min(self.buffer.len());
            let count = self.memory.read_at(&mut self.buffer[..wanted], address)?;
            if count == 0 || count % PAGE as usize != 0 {
                return Err(libc::EFAULT);
            }
            let mut pages = self.buffer[..count].chunks_exact(PAGE as usize).map(is_zero).enumerate();
            let mut start = 0;
            loop {
                // The next hole ends a run that is written at once.
                let hole = pages.by_ref().find(|(_, zero)| *zero).map_or(count / PAGE as usize, |(index, _)| index);
                if hole > start {
                    let bytes = &self.buffer[start * PAGE as usize..hole * PAGE as usize];
                    self.image.write_at(bytes, offset + start as u64 * PAGE)?;
                }
                start = hole + 1;
                if hole * PAGE as usize >= count {
                    break;
                }
            }
            address += count as u64;
            offset += count as u64;
        }
        Ok(())
    }
}

fn is_zero(page: &[u8]) -> bool {
    // Without an early exit inside a chunk, the compiler generates wide loads.
    page.chunks_exact(64).all(|chunk| chunk.iter().fold(0, |all, &byte| all | byte) == 0)
}
