//! The memory of code that runs once: that of modules and of the bodies of their classes.
//!
//! Nothing refers to this code any more once the module has run, so its memory is reused for the next module's: a sixth of the memory of
//! all code. No event shows that a module has run. Reference counts show it when the next code is created.
#![allow(unsafe_code)]

use pyo3::ffi::PyObject;

use super::layout::{read, write, Layout};
use super::memory::{Memory, ALIGNMENT};

/// How much is taken from the memory of lasting code at once (bytes).
const STEP: usize = 64 << 10;
/// The number of modules that may be running, one inside another. With more than that, the memory of the first ones is not reused.
const RUNNING: usize = 64;

/// The bodies of one module.
struct Body {
    start: usize,
    size: usize,
    objects: Vec<Object>,
}

struct Object {
    object: *mut PyObject,
    is_code: bool,
    /// The number of references to it when only the body's own objects refer to it.
    references: usize,
}

/// Which parts are in use. The memory is never returned to the kernel: CPython 3.13 reads code by its number even after it is gone.
#[derive(Default)]
pub struct Bodies {
    /// Start and size of the free parts, by address.
    free: Vec<(usize, usize)>,
    /// Of modules that may still be running. The last object of each is the module's own code.
    running: Vec<Body>,
}

// SAFETY: only used by who holds the interpreter's lock.
unsafe impl Send for Bodies {}

impl Bodies {
    /// `size` bytes, all zero, at a multiple of `ALIGNMENT`; `None` where the kernel has none.
    ///
    /// # Safety
    /// The caller holds the interpreter's lock, and `layout` is that of the Python that runs.
    pub unsafe fn take(&mut self, layout: &Layout, size: usize, memory: &mut Memory) -> Option<*mut u8> {
        let size = size.next_multiple_of(ALIGNMENT);
        // SAFETY: as the caller says.
        unsafe { self.release(layout) };
        let place = self.free.iter().position(|(_, free)| *free >= size);
        let Some(place) = place else {
            let taken = size.max(STEP);
            let start = memory.take(taken)?;
            self.add(start as usize + size, taken - size);
            return Some(start);
        };
        let (start, free) = self.free[place];
        if free == size {
            self.free.remove(place);
        } else {
            self.free[place] = (start + size, free - size);
        }
        let start = start as *mut u8;
        // SAFETY: a part of what `memory` gave, which nothing uses.
        unsafe { start.write_bytes(0, size) };
        Some(start)
    }

    /// Registers objects in memory from [`Bodies::take`] that refer only to each other. Each comes with whether it is code; the last one is
    /// that of the module.
    ///
    /// # Safety
    /// As for `take`.
    pub unsafe fn begin(&mut self, start: *mut u8, size: usize, objects: &[(*mut PyObject, bool)]) {
        let object = |&(object, is_code)| {
            // SAFETY: an object that was just made.
            let references = unsafe { read(object, 0) };
            Object { object, is_code, references }
        };
        let objects = objects.iter().map(object).collect();
        if self.running.len() == RUNNING {
            self.running.remove(0);
        }
        self.running.push(Body { start: start as usize, size: size.next_multiple_of(ALIGNMENT), objects });
    }

    /// Frees bodies that have run.
    unsafe fn release(&mut self, layout: &Layout) {
        for place in (0..self.running.len()).rev() {
            // SAFETY: as the caller says: the objects are there until they are released.
            let is_over = unsafe { self.running[place].objects.last().is_none_or(|code| code.is_alone(layout)) };
            if is_over {
                let Body { start, size, objects } = self.running.remove(place);
                // SAFETY: the same. What something still refers to stays, with all of its module.
                unsafe {
                    if objects.iter().all(|object| object.is_alone(layout)) {
                        objects.iter().for_each(|object| object.forget(layout));
                        self.add(start, size);
                    }
                }
            }
        }
    }

    fn add(&mut self, start: usize, size: usize) {
        if size == 0 {
            return;
        }
        let place = self.free.partition_point(|(before, _)| *before < start);
        self.free.insert(place, (start, size));
        for place in [place + 1, place] {
            if let (Some(&(start, size)), Some(before)) = (self.free.get(place), place.checked_sub(1)) {
                if self.free[before].0 + self.free[before].1 == start {
                    self.free[before].1 += size;
                    self.free.remove(place);
                }
            }
        }
    }
}

impl Object {
    /// Whether nothing else refers to it or depends on it.
    unsafe fn is_alone(&self, layout: &Layout) -> bool {
        // SAFETY: an object that is there; if it is code, it has these fields.
        unsafe {
            read::<usize>(self.object, 0) == self.references
                && (!self.is_code || layout.later.iter().all(|field| read::<usize>(self.object, *field) == 0))
        }
    }

    /// Removes its number, so that nobody finds it by that.
    unsafe fn forget(&self, layout: &Layout) {
        if let Some(field) = layout.version.filter(|_| self.is_code) {
            // SAFETY: the same.
            unsafe { write(self.object, field, 0_u32) };
        }
    }
}
