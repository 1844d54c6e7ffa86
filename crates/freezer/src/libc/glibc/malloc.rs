//! Keeps glibc's malloc from mapping large blocks one by one before a freeze.
//!
//! A block that malloc mapped itself grows with mremap inside glibc, which cannot be interposed; after a thaw it would
//! grow into other bytes of the image. In the heap it cannot. `mallopt(M_MMAP_MAX, 0)` prevents such mappings, but also
//! disables malloc's adaptive threshold for good, which slows down programs that handle large blocks. So this module
//! compares glibc's data before and after the call to find the two numbers that it changes, and restores both after a
//! thaw.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

/// glibc's default for the number of mapped blocks (malloc.c, DEFAULT_MMAP_MAX).
const DEFAULT_MMAP_MAX: u32 = 65536;

/// How far the switch for the threshold may lie after the number (bytes).
const NEAR: usize = 32;

static MMAP_MAX: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());
static THRESHOLD_IS_FIXED: AtomicPtr<AtomicU32> = AtomicPtr::new(core::ptr::null_mut());

/// Makes malloc take large blocks from the heap.
pub fn keep_off_mmap() {
    let data = glibc_data();
    /// The maximum of words to compare; glibc has a third of that.
    const MAX: usize = 16 * 1024;
    let words = data.len().min(MAX);
    let mut before = [0u32; MAX];
    for (saved, word) in before.iter_mut().zip(&data[..words]) {
        *saved = word.load(Relaxed);
    }
    // SAFETY: a plain call.
    unsafe { libc::mallopt(libc::M_MMAP_MAX, 0) };
    let changed = |index: usize, from: u32, to: u32| before[index] == from && data[index].load(Relaxed) == to;
    let Some(max) = (0..words).find(|&index| changed(index, DEFAULT_MMAP_MAX, 0)) else { return };
    let fixed = (max + 1..words.min(max + NEAR / 4)).find(|&index| changed(index, 0, 1));
    MMAP_MAX.store((&raw const data[max]).cast_mut(), Relaxed);
    if let Some(fixed) = fixed {
        THRESHOLD_IS_FIXED.store((&raw const data[fixed]).cast_mut(), Relaxed);
    }
}

/// Tidies malloc up in the process that is about to fork.
///
/// Free memory goes back to the kernel, so it is not in the image, and recently freed blocks are merged and sorted.
/// Otherwise the first large request of every thaw would do that, and write to hundreds of pages.
pub fn settle() {
    /// Larger than what the small-block caches serve.
    const LARGE: usize = 256 * 1024;
    extern "C" {
        fn malloc_trim(keep: usize) -> core::ffi::c_int;
    }
    gather_small_blocks();
    // SAFETY: plain calls; the program is between two of its own, or it could not fork. The black box keeps the pair
    // from being optimised away.
    unsafe {
        malloc_trim(0);
        libc::free(core::hint::black_box(libc::malloc(LARGE)));
    }
}

/// Makes the next small blocks that malloc returns adjacent.
///
/// A boot leaves free blocks scattered over the heap, so each small block of a start would cost it a page. This fills
/// each thread's cache of free blocks (glibc's tcache) with new ones: it allocates blocks of all sizes in turn until
/// they are contiguous, and frees them in reverse order. The latest fill the cache, and the first of each size are
/// neighbours.
fn gather_small_blocks() {
    /// Requests that fill chunks of glibc's sizes (chunks are multiples of 16 bytes, 8 of them a header); larger blocks are rare.
    const SIZES: core::ops::RangeInclusive<usize> = 24..=520;
    const STEP: usize = 16;
    /// Blocks of a size in the cache (malloc.c, TCACHE_FILL_COUNT).
    const CACHED: usize = 7;
    /// Rounds after which a fragmented heap is left as it is: 4 MB.
    const MAX_ROUNDS: usize = 512;
    /// Maximum distance between consecutive blocks.
    const NEAR: usize = 4096;
    let mut latest: *mut *mut libc::c_void = core::ptr::null_mut();
    let mut in_one_piece = 0;
    for _ in 0..MAX_ROUNDS {
        let mut is_in_one_piece = true;
        for size in SIZES.step_by(STEP) {
            // SAFETY: a plain call; a block has room for the pointer to the block before.
            unsafe {
                let block: *mut *mut libc::c_void = libc::malloc(size).cast();
                if block.is_null() {
                    break;
                }
                is_in_one_piece &= (block.addr().wrapping_sub(latest.addr())) < NEAR;
                block.write(latest.cast());
                latest = block;
            }
        }
        in_one_piece = if is_in_one_piece { in_one_piece + 1 } else { 0 };
        if in_one_piece == CACHED {
            break;
        }
    }
    while !latest.is_null() {
        // SAFETY: the block was allocated above and holds the pointer to the one before it.
        unsafe {
            let before = latest.read().cast();
            libc::free(latest.cast());
            latest = before;
        }
    }
}

/// Undoes [`keep_off_mmap`] in the thawed process.
///
/// If the switch for the threshold was found, malloc also gets the thresholds that it would have learnt from large
/// blocks. It learns from freed mapped blocks, and the boot had none. Otherwise it would map what an ordinary process
/// takes from the heap, and return the end of the heap after each piece of work, so the kernel would clear the same
/// pages again and again. It continues to learn.
pub fn mmap_again() {
    /// The size of block to learn from; malloc never learns more than 32 MB (malloc.c, DEFAULT_MMAP_THRESHOLD_MAX).
    const SEEN: i32 = 4 * 1024 * 1024;
    let max = MMAP_MAX.load(Relaxed);
    if max.is_null() {
        // SAFETY: a plain call.
        unsafe { libc::mallopt(libc::M_MMAP_MAX, DEFAULT_MMAP_MAX as i32) };
        return;
    }
    // SAFETY: `keep_off_mmap` found both in glibc's data, which never moves; there is one thread.
    unsafe {
        (*max).store(DEFAULT_MMAP_MAX, Relaxed);
        if let Some(fixed) = THRESHOLD_IS_FIXED.load(Relaxed).as_ref() {
            libc::mallopt(libc::M_MMAP_THRESHOLD, SEEN);
            libc::mallopt(libc::M_TRIM_THRESHOLD, 2 * SEEN);
            fixed.store(0, Relaxed);
        }
    }
}

/// The writable data of the C library as words; empty if it is not found.
fn glibc_data() -> &'static [AtomicU32] {
    let mut found: &'static [AtomicU32] = &[];
    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _: libc::size_t,
        found: *mut core::ffi::c_void,
    ) -> core::ffi::c_int {
        // SAFETY: the loader passes a valid description; `found` is the variable below.
        unsafe {
            let info = &*info;
            let name = core::ffi::CStr::from_ptr(info.dlpi_name).to_bytes();
            if !name.ends_with(b"/libc.so.6") {
                return 0;
            }
            let headers = core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            for header in
                headers.iter().filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W != 0)
            {
                let start = (info.dlpi_addr + header.p_vaddr).next_multiple_of(4);
                // Only the part from the file: malloc's parameters are initialised data.
                let words = header.p_filesz as usize / 4 - 1;
                *found.cast::<&[AtomicU32]>() = core::slice::from_raw_parts(start as *const AtomicU32, words);
            }
            1
        }
    }
    // SAFETY: the callback keeps to its contract.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    found
}
