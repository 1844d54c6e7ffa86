//! Ruby's C API for making objects of data: what [`crate::ruby`] is for the rest, by the same rules.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_long, c_void, CStr};

use crate::ruby::{self, Value};

unsafe extern "C-unwind" {
    safe fn rb_utf8_encoding() -> *mut c_void;
    fn rb_enc_interned_str(bytes: *const u8, size: c_long, encoding: *mut c_void) -> Value;
    fn rb_check_symbol_cstr(name: *const u8, size: c_long, encoding: *mut c_void) -> Value;
    safe fn rb_str_intern(string: Value) -> Value;
    safe fn rb_float_new(number: f64) -> Value;
    safe fn rb_ll2inum(number: i64) -> Value;
    safe fn rb_ary_new_capa(capacity: c_long) -> Value;
    safe fn rb_ary_freeze(array: Value) -> Value;
    safe fn rb_hash_new() -> Value;
    safe fn rb_hash_aset(hash: Value, key: Value, value: Value) -> Value;
    safe fn rb_hash_freeze(hash: Value) -> Value;
    fn rb_eval_string(source: *const c_char) -> Value;
}

/// The one frozen UTF-8 string with these bytes.
pub fn interned(bytes: &[u8]) -> Value {
    // SAFETY: pointer and size are those of a slice, which is copied.
    unsafe { rb_enc_interned_str(bytes.as_ptr(), bytes.len() as c_long, rb_utf8_encoding()) }
}

/// A symbol that the garbage collector may take, as from String#to_sym. Raises EncodingError.
pub fn symbol(name: &[u8]) -> Value {
    // SAFETY: pointer and size are those of a slice, which is only looked at.
    let known = unsafe { rb_check_symbol_cstr(name.as_ptr(), name.len() as c_long, rb_utf8_encoding()) };
    if known.is_nil() {
        return rb_str_intern(ruby::text(name));
    }
    known
}

pub fn float(number: f64) -> Value {
    rb_float_new(number)
}

pub fn integer(number: i64) -> Value {
    rb_ll2inum(number)
}

/// An empty array with room for so many elements. They are only a hint.
pub fn array(capacity: usize) -> Value {
    rb_ary_new_capa(capacity.min(1 << 16) as c_long)
}

pub fn freeze_array(array: Value) {
    rb_ary_freeze(array);
}

pub fn hash() -> Value {
    rb_hash_new()
}

/// hash[key] = value. May raise what the key's #hash raises.
pub fn put(hash: Value, key: Value, value: Value) {
    rb_hash_aset(hash, key, value);
}

pub fn freeze_hash(hash: Value) {
    rb_hash_freeze(hash);
}

/// The value of Ruby source at top level. May raise.
pub fn evaluated(source: &CStr) -> Value {
    // SAFETY: a C string, which is copied.
    unsafe { rb_eval_string(source.as_ptr()) }
}
