//! Arrays.
#![allow(unsafe_code)]

use std::ffi::c_long;

use super::{call, integer, intern, protect, Protected, Value};

unsafe extern "C-unwind" {
    safe static rb_cArray: Value;
    safe fn rb_obj_class(object: Value) -> Value;
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

/// Whether it is an Array, of that class itself.
pub fn is_array(object: Value) -> bool {
    object.is_truthy() && rb_obj_class(object) == rb_cArray
}

/// The element of an array, nil beyond its end.
pub fn entry_of(array: Value, index: usize) -> Value {
    rb_ary_entry(array, index as c_long)
}

/// Number of elements of an array.
pub fn length(array: Value) -> Protected<usize> {
    integer(call(array, intern("length")?, &[])?).map(|length| length as usize)
}

/// Whether an array of `size` objects is still what its copy is: because they share their elements, or by comparing these.
pub fn is_same_array(array: Value, copy: Value, size: usize) -> Protected<bool> {
    // SAFETY: they are arrays; nothing is read.
    let addresses = unsafe { (rb_ary_ptr_use_start(array), rb_ary_ptr_use_start(copy)) };
    if size > 0 && addresses.0 == addresses.1 && entry_of(array, size).is_nil() && !entry_of(array, size - 1).is_nil() {
        return Ok(true);
    }
    if length(array)? != size || length(copy)? != size {
        return Ok(false);
    }
    Ok((0..size).all(|at| entry_of(array, at) == entry_of(copy, at)))
}
