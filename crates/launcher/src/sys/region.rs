//! Memory of the launcher's own, at places of the reserved range. Who holds a region is the only one who has it, and what is borrowed
//! from it ends before it does.

use core::slice;

use linux_raw_sys::errno::EEXIST;
use linux_raw_sys::general::{PROT_READ, PROT_WRITE};

use super::{call, raw, unmap, Errno, Fd, Result};

/// A mapping that this value alone knows; it is given back when the value is dropped.
struct Region {
    start: u64,
    size: usize,
}

impl Region {
    /// Maps memory at a place where there is none: what is mapped already stays, and is the error.
    fn map(start: u64, size: u64, protection: u32, flags: u32, fd: Option<Fd>, offset: u64) -> Result<Region> {
        let fd = fd.map_or(usize::MAX, |fd| fd.0 as usize);
        let flags = (raw::MAP_PRIVATE | raw::MAP_FIXED_NOREPLACE | flags) as usize;
        let arguments = [start as usize, size as usize, protection as usize, flags, fd, offset as usize];
        // SAFETY: the mapping is private, and replaces nothing.
        match unsafe { call(raw::__NR_mmap, &arguments) }? {
            place if place == start as usize => Ok(Region { start, size: size as usize }),
            // A kernel that does not know the flag takes the place for a wish.
            other => {
                drop(Region { start: other as u64, size: size as usize });
                Err(Errno(EEXIST))
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the range is mapped readable for as long as this value lives.
        unsafe { slice::from_raw_parts(self.start as *const u8, self.size) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the range is this value's own, and nothing borrows from it any more.
        let _ = unsafe { unmap(self.start, self.size as u64) };
    }
}

/// Zeros at first, for any use.
pub struct Memory(Region);

impl Memory {
    /// Maps memory at this place of the reserved range.
    pub fn map(place: u64, size: u64) -> Result<Memory> {
        Region::map(place, size, PROT_READ | PROT_WRITE, raw::MAP_ANONYMOUS, None, 0).map(Memory)
    }

    /// What it holds.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// What it holds, to be written to.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the range is mapped writable for as long as this value lives, which is borrowed.
        unsafe { slice::from_raw_parts_mut(self.0.start as *mut u8, self.0.size) }
    }

    /// The same, for as long as the launcher runs.
    pub fn leak(self) -> &'static mut [u8] {
        let memory = core::mem::ManuallyDrop::new(self);
        // SAFETY: the range stays mapped, and nobody else has it.
        unsafe { slice::from_raw_parts_mut(memory.0.start as *mut u8, memory.0.size) }
    }
}

/// A part of a file, to be read. The file has all of it, and who may write to it is trusted (see `docs/threat-model.md`).
pub struct FilePart(Region);

impl FilePart {
    /// Maps `size` bytes from `offset` on at this place of the reserved range.
    pub fn map(place: u64, size: u64, file: Fd, offset: u64) -> Result<FilePart> {
        Region::map(place, size, PROT_READ, 0, Some(file), offset).map(FilePart)
    }

    /// What it holds.
    pub fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    /// Where it lies.
    pub fn start(&self) -> u64 {
        self.0.start
    }

    /// What it holds, for as long as the launcher runs.
    pub fn leak(self) -> &'static [u8] {
        let part = core::mem::ManuallyDrop::new(self);
        // SAFETY: the range stays mapped.
        unsafe { slice::from_raw_parts(part.0.start as *const u8, part.0.size) }
    }
}
