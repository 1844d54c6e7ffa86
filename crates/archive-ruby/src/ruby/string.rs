//! Strings, and paths as Ruby understands them.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_long, CStr};

use super::{call, integer, intern, protect, Protected, Value};

unsafe extern "C-unwind" {
    fn rb_str_new(bytes: *const u8, size: c_long) -> Value;
    fn rb_str_new_static(bytes: *const u8, size: c_long) -> Value;
    fn rb_utf8_str_new(bytes: *const u8, size: c_long) -> Value;
    fn rb_filesystem_str_new(bytes: *const u8, size: c_long) -> Value;
    fn rb_str_resize(string: Value, size: c_long) -> Value;
    fn rb_str_freeze(string: Value) -> Value;
    fn rb_string_value_ptr(string: *mut Value) -> *const u8;
    fn rb_string_value_cstr(string: *mut Value) -> *const c_char;
    fn rb_get_path(path: Value) -> Value;
}

/// A new binary string.
pub fn binary(bytes: &[u8]) -> Protected {
    // SAFETY: pointer and size are those of a slice, which is copied.
    protect(|| unsafe { rb_str_new(bytes.as_ptr(), bytes.len() as c_long) })
}

/// A new binary string over memory that is never unmapped and never changes.
pub fn binary_static(bytes: &'static [u8]) -> Protected {
    // SAFETY: pointer and size are those of a slice that lives as long as the process.
    protect(|| unsafe { rb_str_new_static(bytes.as_ptr(), bytes.len() as c_long) })
}

/// Gives `look` a binary string over memory that need not live longer than that.
pub fn with_binary<T>(bytes: &[u8], look: impl FnOnce(Value) -> Protected<T>) -> Protected<T> {
    // SAFETY: whoever finds the string later (in ObjectSpace) finds it empty: below it gets memory of its own.
    let string = protect(|| unsafe { rb_str_new_static(bytes.as_ptr(), bytes.len() as c_long) })?;
    let result = look(string);
    clear(string)?;
    result
}

/// Takes a string's memory from it, so that nobody has to wait for the garbage collector.
pub fn clear(string: Value) -> Protected<()> {
    // SAFETY: a string. It gets shorter.
    protect(|| unsafe { rb_str_resize(string, 0) }).map(drop)
}

/// A new UTF-8 string.
pub fn text(bytes: &[u8]) -> Protected {
    // SAFETY: pointer and size are those of a slice, which is copied.
    protect(|| unsafe { rb_utf8_str_new(bytes.as_ptr(), bytes.len() as c_long) })
}

/// The bytes of a string without NUL: valid until Ruby runs again, and as long as the string is where that is frozen. Raises where
/// there is a NUL, and for other objects.
pub fn c_bytes<'a>(string: Value) -> Protected<&'a CStr> {
    // SAFETY: Ruby answers with a C string, or raises.
    protect(|| unsafe { CStr::from_ptr(rb_string_value_cstr(&mut { string })) })
}

/// A string's bytes where they are: valid until Ruby runs again, and as long as the string is where that is frozen. Raises for
/// other objects.
pub fn bytes_in_place<'a>(string: Value) -> Protected<&'a [u8]> {
    let size = integer(call(string, intern("bytesize")?, &[])?)?;
    // SAFETY: Ruby answers with the start of that many bytes, or raises; nothing has run in between.
    protect(|| unsafe { std::slice::from_raw_parts(rb_string_value_ptr(&mut { string }), size as usize) })
}

/// A copy of a string's bytes. Raises for other objects.
pub fn bytes(string: Value) -> Protected<Vec<u8>> {
    bytes_in_place(string).map(<[u8]>::to_vec)
}

pub fn freeze(string: Value) -> Protected {
    // SAFETY: a string.
    protect(|| unsafe { rb_str_freeze(string) })
}

/// The path that a program gave, as Ruby understands it: to_path, to_str. Raises TypeError and others.
pub fn path(object: Value) -> Protected {
    // SAFETY: any object will do.
    protect(|| unsafe { rb_get_path(object) })
}

/// A path as the file system gives it, in its encoding.
pub fn file_name(path: &[u8]) -> Protected {
    // SAFETY: pointer and size are those of a slice, which is copied.
    protect(|| unsafe { rb_filesystem_str_new(path.as_ptr(), path.len() as c_long) })
}
