//! The memory for CPython's small objects, in huge pages.
//!
//! A boot creates tens of megabytes of objects and so takes thousands of page faults, one for each 4 KiB. Arenas side by side in an area of
//! huge pages take one for each 2 MiB.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

use pyo3::prelude::*;
use rustix::mm::{madvise, mmap_anonymous, Advice, MapFlags, ProtFlags};
use rustix::process::{getrlimit, Resource};

/// `PyObjectArenaAllocator` of CPython's cpython/pymem.h or cpython/objimpl.h: the same from 3.4 on.
#[repr(C)]
#[derive(Clone, Copy)]
struct Allocator {
    context: *mut c_void,
    allocate: Option<extern "C" fn(*mut c_void, usize) -> *mut c_void>,
    free: Option<extern "C" fn(*mut c_void, *mut c_void, usize)>,
}

extern "C" {
    // Not part of the stable ABI, but exported by every version from 3.4 on.
    fn PyObject_GetArenaAllocator(allocator: *mut Allocator);
    fn PyObject_SetArenaAllocator(allocator: *mut Allocator);
}

/// The size of a huge page (bytes).
pub const HUGE: usize = 2 << 20;
/// The smallest unit that the kernel hands out (bytes), and `POOL_SIZE` of CPython's obmalloc.c, or a multiple.
const PAGE: usize = 4096;
const POOL: usize = 16384;
/// The size of the area (bytes): more than most boots need. The unused part takes no memory.
const AREA: usize = 64 << 20;

struct Area {
    start: usize,
    /// How much of it was handed out.
    used: AtomicUsize,
    before: Allocator,
}

// SAFETY: the allocator from before is CPython's own, and called under the interpreter's lock as ever.
unsafe impl Send for Area {}
// SAFETY: the same.
unsafe impl Sync for Area {}

static AREA_OF_ARENAS: OnceLock<Area> = OnceLock::new();

/// Whether the process' memory is limited.
pub fn is_limited() -> bool {
    [Resource::As, Resource::Data].into_iter().any(|of| getrlimit(of).current.is_some())
}

/// From now on, places arenas in such an area. Does nothing if memory is limited: the area counts as a whole.
pub fn use_huge_pages(_: Python<'_>) {
    if is_limited() {
        return;
    }
    let mut before = Allocator { context: std::ptr::null_mut(), allocate: None, free: None };
    // SAFETY: room for one allocator, which the call fills.
    unsafe { PyObject_GetArenaAllocator(&mut before) };
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping, at an address that the kernel chooses.
    let Ok(mapped) =
        (unsafe { mmap_anonymous(std::ptr::null_mut(), AREA + HUGE, ProtFlags::READ | ProtFlags::WRITE, flags) })
    else {
        return;
    };
    let start = (mapped as usize).next_multiple_of(HUGE);
    // SAFETY: a part of that mapping, which nothing else uses.
    if unsafe { madvise(start as *mut c_void, AREA, Advice::LinuxHugepage) }.is_err() {
        return;
    }
    if AREA_OF_ARENAS.set(Area { start, used: AtomicUsize::new(0), before }).is_ok() {
        let mut ours = Allocator { context: std::ptr::null_mut(), allocate: Some(allocate), free: Some(free) };
        // SAFETY: the functions fulfil what CPython asks of them, and lie in a library that is never unloaded.
        unsafe { PyObject_SetArenaAllocator(&mut ours) };
    }
}

/// Returns the unused pages of the last used huge page to the kernel.
pub fn trim(_: Python<'_>) {
    let Some(area) = AREA_OF_ARENAS.get() else { return };
    let used = area.start + area.used.load(Ordering::Relaxed);
    let mut unused = used;
    // SAFETY: what lies behind the area's start was handed out to CPython, whose lock is held, or belongs to nobody.
    while unused > area.start && unsafe { is_unused(unused - POOL) } {
        unused -= POOL;
    }
    give_back(unused, used.next_multiple_of(HUGE));
}

/// Whether a pool of CPython's allocator has never been used: a used one has a non-zero head.
///
/// # Safety
/// The memory exists, and the caller holds the interpreter's lock.
unsafe fn is_unused(pool: usize) -> bool {
    // SAFETY: as the caller says. It may be changed by other threads, in places where that does not matter: behind a head.
    (0..POOL / 8).all(|word| unsafe { (pool as *const u64).add(word).read_volatile() == 0 })
}

/// Returns the whole pages of an unused area to the kernel.
pub fn give_back(start: usize, end: usize) {
    let start = start.next_multiple_of(PAGE);
    if start < end {
        // SAFETY: memory of this process that holds zeros, and holds zeros afterwards.
        let _ = unsafe { madvise(start as *mut c_void, end - start, Advice::LinuxDontNeed) };
    }
}

extern "C" fn allocate(_: *mut c_void, size: usize) -> *mut c_void {
    let Some(area) = AREA_OF_ARENAS.get() else { return std::ptr::null_mut() };
    let used = area.used.load(Ordering::Relaxed);
    if used + size <= AREA {
        area.used.store(used + size, Ordering::Relaxed);
        return (area.start + used) as *mut c_void;
    }
    area.before.allocate.map_or(std::ptr::null_mut(), |allocate| allocate(area.before.context, size))
}

extern "C" fn free(_: *mut c_void, arena: *mut c_void, size: usize) {
    let Some(area) = AREA_OF_ARENAS.get() else { return };
    if (area.start..area.start + AREA).contains(&(arena as usize)) {
        // SAFETY: an arena that CPython does not use any more. Its memory goes back to the kernel, its address is not used again.
        unsafe {
            let _ = madvise(arena, size, Advice::LinuxDontNeed);
        }
    } else if let Some(free) = area.before.free {
        free(area.before.context, arena, size);
    }
}
