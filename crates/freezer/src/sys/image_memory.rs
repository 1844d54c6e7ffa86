//! Makes memory that was mapped from an image behave like the anonymous memory that it was.
//!
//! Dropping pages of such memory (`MADV_DONTNEED`) would bring back bytes of the image where an allocator expects
//! zeros; growing it (`mremap`) would expose other bytes of the image. Allocators call `madvise` and `mremap` through
//! the C library's symbols, which this preloaded library interposes: it first converts a range from the image to
//! anonymous memory, then continues the call. Before a thaw, and for other memory, the calls pass through.

use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use image::PAGE;

/// How many ranges are remembered; a process with more has small ones merged (see [`remember`]).
const CAPACITY: usize = 1024;

static STARTS: [AtomicU64; CAPACITY] = [const { AtomicU64::new(0) }; CAPACITY];
static ENDS: [AtomicU64; CAPACITY] = [const { AtomicU64::new(0) }; CAPACITY];
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Remembers, at the freeze, the ranges that will come from the image. Rows must be sorted by address. Beyond the
/// capacity ranges are merged, which only makes the quick test less exact.
pub fn remember(ranges: impl Iterator<Item = Range<u64>>) {
    let mut count = 0;
    for range in ranges {
        if count > 0 && (count == CAPACITY || ENDS[count - 1].load(Relaxed) == range.start) {
            ENDS[count - 1].store(range.end, Relaxed);
        } else {
            STARTS[count].store(range.start, Relaxed);
            ENDS[count].store(range.end, Relaxed);
            count += 1;
        }
    }
    COUNT.store(count, Relaxed);
}

/// Whether a range may come from the image: fast, with false positives.
fn may_be_image(range: &Range<u64>) -> bool {
    let count = COUNT.load(Relaxed);
    (0..count).any(|index| STARTS[index].load(Relaxed) < range.end && range.start < ENDS[index].load(Relaxed))
}

fn pages(start: *mut c_void, size: usize) -> Range<u64> {
    let start = start as u64;
    start..start.saturating_add(size as u64).next_multiple_of(PAGE)
}

/// The C library's `madvise` (madvise(2)), see the module's description.
///
/// # Safety
/// As for madvise(2).
#[no_mangle]
pub unsafe extern "C" fn madvise(start: *mut c_void, size: usize, advice: c_int) -> c_int {
    let range = pages(start, size);
    if may_be_image(&range) {
        let keep = match advice {
            libc::MADV_DONTNEED => Some(false),
            libc::MADV_FREE | libc::MADV_WIPEONFORK | libc::MADV_REMOVE => Some(true),
            _ => None,
        };
        if let Some(keep) = keep {
            make_anonymous(&range, keep);
        }
    }
    // SAFETY: passed on to the caller.
    unsafe { libc::syscall(libc::SYS_madvise, start, size, advice) as c_int }
}

/// The C library's `mremap` (mremap(2)), see the module's description.
///
/// # Safety
/// As for mremap(2).
#[no_mangle]
pub unsafe extern "C" fn mremap(
    old: *mut c_void,
    old_size: usize,
    new_size: usize,
    flags: c_int,
    new: *mut c_void,
) -> *mut c_void {
    let range = pages(old, old_size);
    if new_size > old_size && may_be_image(&range) {
        make_anonymous(&range, true);
    }
    // SAFETY: passed on to the caller.
    unsafe { libc::syscall(libc::SYS_mremap, old, old_size, new_size, flags, new) as *mut c_void }
}

/// The file mapped at an address, if any. For [`COUNT`] in a thawed process that is the image, however it was started:
/// if its page had not come from there, it would be zero, and this would not be called.
fn file_at(address: u64) -> Option<FileId> {
    let mut found = None;
    MapsReader::open().for_each(|line| {
        if (line.start..line.end).contains(&address) && line.file.inode != 0 {
            found = Some(line.file);
        }
    });
    found
}

