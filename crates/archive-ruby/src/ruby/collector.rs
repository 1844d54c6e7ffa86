//! The garbage collector and its heap.
#![allow(unsafe_code)]

use super::{Protected, Ruby, Value};

unsafe extern "C-unwind" {
    fn rb_gc_enable() -> Value<'static>;
    fn rb_gc_disable() -> Value<'static>;
    fn rb_gc_stat(key: Value<'_>) -> usize;
    fn rb_float_new<'r>(number: f64) -> Value<'r>;
    fn rb_gc_adjust_memory_usage(difference: isize);
}

/// Nearly as many objects as a page of Ruby's heap holds: 16 kB, 40 bytes each (HEAP_PAGE_SIZE and RVALUE in gc.c).
const OBJECTS_OF_PAGE: usize = 400;

impl<'r> Ruby<'r> {
    /// A number that GC.stat knows.
    fn gc_stat(self, key: &str) -> Protected<usize> {
        let key = self.symbol(key)?;
        // SAFETY: a Symbol.
        self.protect(|| unsafe { rb_gc_stat(key) })
    }

    /// Number of objects that have survived several collections.
    pub fn old_objects(self) -> Protected<usize> {
        self.gc_stat("old_objects")
    }

    /// Grows the heap until it has slots for so many objects, unless the collector is off, which makes it grow anyway. Some of
    /// the new objects are put into an Array: while they are kept, no page of the heap is empty, and Ruby gives none back.
    pub fn make_room(self, objects: usize, kept: Value<'_>) -> Protected<()> {
        // SAFETY: it takes nothing.
        let is_off = self.protect(|| unsafe { rb_gc_disable() })?.is_truthy();
        if is_off {
            return Ok(());
        }
        let before = self.error_info();
        let grow = || -> Protected<()> {
            while self.gc_stat("heap_available_slots")? < objects {
                // A number beyond what fits into a Value: an object, and the cheapest to make and to free.
                // SAFETY: it takes any number.
                self.push(kept, self.protect(|| unsafe { rb_float_new(f64::MAX) })?)?;
                self.protect(|| {
                    for _ in 1..OBJECTS_OF_PAGE {
                        // SAFETY: as above.
                        unsafe { rb_float_new(f64::MAX) };
                    }
                })?;
            }
            Ok(())
        };
        // There is no more memory: whoever needs it next gets the error.
        grow().unwrap_or_else(|jump| self.forget(jump, before));
        // SAFETY: it takes nothing, and undoes the call above.
        unsafe { rb_gc_enable() };
        Ok(())
    }

    /// Bytes that were allocated, besides objects, since the last collection. They bring about the next one.
    pub fn allocated(self) -> Protected<usize> {
        self.gc_stat("malloc_increase_bytes")
    }

    /// Has the collector not count so many of these bytes: they are there to stay, and a collection would free nothing.
    pub fn forgive(self, bytes: usize) {
        // SAFETY: a number that is only subtracted from a counter, which is negative at worst.
        unsafe { rb_gc_adjust_memory_usage(-(bytes as isize)) };
    }
}
