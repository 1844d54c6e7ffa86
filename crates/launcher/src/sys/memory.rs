//! Memory: mappings, what the kernel may do with them, and what it keeps of files.
#![allow(unsafe_code)]

use linux_raw_sys::general as raw;

use super::{call, Errno, Fd, Result};

/// Memory protections and flags for [`map`], as the kernel defines them.
pub use raw::{
    MAP_ANONYMOUS, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_GROWSDOWN, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, MAP_STACK,
};

/// Maps memory; `fd` None is anonymous.
///
/// # Safety
/// The range must not hold anything that is still used.
pub unsafe fn map(start: u64, size: u64, protection: u32, flags: u32, fd: Option<Fd>, offset: u64) -> Result<()> {
    let fd = fd.map_or(usize::MAX, |fd| fd.0 as usize);
    let (start, size) = (start as usize, size as usize);
    // SAFETY: the caller answers for the range.
    unsafe { call(raw::__NR_mmap, &[start, size, protection as usize, flags as usize, fd, offset as usize]) }.map(drop)
}

/// Unmaps memory.
///
/// # Safety
/// The range must not hold anything that is still used.
pub unsafe fn unmap(start: u64, size: u64) -> Result<()> {
    // SAFETY: the caller answers for the range.
    unsafe { call(raw::__NR_munmap, &[start as usize, size as usize]) }.map(drop)
}

/// Moves memory to an exact place.
///
/// # Safety
/// Nothing that is still used lies at either place.
pub unsafe fn move_to(from: u64, size: u64, to: u64) -> Result<()> {
    let flags = raw::MREMAP_MAYMOVE | raw::MREMAP_FIXED;
    let size = size as usize;
    // SAFETY: the caller answers for both ranges.
    unsafe { call(raw::__NR_mremap, &[from as usize, size, size, flags as usize, to as usize]) }.map(drop)
}

/// Changes the protection of memory.
///
/// # Safety
/// The range belongs to the frozen process.
pub unsafe fn protect(start: u64, size: u64, protection: u32) -> Result<()> {
    // SAFETY: the caller answers for the range.
    unsafe { call(raw::__NR_mprotect, &[start as usize, size as usize, protection as usize]) }.map(drop)
}

/// Gives advice on memory.
///
/// # Safety
/// The range belongs to the frozen process, and the advice keeps what it holds.
pub unsafe fn advise(start: u64, size: u64, advice: u32) -> Result<()> {
    // SAFETY: the caller answers for range and advice.
    unsafe { call(raw::__NR_madvise, &[start as usize, size as usize, advice as usize]) }.map(drop)
}

/// A part of the address space, laid out as the kernel's `iovec`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Part {
    pub start: u64,
    pub size: u64,
}

/// PIDFD_SELF_THREAD_GROUP of linux/pidfd.h (Linux 6.15): this process, where a pidfd is expected.
const THIS_PROCESS: isize = -10001;

/// Gives advice on several parts of memory in one call.
///
/// # Safety
/// As for [`advise`].
pub unsafe fn advise_all(parts: &[Part], advice: u32) -> Result<()> {
    let arguments = [THIS_PROCESS as usize, parts.as_ptr() as usize, parts.len(), advice as usize, 0];
    // SAFETY: the caller answers for ranges and advice; the kernel only reads the list.
    unsafe { call(raw::__NR_process_madvise, &arguments) }.map(drop)
}

/// Whether the page at an address, of a file that is mapped there, is in memory: reading it would not wait for the disk. True when
/// the kernel does not tell. (A read that must not wait tells too, but has the kernel read ahead.)
pub fn is_cached(address: u64) -> bool {
    let mut resident = 1u8;
    // SAFETY: the kernel writes one byte for one page.
    let told = unsafe { call(raw::__NR_mincore, &[address as usize, 1, &raw mut resident as usize]) };
    told.is_err() || resident & 1 != 0
}

/// How many pages of a part of a file are in memory. Fails before Linux 6.5, and for a file that is not this user's.
pub fn cached_pages(fd: Fd, offset: u64, size: u64) -> Result<u64> {
    let range = raw::cachestat_range { off: offset, len: size };
    let mut found = raw::cachestat { nr_cache: 0, nr_dirty: 0, nr_writeback: 0, nr_evicted: 0, nr_recently_evicted: 0 };
    let (range, place) = (&raw const range as usize, &raw mut found as usize);
    // SAFETY: the kernel reads the one structure and writes the other.
    unsafe { call(raw::__NR_cachestat, &[fd.0 as usize, range, place, 0])? };
    Ok(found.nr_cache)
}

/// Has the kernel read a part of a file ahead of its use.
pub fn will_need(fd: Fd, offset: u64, size: u64) {
    fadvise(fd, offset, size, raw::POSIX_FADV_WILLNEED);
}

/// Has the kernel read from a file, and from mappings that are made of it, only what is used.
pub fn no_read_ahead(fd: Fd) {
    fadvise(fd, 0, 0, raw::POSIX_FADV_RANDOM);
}

fn fadvise(fd: Fd, offset: u64, size: u64, advice: u32) {
    // SAFETY: no memory is involved. Without the advice pages come as the kernel thinks best.
    let _ = unsafe { call(raw::__NR_fadvise64, &[fd.0 as usize, offset as usize, size as usize, advice as usize]) };
}

/// Reads from a file into memory that was just mapped there, until `size` bytes are read.
///
/// # Safety
/// The range is writable memory of the frozen process.
pub unsafe fn read_into(fd: Fd, start: u64, size: u64, offset: u64) -> Result<()> {
    let mut done = 0;
    while done < size {
        let (place, rest, from) = ((start + done) as usize, (size - done) as usize, (offset + done) as usize);
        // SAFETY: the caller answers for the range.
        match unsafe { call(raw::__NR_pread64, &[fd.0 as usize, place, rest, from]) } {
            Ok(0) => return Err(Errno(linux_raw_sys::errno::EIO)),
            Ok(count) => done += count as u64,
            Err(Errno(linux_raw_sys::errno::EINTR)) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
