//! Arrays.
#![allow(unsafe_code)]

use std::ffi::c_long;

use super::{Protected, Ruby, Value};

unsafe extern "C-unwind" {
    static rb_cArray: Value<'static>;
    fn rb_obj_class<'r>(object: Value<'r>) -> Value<'r>;
    fn rb_ary_entry<'r>(array: Value<'_>, index: c_long) -> Value<'r>;
    fn rb_ary_ptr_use_start<'r>(array: Value<'r>) -> *const Value<'r>;
    fn rb_ary_new<'r>() -> Value<'r>;
    fn rb_ary_new_from_values<'r>(size: c_long, elements: *const Value<'_>) -> Value<'r>;
    fn rb_ary_modify(array: Value<'_>);
    fn rb_ary_replace<'r>(array: Value<'r>, other: Value<'_>) -> Value<'r>;
    fn rb_ary_clear(array: Value<'_>) -> Value<'_>;
    fn rb_ary_push<'r>(array: Value<'r>, element: Value<'_>) -> Value<'r>;
}

impl<'r> Ruby<'r> {
    pub fn array(self) -> Protected<Value<'r>> {
        // SAFETY: it takes nothing.
        self.protect(|| unsafe { rb_ary_new() })
    }

    pub fn array_of(self, elements: &[Value<'_>]) -> Protected<Value<'r>> {
        // SAFETY: pointer and size are those of a slice, which is copied.
        self.protect(|| unsafe { rb_ary_new_from_values(elements.len() as c_long, elements.as_ptr()) })
    }

    /// Removes all elements of an array. Raises if it is frozen.
    pub fn clear_array(self, array: Value<'_>) -> Protected<()> {
        // SAFETY: an array.
        self.protect(|| unsafe { rb_ary_clear(array) }).map(drop)
    }

    /// Appends an element to an array. Raises if it is frozen.
    pub fn push(self, array: Value<'_>, element: Value<'_>) -> Protected<()> {
        // SAFETY: an array and an object.
        self.protect(|| unsafe { rb_ary_push(array, element) }).map(drop)
    }

    /// Makes one array a copy of another. They share their elements until one of them changes.
    pub fn replace(self, array: Value<'_>, other: Value<'_>) -> Protected<()> {
        // SAFETY: two arrays. Elements that nobody shares any more are the array's own after the first call, and freed by the
        // second instead of by the next collection.
        self.protect(|| unsafe {
            rb_ary_modify(array);
            rb_ary_replace(array, other);
        })
    }

    /// Whether it is an Array, of that class itself.
    pub fn is_array(self, object: Value<'_>) -> bool {
        // SAFETY: an object, whose class is only read.
        object.is_truthy() && unsafe { rb_obj_class(object) == rb_cArray }
    }

    /// The element of an array, nil beyond its end.
    pub fn entry_of(self, array: Value<'_>, index: usize) -> Value<'r> {
        // SAFETY: an array, which is only read.
        unsafe { rb_ary_entry(array, index as c_long) }
    }

    /// Number of elements of an array.
    pub fn length(self, array: Value<'_>) -> Protected<usize> {
        self.integer(self.send(array, "length", &[])?).map(|length| length as usize)
    }

    /// Whether an array of `size` objects still equals its copy: because they share their elements, or by comparing these.
    pub fn is_same_array(self, array: Value<'_>, copy: Value<'_>, size: usize) -> Protected<bool> {
        // SAFETY: two arrays, of which only the addresses are read.
        let is_shared = unsafe { rb_ary_ptr_use_start(array) == rb_ary_ptr_use_start(copy) };
        let has_size = || self.entry_of(array, size).is_nil() && !self.entry_of(array, size - 1).is_nil();
        if size > 0 && is_shared && has_size() {
            return Ok(true);
        }
        if self.length(array)? != size || self.length(copy)? != size {
            return Ok(false);
        }
        Ok((0..size).all(|at| self.entry_of(array, at) == self.entry_of(copy, at)))
    }
}
