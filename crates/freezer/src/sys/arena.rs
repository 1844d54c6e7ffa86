//! The freezer's working memory: a range of its own that never gets into an image.
//!
//! Allocation only goes up; everything is released at once after the fork in the parent, and vanishes with the child.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Address space for the arena (bytes); only what is touched takes memory. Where it is limited (`ulimit -v`), a part of what there is has to do, at
/// least so much.
const SIZE: usize = 64 << 30;
const MIN_SIZE: usize = 16 << 20;

struct Arena {
    next: AtomicUsize,
    size: AtomicUsize,
}

#[global_allocator]
static ARENA: Arena = Arena { next: AtomicUsize::new(0), size: AtomicUsize::new(0) };

// SAFETY: `alloc` hands out disjoint ranges of one mapping; handlers run in one thread, and the atomic keeps even others disjoint.
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
        // The last allocation grows in place: that is what a growing vector mostly is.
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

/// Takes the address space; returns how much of it (bytes).
fn reserve(base: usize) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    let mut sizes = core::iter::successors(Some(SIZE), |size| Some(size / 2)).take_while(|size| *size >= MIN_SIZE);
    let size = sizes.find(|size| {
        // Memory of a program that locks all of it (mlockall) would be filled at once: so it is made without access, and unlocked first.
        // SAFETY: the range is reserved for this, and is this process' own as soon as it is mapped there.
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
    // The program's own fork handlers run after this, and need memory, too.
    let half = size / 2;
    // SAFETY: nothing is in it yet.
    unsafe { libc::munmap((base + half) as *mut _, half) };
    Some(half)
}

/// Whether an address lies in the arena.
pub fn contains(address: u64) -> bool {
    (image::reserved::ARENA..image::reserved::ARENA + SIZE as u64).contains(&address)
}

/// Gives all of it back; nothing allocated may be used any more.
pub fn release() {
    if ARENA.next.swap(0, Relaxed) != 0 {
        // SAFETY: the range is the arena's own.
        unsafe { libc::munmap(image::reserved::ARENA as *mut _, ARENA.size.load(Relaxed)) };
    }
}