/// Replaces the parts of a range that are mapped from the image by anonymous memory, with the same bytes (`keep`) or
/// zeros. A part that cannot be replaced (no memory) stays as it is.
fn make_anonymous(range: &Range<u64>, keep: bool) {
    let Some(image) = file_at(&COUNT as *const AtomicUsize as u64) else { return };
    let mut parts = [const { (0..0, 0u32) }; 16];
    // Replacing changes the list being read, so read it again until no part of the image is left.
    loop {
        let mut count = 0;
        MapsReader::open().for_each(|line| {
            let hit = line.file == image && line.start < range.end && range.start < line.end;
            if hit && count < parts.len() {
                parts[count] = (line.start.max(range.start)..line.end.min(range.end), line.protection);
                count += 1;
            }
        });
        let replaced = parts[..count].iter().filter(|(part, protection)| replace(part, *protection, keep)).count();
        if count < parts.len() || replaced == 0 {
            return;
        }
    }
}

fn replace(part: &Range<u64>, protection: u32, keep: bool) -> bool {
    let size = (part.end - part.start) as usize;
    let (read, write) = (libc::PROT_READ, libc::PROT_WRITE);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the part belongs to the caller's range and is mapped; its bytes are kept, or the caller has discarded
    // them. The raw call bypasses this module's own `mremap`.
    unsafe {
        let fresh = libc::mmap(core::ptr::null_mut(), size, read | write, flags, -1, 0);
        if fresh == libc::MAP_FAILED {
            return false;
        }
        if keep && protection & read as u32 == 0 {
            libc::mprotect(part.start as *mut c_void, size, read);
        }
        if keep {
            core::ptr::copy_nonoverlapping(part.start as *const u8, fresh.cast(), size);
        }
        if protection != (read | write) as u32 {
            libc::mprotect(fresh, size, protection as c_int);
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        libc::syscall(libc::SYS_mremap, fresh, size, size, flags, part.start) as u64 == part.start
    }
}

struct Line {
    start: u64,
    end: u64,
    protection: u32,
    file: FileId,
}

/// A mapped file as in /proc/self/maps; `stat` may report another device for it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileId {
    device: (u64, u64),
    inode: u64,
}

/// Reads /proc/self/maps with a buffer on the stack: inside an allocator's call no heap may be available.
struct MapsReader {
    fd: c_int,
}

impl MapsReader {
    fn open() -> MapsReader {
        // SAFETY: a plain call.
        MapsReader { fd: unsafe { libc::open(c"/proc/self/maps".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) } }
    }

    fn for_each(self, mut each: impl FnMut(&Line)) {
        let mut buffer = [0u8; 8192];
        let mut filled = 0;
        loop {
            // SAFETY: the rest of the buffer is as long as said; a bad descriptor gives an error.
            let count = unsafe { libc::read(self.fd, buffer[filled..].as_mut_ptr().cast(), buffer.len() - filled) };
            if count <= 0 {
                break;
            }
            filled += count as usize;
            let mut start = 0;
            while let Some(length) = buffer[start..filled].iter().position(|&byte| byte == b'\n') {
                if let Some(line) = parse(&buffer[start..start + length]) {
                    each(&line);
                }
                start += length + 1;
            }
            buffer.copy_within(start..filled, 0);
            filled -= start;
        }
        // SAFETY: the descriptor is this value's own (or -1).
        unsafe { libc::close(self.fd) };
    }
}

fn parse(line: &[u8]) -> Option<Line> {
    let mut words = line.split(|&byte| byte == b' ');
    let mut addresses = words.next()?.split(|&byte| byte == b'-');
    let (start, end) = (crate::maps::hexadecimal(addresses.next()?)?, crate::maps::hexadecimal(addresses.next()?)?);
    let permissions = words.next()?;
    let mut device = words.nth(1)?.split(|&byte| byte == b':');
    let device = (crate::maps::hexadecimal(device.next()?)?, crate::maps::hexadecimal(device.next()?)?);
    let file = FileId { device, inode: crate::maps::decimal(words.next()?) };
    let bits = [(b'r', libc::PROT_READ), (b'w', libc::PROT_WRITE), (b'x', libc::PROT_EXEC)];
    let protection = bits
        .iter()
        .zip(permissions)
        .filter(|((letter, _), found)| letter == *found)
        .fold(0, |sum, ((_, bit), _)| sum | *bit as u32);
    Some(Line { start, end, protection, file })
}
