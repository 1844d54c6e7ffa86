//! The vdso: the one that the kernel gave this process, and what the frozen process gets.
//!
//! Where it is the one that the image was made with, it moves to its old place, with the kernel's data pages in front of it. Otherwise, or where
//! the kernel does not let it move, it stays, and the frozen process gets a copy of its own vdso, whose functions lead to this one
//! ([`vdso::redirect`]).
#![allow(unsafe_code)]

use core::slice;

use image::{mapping_kind, reserved, Mapping, Platform, Section, Tables, RESERVED_END};
use linux_raw_sys::general::{O_CLOEXEC, O_RDONLY, PROT_READ, PROT_WRITE};
use vdso::{redirect, Running};

use crate::arch;
use crate::reason::Reason;
use crate::start::Start;
use crate::sys::{self, Errno, Fd, Memory, MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE};

/// The vvar and vdso group of this process; all zeros where there is none.
#[derive(Clone, Copy, Default)]
pub struct Vdso {
    /// First address of the group.
    start: u64,
    /// Where the vdso starts, its last part.
    elf: u64,
    /// Address after the last byte.
    end: u64,
    /// Whether the frozen process gets this one, as its own.
    is_own: bool,
    was_moved: bool,
    /// Of one that is not its own, the parts: the kernel moves none in pieces.
    parts: [(u64, u64); PARTS],
}

/// More parts than kernels have: vvar, vvar_vclock and vdso.
const PARTS: usize = 8;

/// Room for the list of what is mapped in the launcher: a dozen lines, some with the image's path (bytes).
const MAPS_ROOM: u64 = 128 * 1024;

impl Vdso {
    /// Looks which one the kernel has mapped.
    pub fn find(start: &Start, tables: &Tables<'static>) -> Result<Vdso, Reason> {
        let rows = tables.rows::<Mapping>(Section::Mappings).map_err(Reason::image)?;
        let Some(last) = rows.clone().filter(|row| row.kind == mapping_kind::VDSO).last() else {
            // A process without one calls none.
            return Ok(Vdso { is_own: true, ..Vdso::default() });
        };
        let is_copy = |row: Mapping| (row.kind, row.start, row.end) == (mapping_kind::VDSO_COPY, last.start, last.end);
        if !rows.clone().any(is_copy) {
            return Err(Reason::new("the image is damaged: it has no copy of its vdso"));
        }
        let recorded: Platform = tables.one(Section::Platform).map_err(Reason::image)?;
        if start.vdso == 0 {
            return Ok(Vdso::default());
        }
        let size = last.end - last.start;
        if size == recorded.vdso_size && start.vdso >= last.offset && has_digest(start.vdso, size, recorded.vdso) {
            let (group, end) = (start.vdso - last.offset, start.vdso + size);
            return Ok(Vdso { start: group, elf: start.vdso, end, is_own: true, ..Vdso::default() });
        }
        Vdso::mapped(start.vdso)
    }

    /// The group as the kernel lists it.
    fn mapped(elf: u64) -> Result<Vdso, Reason> {
        let failed = |errno| Reason::new("cannot read where this kernel's vdso is").errno(errno);
        let mut memory = Memory::map(reserved::PROBE, MAPS_ROOM).map_err(failed)?;
        let file = sys::open(b"/proc/self/maps\0", O_RDONLY | O_CLOEXEC).map_err(failed)?;
        let read = read_all(file, memory.bytes_mut());
        sys::close(file);
        let size = read.map_err(failed)?;
        let mut found = Vdso { start: elf, elf, ..Vdso::default() };
        let is_part = |line: &&[u8]| line.ends_with(b"[vdso]") || line.windows(5).any(|word| word == b"[vvar");
        let lines = memory.bytes()[..size].split(|&byte| byte == b'\n').filter(is_part);
        for (part, (start, end)) in found.parts.iter_mut().zip(lines.filter_map(range)) {
            *part = (start, end);
            found.start = found.start.min(start);
            found.end = found.end.max(end);
        }
        if found.end <= elf {
            return Err(Reason::new("this kernel does not show where its vdso is"));
        }
        Ok(found)
    }

    /// Where the vdso is that the frozen process calls, if it is not its own.
    pub fn other(&self) -> Option<u64> {
        (!self.is_own && self.elf != 0).then_some(self.elf)
    }

    /// First and last address of what must not be unmapped; the same where there is nothing.
    pub fn range(&self) -> (u64, u64) {
        (self.start, self.end)
    }

