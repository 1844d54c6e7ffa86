//! The freezer's working memory: an address range that never gets into an image.
//!
//! Allocation only moves up. After the fork the parent releases everything at once; in the child it ends with the
//! process.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Address space for the arena (bytes); only touched pages take memory. If address space is limited (`ulimit -v`), a
/// part of it has to suffice, at least `MIN_SIZE`.
const SIZE: usize = 64 << 30;
const MIN_SIZE: usize = 16 << 20;

struct Arena {
    next: AtomicUsize,
    size: AtomicUsize,
}

#[global_allocator]
static ARENA: Arena = Arena { next: AtomicUsize::new(0), size: AtomicUsize::new(0) };

// SAFETY: `alloc` returns disjoint ranges of one mapping; handlers run in one thread, and the atomic keeps ranges
// disjoint even between threads.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = image::reserved::ARENA as usize;
        if self.next.load(Relaxed) == 0 {
            let Some(size) = reserve(base) else { return ptr::null_mut() };
            self.size.store(size, Relaxed);
            self.next.store(base, Relaxed);
        }
        let mut start = 0;
        let _ = self.next.fetch_update(Relaxed, Relaxed, |next| {
            start = next.next_multiple_of(layout.align());
            Some(start + layout.size())
        });
        if start + layout.size() > base + self.size.load(Relaxed) {
            return ptr::null_mut();
        }
        start as *mut u8
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // The last allocation grows in place: that is the usual case of a growing vector.
        let end = old as usize + layout.size();
        if new_size >= layout.size()
            && old as usize + new_size <= image::reserved::ARENA as usize + self.size.load(Relaxed)
            && self.next.compare_exchange(end, old as usize + new_size, Relaxed, Relaxed).is_ok()
        {
            return old;
        }
        // SAFETY: as the trait's contract says.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
            if !new.is_null() {
                ptr::copy_nonoverlapping(old, new, layout.size().min(new_size));
            }
            new
        }
    }
}

/// Reserves the address space; returns its size (bytes).
fn reserve(base: usize) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let mut sizes = core::iter::successors(Some(SIZE), |size| Some(size / 2)).take_while(|size| *size >= MIN_SIZE);
    let size = sizes.find(|size| {
        // In a program that locks all its memory (mlockall) the mapping would be populated at once, so it is made
        // inaccessible and unlocked first. SAFETY: the range is reserved for this, and belongs to this process as soon
        // as it is mapped.
        unsafe {
            let got = libc::mmap(base as *mut _, *size, libc::PROT_NONE, flags, -1, 0);
            if got as usize != base {
                return false;
            }
            libc::munlock(got, *size);
            let is_usable = libc::mprotect(got, *size, libc::PROT_READ | libc::PROT_WRITE) == 0;
            if !is_usable {
                libc::munmap(got, *size);
            }
            is_usable
        }
    })?;
    if size == SIZE {
        return Some(size);
    }
    // The program's own fork handlers run after this and need memory, too.
    let half = size / 2;
    // SAFETY: nothing is allocated in it yet.
    unsafe { libc::munmap((base + half) as *mut _, half) };
    Some(half)
}

/// Whether an address lies in the arena.
pub fn contains(address: u64) -> bool {
    (image::reserved::ARENA..image::reserved::ARENA + SIZE as u64).contains(&address)
}

/// Releases all of it; nothing allocated may be used any more.
pub fn release() {
    if ARENA.next.swap(0, Relaxed) != 0 {
        // SAFETY: the range is the arena's own.
        unsafe { libc::munmap(image::reserved::ARENA as *mut _, ARENA.size.load(Relaxed)) };
    }
}
