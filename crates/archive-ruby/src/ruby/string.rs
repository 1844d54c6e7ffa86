//! Strings, and paths as Ruby understands them.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_long, CStr, CString};

use super::{Protected, Ruby, Value};

unsafe extern "C-unwind" {
    fn rb_str_new<'r>(bytes: *const u8, size: c_long) -> Value<'r>;
    fn rb_str_new_static<'r>(bytes: *const u8, size: c_long) -> Value<'r>;
    fn rb_utf8_str_new<'r>(bytes: *const u8, size: c_long) -> Value<'r>;
    fn rb_filesystem_str_new<'r>(bytes: *const u8, size: c_long) -> Value<'r>;
    fn rb_str_resize<'r>(string: Value<'r>, size: c_long) -> Value<'r>;
    fn rb_str_freeze<'r>(string: Value<'r>) -> Value<'r>;
    fn rb_string_value_ptr(string: *mut Value<'_>) -> *const u8;
    fn rb_string_value_cstr(string: *mut Value<'_>) -> *const c_char;
    fn rb_obj_frozen_p(object: Value<'_>) -> Value<'static>;
    fn rb_get_path<'r>(path: Value<'_>) -> Value<'r>;
}

impl<'r> Ruby<'r> {
    /// A new binary string.
    pub fn binary(self, bytes: &[u8]) -> Protected<Value<'r>> {
        // SAFETY: pointer and size are those of a slice, which is copied.
        self.protect(|| unsafe { rb_str_new(bytes.as_ptr(), bytes.len() as c_long) })
    }

    /// A new binary string over memory that is never unmapped and never changes.
    pub fn binary_static(self, bytes: &'static [u8]) -> Protected<Value<'r>> {
        // SAFETY: pointer and size are those of a slice that lives as long as the process.
        self.protect(|| unsafe { rb_str_new_static(bytes.as_ptr(), bytes.len() as c_long) })
    }

    /// Passes a binary string to `look`, over memory that need not live longer than that.
    pub fn with_binary<T>(self, bytes: &[u8], look: impl FnOnce(Value<'r>) -> Protected<T>) -> Protected<T> {
        // SAFETY: whoever finds the string later (in ObjectSpace) finds it empty: below it gets memory of its own.
        let string = self.protect(|| unsafe { rb_str_new_static(bytes.as_ptr(), bytes.len() as c_long) })?;
        let result = look(string);
        self.clear(string)?;
        result
    }

    /// Frees a string's memory now, instead of at the next collection.
    pub fn clear(self, string: Value<'_>) -> Protected<()> {
        // SAFETY: a string. It gets shorter.
        self.protect(|| unsafe { rb_str_resize(string, 0) }).map(drop)
    }

    /// A new UTF-8 string.
    pub fn text(self, bytes: &[u8]) -> Protected<Value<'r>> {
        // SAFETY: pointer and size are those of a slice, which is copied.
        self.protect(|| unsafe { rb_utf8_str_new(bytes.as_ptr(), bytes.len() as c_long) })
    }

    /// A string's bytes where they are.
    ///
    /// # Safety
    /// They are valid until Ruby runs again, or as long as the string is on the stack where that is frozen.
    unsafe fn bytes_in_place<'a>(self, string: Value<'_>) -> Protected<&'a [u8]> {
        let size = self.integer(self.send(string, "bytesize", &[])?)?;
        // SAFETY: Ruby answers with the start of that many bytes, or raises; nothing has run in between.
        self.protect(|| unsafe { std::slice::from_raw_parts(rb_string_value_ptr(&mut { string }), size as usize) })
    }

    /// A frozen string's bytes where they are. `None`: it is not frozen. Raises for other objects.
    ///
    /// # Safety
    /// The string stays on the stack for as long as the bytes are used.
    pub unsafe fn frozen_bytes(self, string: Value<'r>) -> Protected<Option<&'r [u8]>> {
        // SAFETY: an object, which is only read.
        if !unsafe { rb_obj_frozen_p(string) }.is_truthy() {
            return Ok(None);
        }
        // SAFETY: it is frozen, and stays by this function's own rule.
        unsafe { self.bytes_in_place(string) }.map(Some)
    }

    /// Passes a string's bytes to `look`, without a copy. Raises for other objects. A `Send` closure cannot hold the token, so `look`
    /// cannot run Ruby, which might change the string.
    pub fn with_bytes<T>(self, string: Value<'_>, look: impl FnOnce(&[u8]) -> T + Send) -> Protected<T> {
        // SAFETY: Ruby does not run before `look` returns.
        unsafe { self.bytes_in_place(string) }.map(look)
    }

    /// A copy of a string's bytes. Raises for other objects.
    pub fn bytes(self, string: Value<'_>) -> Protected<Vec<u8>> {
        self.with_bytes(string, <[u8]>::to_vec)
    }

    /// Whether a string has exactly these bytes. Raises for other objects.
    pub fn is_bytes(self, string: Value<'_>, bytes: &[u8]) -> Protected<bool> {
        self.with_bytes(string, |string| string == bytes)
    }

    /// A copy of the bytes of a string without NUL. Raises where there is a NUL, and for other objects.
    pub fn c_bytes(self, string: Value<'_>) -> Protected<CString> {
        // SAFETY: Ruby answers with a C string, or raises.
        let bytes = self.protect(|| unsafe { CStr::from_ptr(rb_string_value_cstr(&mut { string })) })?;
        Ok(bytes.into())
    }

    pub fn freeze(self, string: Value<'r>) -> Protected<Value<'r>> {
        // SAFETY: a string.
        self.protect(|| unsafe { rb_str_freeze(string) })
    }

    /// The path that a program gave, as Ruby understands it: to_path, to_str. Raises TypeError and others.
    pub fn path(self, object: Value<'_>) -> Protected<Value<'r>> {
        // SAFETY: any object will do.
        self.protect(|| unsafe { rb_get_path(object) })
    }

    /// A path as the file system gives it, in its encoding.
    pub fn file_name(self, path: &[u8]) -> Protected<Value<'r>> {
        // SAFETY: pointer and size are those of a slice, which is copied.
        self.protect(|| unsafe { rb_filesystem_str_new(path.as_ptr(), path.len() as c_long) })
    }
}
