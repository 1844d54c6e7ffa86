//! The garbage collector and its heap.
#![allow(unsafe_code)]

use std::ffi::c_long;

use super::{Protected, Ruby, Value};

unsafe extern "C-unwind" {
    fn rb_gc_enable() -> Value<'static>;
    fn rb_gc_disable() -> Value<'static>;
    fn rb_gc_stat(key: Value<'_>) -> usize;
    fn rb_float_new<'r>(number: f64) -> Value<'r>;
    fn rb_str_new<'r>(bytes: *const u8, size: c_long) -> Value<'r>;
    fn rb_gc_adjust_memory_usage(difference: isize);
}

/// The size of an object (bytes): in the only heap, or in the first one. Each further heap has slots of twice the size (gc.c: RVALUE, BASE_SLOT_SIZE).
const SLOT: usize = 40;

/// The size of a page (bytes) with one heap, and with several (gc.c: HEAP_PAGE_SIZE), without its head.
const PAGE_OF_ONE: usize = 16 * 1024 - 384;
const PAGE_OF_SEVERAL: usize = 64 * 1024 - 512;

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

    /// The slots of each heap, of which this Ruby has `count`.
    pub fn slots_of_heaps(self, count: usize) -> Protected<Vec<usize>> {
        (0..count).map(|heap| self.slots(heap, count)).collect()
    }

    /// How many objects were made in each heap, of which this Ruby has `count`. Its slots if Ruby does not count them (3.1, 3.2).
    pub fn objects_of_heaps(self, count: usize) -> Protected<Vec<usize>> {
        if count == 1 {
            return self.slots_of_heaps(count);
        }
        let before = self.error_info();
        let made: Protected<_> = (0..count).map(|heap| self.heap_stat(heap, "total_allocated_objects")).collect();
        made.or_else(|jump| {
            self.forget(jump, before);
            self.slots_of_heaps(count)
        })
    }

    fn slots(self, heap: usize, count: usize) -> Protected<usize> {
        match count {
            1 => self.gc_stat("heap_available_slots"),
            _ => self.heap_stat(heap, "heap_eden_slots"),
        }
    }

    /// A number that GC.stat_heap knows of a heap.
    fn heap_stat(self, heap: usize, key: &str) -> Protected<usize> {
        let Some(collector) = self.find_constant(self.object_class(), "GC")? else { return Ok(0) };
        let number = self.call(collector, self.intern("stat_heap")?, &[self.number(heap), self.symbol(key)?])?;
        Ok(self.integer(number)? as usize)
    }

    /// Grows each heap until it has this many slots, unless the collector is off, in which case it grows anyway. Some of the new objects
    /// are put into an Array: while they are kept, no page of the heap is empty, and Ruby gives none back.
    pub fn make_room(self, slots: &[usize], kept: Value<'_>) -> Protected<()> {
        // SAFETY: it takes nothing.
        let is_off = self.protect(|| unsafe { rb_gc_disable() })?.is_truthy();
        if is_off {
            return Ok(());
        }
        let before = self.error_info();
        let grow = || -> Protected<()> {
            for (heap, &wanted) in slots.iter().enumerate() {
                let page = if slots.len() == 1 { PAGE_OF_ONE } else { PAGE_OF_SEVERAL } / (SLOT << heap);
                while self.slots(heap, slots.len())? < wanted {
                    self.push(kept, self.protect(|| new_object(heap))?)?;
                    self.protect(|| {
                        for _ in 1..page {
                            new_object(heap);
                        }
                    })?;
                }
            }
            Ok(())
        };
        // There is no more memory: the next allocation gets the error.
        grow().unwrap_or_else(|jump| self.forget(jump, before));
        // SAFETY: it takes nothing, and undoes the call above.
        unsafe { rb_gc_enable() };
        Ok(())
    }

    /// Bytes allocated since the last collection, besides objects. They trigger the next one.
    pub fn allocated(self) -> Protected<usize> {
        self.gc_stat("malloc_increase_bytes")
    }

    /// Excludes this many of these bytes: they are permanent, and a collection would free nothing.
    pub fn forgive(self, bytes: usize) {
        // SAFETY: a number that is only subtracted from a counter, which is negative at worst.
        unsafe { rb_gc_adjust_memory_usage(-(bytes as isize)) };
    }
}

/// Creates an object of that heap. May raise NoMemoryError, so callers catch it.
fn new_object<'r>(heap: usize) -> Value<'r> {
    /// How much longer a slot is than its text (bytes): RString's head and the final NUL need 25.
    const AROUND: usize = 30;
    static TEXT: [u8; SLOT << 4] = [b' '; SLOT << 4];
    match heap {
        // A number beyond what fits into a Value: an object, and the cheapest to make and to free.
        // SAFETY: it takes any number.
        0 => unsafe { rb_float_new(f64::MAX) },
        // SAFETY: the text is as long as that, and is copied.
        _ => unsafe { rb_str_new(TEXT.as_ptr(), ((SLOT << heap.min(4)) - AROUND) as c_long) },
    }
}
