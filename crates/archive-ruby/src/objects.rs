//! Ruby's C API for making objects of data: thousands of them, in one protected call.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_long, c_void, CStr};

use crate::ruby::{self, Protected, Value};

unsafe extern "C-unwind" {
    safe fn rb_utf8_encoding() -> *mut c_void;
    fn rb_utf8_str_new(bytes: *const u8, size: c_long) -> Value;
    fn rb_enc_interned_str(bytes: *const u8, size: c_long, encoding: *mut c_void) -> Value;
    fn rb_check_symbol_cstr(name: *const u8, size: c_long, encoding: *mut c_void) -> Value;
    fn rb_str_intern(string: Value) -> Value;
    fn rb_float_new(number: f64) -> Value;
    fn rb_ll2inum(number: i64) -> Value;
    fn rb_ary_new_capa(capacity: c_long) -> Value;
    fn rb_ary_push(array: Value, element: Value) -> Value;
    fn rb_ary_freeze(array: Value) -> Value;
    fn rb_hash_new() -> Value;
    fn rb_hash_aset(hash: Value, key: Value, value: Value) -> Value;
    fn rb_hash_freeze(hash: Value) -> Value;
    fn rb_eval_string(source: *const c_char) -> Value;
}

/// Makes objects. Each of its methods may raise: they exist only within [`make`].
pub struct Maker(());

/// Gives a maker to `work`. What ends one of its calls ends `work`.
///
/// # Safety
/// `work`, and whatever it calls, owns nothing that needs to be dropped while it calls the maker.
pub unsafe fn make<T: Copy>(work: impl FnOnce(&Maker) -> T) -> Protected<T> {
    let mut work = Some(work);
    let work = &mut work;
    ruby::protect(move || work.take().map(|work| work(&Maker(())))).map(|made| made.expect("it was there"))
}

impl Maker {
    /// A new UTF-8 string.
    pub fn text(&self, bytes: &[u8]) -> Value {
        // SAFETY: pointer and size are those of a slice, which is copied.
        unsafe { rb_utf8_str_new(bytes.as_ptr(), bytes.len() as c_long) }
    }

    /// The one frozen UTF-8 string with these bytes.
    pub fn interned(&self, bytes: &[u8]) -> Value {
        // SAFETY: pointer and size are those of a slice, which is copied.
        unsafe { rb_enc_interned_str(bytes.as_ptr(), bytes.len() as c_long, rb_utf8_encoding()) }
    }

    /// A symbol that the garbage collector may take, as from String#to_sym. Raises EncodingError.
    pub fn symbol(&self, name: &[u8]) -> Value {
        // SAFETY: pointer and size are those of a slice, which is only looked at.
        let known = unsafe { rb_check_symbol_cstr(name.as_ptr(), name.len() as c_long, rb_utf8_encoding()) };
        if !known.is_nil() {
            return known;
        }
        // SAFETY: a string.
        unsafe { rb_str_intern(self.text(name)) }
    }

    pub fn float(&self, number: f64) -> Value {
        // SAFETY: it takes any number.
        unsafe { rb_float_new(number) }
    }

    pub fn integer(&self, number: i64) -> Value {
        // SAFETY: it takes any number.
        unsafe { rb_ll2inum(number) }
    }

    /// An empty array with room for so many elements. They are only a hint.
    pub fn array(&self, capacity: usize) -> Value {
        // SAFETY: it takes any number that is not negative.
        unsafe { rb_ary_new_capa(capacity.min(1 << 16) as c_long) }
    }

    pub fn push(&self, array: Value, element: Value) {
        // SAFETY: an array that was made here, and an object.
        unsafe { rb_ary_push(array, element) };
    }

    pub fn freeze_array(&self, array: Value) {
        // SAFETY: an array.
        unsafe { rb_ary_freeze(array) };
    }

    pub fn hash(&self) -> Value {
        // SAFETY: it takes nothing.
        unsafe { rb_hash_new() }
    }

    /// hash[key] = value. May raise what the key's #hash raises.
    pub fn put(&self, hash: Value, key: Value, value: Value) {
        // SAFETY: a Hash and two objects.
        unsafe { rb_hash_aset(hash, key, value) };
    }

    pub fn freeze_hash(&self, hash: Value) {
        // SAFETY: a Hash.
        unsafe { rb_hash_freeze(hash) };
    }

    /// The value of Ruby source at top level.
    pub fn evaluated(&self, source: &CStr) -> Value {
        // SAFETY: a C string, which is copied.
        unsafe { rb_eval_string(source.as_ptr()) }
    }
}
