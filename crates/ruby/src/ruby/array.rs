//! Arrays.
#![allow(unsafe_code)]

use std::ffi::c_long;

use super::{call, integer, intern, protect, Protected, Value};

unsafe extern "C-unwind" {
    safe fn rb_ary_entry(array: Value, index: c_long) -> Value;
    fn rb_ary_ptr_use_start(array: Value) -> *const Value;
    fn rb_ary_new() -> Value;
    fn rb_ary_new_from_values(size: c_long, elements: *const Value) -> Value;
    fn rb_ary_modify(array: Value);
    fn rb_ary_replace(array: Value, other: Value) -> Value;
    fn rb_ary_clear(array: Value) -> Value;
    fn rb_ary_push(array: Value, element: Value) -> Value;
}

pub fn array() -> Protected {
    // SAFETY: it takes nothing.
    protect(|| unsafe { rb_ary_new() })
}

pub fn array_of(elements: &[Value]) -> Protected {
    // SAFETY: pointer and size are those of a slice, which is copied.
    protect(|| unsafe { rb_ary_new_from_values(elements.len() as c_long, elements.as_ptr()) })
}

/// Takes all elements out of an array. Raises where that is frozen.
pub fn clear_array(array: Value) -> Protected<()> {
    // SAFETY: an array.
    protect(|| unsafe { rb_ary_clear(array) }).map(drop)
}

/// Appends an element to an array. Raises where that is frozen.
pub fn push(array: Value, element: Value) -> Protected<()> {
    // SAFETY: an array and an object.
    protect(|| unsafe { rb_ary_push(array, element) }).map(drop)
}

/// Makes one array a copy of another. They share their elements until one of them changes.
pub fn replace(array: Value, other: Value) -> Protected<()> {
    // SAFETY: two arrays. Elements that nobody shares any more are the array's own after the first call, and freed by the second
    // instead of by the next collection.
    protect(|| unsafe {
        rb_ary_modify(array);
        rb_ary_replace(array, other);
    })
}

/// The element of an array, nil beyond its end.
pub fn entry_of(array: Value, index: usize) -> Value {
    rb_ary_entry(array, index as c_long)
}

/// Number of elements of an array.
pub fn length(array: Value) -> Protected<usize> {
    integer(call(array, intern("length")?, &[])?).map(|length| length as usize)
}

/// The elements of an array, valid until Ruby runs again. `size` must not be larger than the array.
pub fn elements<'a>(array: Value, size: usize) -> &'a [Value] {
    // SAFETY: the array has that many elements, which is asked of the caller.
    unsafe { std::slice::from_raw_parts(rb_ary_ptr_use_start(array), size) }
}

/// Where the elements of an array lie. Two arrays that share them have had no change since one became a copy of the other.
fn elements_address(array: Value) -> usize {
    // SAFETY: it is an array; nothing is read.
    unsafe { rb_ary_ptr_use_start(array) as usize }
}

/// Whether an array of `size` objects is still what its copy is: because they share their elements, or by comparing these.
pub fn is_same_array(array: Value, copy: Value, size: usize) -> Protected<bool> {
    if size > 0 && elements_address(array) == elements_address(copy) && entry_of(array, size).is_nil() {
        return Ok(!entry_of(array, size - 1).is_nil());
    }
    Ok(length(array)? == size && length(copy)? == size && elements(array, size) == elements(copy, size))
}