    /// Moves it out of the way of the frozen process' memory.
    pub fn make_way(&mut self, mappings: impl Iterator<Item = Mapping> + Clone) -> Result<(), Reason> {
        let is_in_the_way = |row: Mapping| row.start < self.end && self.start < row.end;
        if self.start == self.end || (self.start >= RESERVED_END && !mappings.clone().any(is_in_the_way)) {
            return Ok(());
        }
        let place = if self.is_own { reserved::VDSO } else { reserved::OTHER_VDSO };
        if self.is_own {
            for part in mappings.filter(|row| row.kind == mapping_kind::VDSO) {
                // SAFETY: nothing uses the vdso before the jump, and the place is reserved for it.
                unsafe { sys::move_to(self.start + part.offset, part.end - part.start, place + part.offset) }
                    .map_err(stays)?;
            }
        } else {
            for (start, end) in self.parts.iter().filter(|(_, end)| *end != 0) {
                let to = place + (start - self.start);
                // SAFETY: as above.
                unsafe { sys::move_to(*start, end - start, to) }.map_err(stays)?;
            }
        }
        (self.elf, self.end) = (place + (self.elf - self.start), place + (self.end - self.start));
        self.start = place;
        Ok(())
    }

    /// Moves a part to its old place; with the first one all of them, where the kernel moves several mappings in one call (Linux 6.17). Where
    /// it does not let them move (they may be sealed), the copy serves.
    ///
    /// # Safety
    /// The places of all parts belong to the vdso of the frozen process, and nothing uses it before the jump.
    pub unsafe fn bring(&mut self, part: &Mapping) -> Result<(), Reason> {
        if !self.is_own {
            return Ok(());
        }
        // SAFETY: passed on to the caller.
        unsafe {
            self.was_moved |= part.offset == 0 && sys::move_to(self.start, self.end - self.start, part.start).is_ok();
            if self.was_moved {
                return Ok(());
            }
            match sys::move_to(self.start + part.offset, part.end - part.start, part.start) {
                Err(_) if part.offset == 0 => self.is_own = false,
                result => result.map_err(stays)?,
            }
        }
        Ok(())
    }

    /// Makes the copy, if it is needed.
    ///
    /// # Safety
    /// Its place belongs to the frozen process.
    pub unsafe fn copy(&self, file: Fd, row: &Mapping) -> Result<(), Reason> {
        if self.is_own {
            return Ok(());
        }
        let failed = |errno| Reason::new("cannot map the frozen process' vdso").errno(errno);
        let size = row.end - row.start;
        let running = (self.elf != 0).then(|| Running {
            // SAFETY: the kernel has mapped the vdso here.
            bytes: unsafe { slice::from_raw_parts(self.elf as *const u8, (self.end - self.elf) as usize) },
            address: self.elf,
        });
        // SAFETY: the caller answers for the place, which nobody else knows before the jump.
        unsafe {
            sys::map(row.start, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, None, 0)
                .map_err(failed)?;
            sys::read_into(file, row.start, size, row.offset).map_err(failed)?;
            let bytes = slice::from_raw_parts_mut(row.start as *mut u8, size as usize);
            redirect(bytes, running).map_err(|error| {
                Reason::new(match error {
                    vdso::Error::Damaged => "the image is damaged: its copy of the vdso",
                    vdso::Error::NoRoom => "stale: the image was made under another kernel, whose vdso has too little room for jumps to this one",
                })
            })?;
            arch::code_was_written(bytes);
            sys::protect(row.start, size, row.protection).map_err(failed)
        }
    }
}

fn stays(errno: Errno) -> Reason {
    Reason::new("this kernel does not let the vdso move").errno(errno)
}

/// Reads a file of the kernel's from its start to its end.
fn read_all(file: Fd, buffer: &mut [u8]) -> sys::Result<usize> {
    let mut size = 0;
    loop {
        match sys::read_at(file, &mut buffer[size..], size as u64)? {
            0 => return Ok(size),
            count => size += count,
        }
    }
}

/// The addresses at the start of a line of /proc/self/maps.
fn range(line: &[u8]) -> Option<(u64, u64)> {
    let mut numbers = line.split(|&byte| byte == b' ').next()?.split(|&byte| byte == b'-').map(|digits| {
        let digits = core::str::from_utf8(digits).ok()?;
        u64::from_str_radix(digits, 16).ok()
    });
    Some((numbers.next()??, numbers.next()??))
}

/// Whether the kernel's vdso has at least this size, and its first `size` bytes have this digest.
fn has_digest(vdso: u64, size: u64, digest: [u8; 16]) -> bool {
    // SAFETY: the kernel maps the vdso here, which starts with its header.
    let header = unsafe { slice::from_raw_parts(vdso as *const u8, vdso::HEADER) };
    if vdso::size(header).is_none_or(|whole| whole.next_multiple_of(image::PAGE) < size) {
        return false;
    }
    // SAFETY: its header says that it has at least this size.
    image::digest(unsafe { slice::from_raw_parts(vdso as *const u8, size as usize) }) == digest
}
