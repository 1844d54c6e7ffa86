//! The garbage collector and its heap.
#![allow(unsafe_code)]

use super::{error_info, protect, push, symbol, Jump, Protected, Value};

unsafe extern "C-unwind" {
    safe fn rb_gc_enable() -> Value;
    fn rb_gc_disable() -> Value;
    fn rb_gc_stat(key: Value) -> usize;
    fn rb_float_new(number: f64) -> Value;
    safe fn rb_gc_adjust_memory_usage(difference: isize);
}

/// A number that GC.stat knows.
fn stat(key: &str) -> Protected<usize> {
    let key = symbol(key)?;
    // SAFETY: a Symbol.
    protect(|| unsafe { rb_gc_stat(key) })
}

/// Number of objects that have outlived several collections.
pub fn old_objects() -> Protected<usize> {
    stat("old_objects")
}

/// Nearly as many objects as a page of Ruby's heap holds: 16 kB, 40 bytes each (HEAP_PAGE_SIZE and RVALUE in gc.c).
const OBJECTS_OF_PAGE: usize = 400;

/// Has the heap grow until it has places for so many objects, unless the collector is off, which makes it grow anyway. Some of
/// the new objects are put into an Array: while they are kept, no page of the heap is empty, and Ruby gives none back.
pub fn make_room(objects: usize, kept: Value) -> Protected<()> {
    // SAFETY: it takes nothing.
    let is_off = protect(|| unsafe { rb_gc_disable() })?.is_truthy();
    if is_off {
        return Ok(());
    }
    let before = error_info();
    let grow = || -> Protected<()> {
        while stat("heap_available_slots")? < objects {
            // A number beyond what fits into a Value: an object, and the cheapest to make and to take away.
            // SAFETY: it takes any number.
            push(kept, protect(|| unsafe { rb_float_new(f64::MAX) })?)?;
            protect(|| {
                for _ in 1..OBJECTS_OF_PAGE {
                    // SAFETY: as above.
                    unsafe { rb_float_new(f64::MAX) };
                }
            })?;
        }
        Ok(())
    };
    // There is no more memory: whoever needs it will hear of that.
    grow().unwrap_or_else(|jump: Jump| jump.forget(before));
    rb_gc_enable();
    Ok(())
}

/// Bytes that were allocated, besides objects, since the last collection. They bring about the next one.
pub fn allocated() -> Protected<usize> {
    stat("malloc_increase_bytes")
}

/// So many bytes of these are there to stay: a collection for their sake would find nothing.
pub fn forgive(bytes: usize) {
    rb_gc_adjust_memory_usage(-(bytes as isize));
}
