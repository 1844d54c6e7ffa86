//! Creates data objects: thousands of them, in one protected call.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_long, c_void, CStr};
use std::ops::Deref;

use super::{Protected, Ruby, Value};

unsafe extern "C-unwind" {
    fn rb_utf8_encoding() -> *mut c_void;
    fn rb_utf8_str_new<'r>(bytes: *const u8, size: c_long) -> Value<'r>;
    fn rb_enc_interned_str<'r>(bytes: *const u8, size: c_long, encoding: *mut c_void) -> Value<'r>;
    fn rb_check_symbol_cstr<'r>(name: *const u8, size: c_long, encoding: *mut c_void) -> Value<'r>;
    fn rb_str_intern<'r>(string: Value<'_>) -> Value<'r>;
    fn rb_float_new<'r>(number: f64) -> Value<'r>;
    fn rb_ll2inum<'r>(number: i64) -> Value<'r>;
    fn rb_ary_new_capa<'r>(capacity: c_long) -> Value<'r>;
    fn rb_ary_push<'r>(array: Value<'r>, element: Value<'_>) -> Value<'r>;
    fn rb_ary_freeze(array: Value<'_>) -> Value<'_>;
    fn rb_hash_new<'r>() -> Value<'r>;
    fn rb_hash_aset<'r>(hash: Value<'_>, key: Value<'_>, value: Value<'r>) -> Value<'r>;
    fn rb_hash_freeze(hash: Value<'_>) -> Value<'_>;
    fn rb_eval_string<'r>(source: *const c_char) -> Value<'r>;
}

/// Creates objects. Each of its methods may raise: they exist only within [`Ruby::make`].
pub struct Maker<'r>(Ruby<'r>);

impl<'r> Deref for Maker<'r> {
    type Target = Ruby<'r>;

    fn deref(&self) -> &Ruby<'r> {
        &self.0
    }
}

impl<'r> Ruby<'r> {
    /// Gives a maker to `work`. What ends one of its calls ends `work`.
    ///
    /// # Safety
    /// `work`, and whatever it calls, owns nothing that needs to be dropped while it calls the maker.
    pub unsafe fn make<T: Copy>(self, work: impl FnOnce(&Maker<'r>) -> T) -> Protected<T> {
        let mut work = Some(work);
        let work = &mut work;
        self.protect(move || work.take().map(|work| work(&Maker(self)))).map(|made| made.expect("it was there"))
    }
}

impl<'r> Maker<'r> {
    /// A new UTF-8 string.
    pub fn text(&self, bytes: &[u8]) -> Value<'r> {
        // SAFETY: pointer and size are those of a slice, which is copied.
        unsafe { rb_utf8_str_new(bytes.as_ptr(), bytes.len() as c_long) }
    }

    /// The one frozen UTF-8 string with these bytes.
    pub fn interned(&self, bytes: &[u8]) -> Value<'r> {
        // SAFETY: pointer and size are those of a slice, which is copied.
        unsafe { rb_enc_interned_str(bytes.as_ptr(), bytes.len() as c_long, rb_utf8_encoding()) }
    }

    /// A symbol that the garbage collector may take, as from String#to_sym. Raises EncodingError.
    pub fn symbol(&self, name: &[u8]) -> Value<'r> {
        // SAFETY: pointer and size are those of a slice, which is only looked at.
        let known = unsafe { rb_check_symbol_cstr(name.as_ptr(), name.len() as c_long, rb_utf8_encoding()) };
        if !known.is_nil() {
            return known;
        }
        // SAFETY: a string.
        unsafe { rb_str_intern(self.text(name)) }
    }

    pub fn float(&self, number: f64) -> Value<'r> {
        // SAFETY: it takes any number.
        unsafe { rb_float_new(number) }
    }

    pub fn integer(&self, number: i64) -> Value<'r> {
        // SAFETY: it takes any number.
        unsafe { rb_ll2inum(number) }
    }

    /// An empty array with room for so many elements. They are only a hint.
    pub fn array(&self, capacity: usize) -> Value<'r> {
        // SAFETY: it takes any number that is not negative.
        unsafe { rb_ary_new_capa(capacity.min(1 << 16) as c_long) }
    }

    pub fn push(&self, array: Value<'_>, element: Value<'_>) {
        // SAFETY: an array that was made here, and an object.
        unsafe { rb_ary_push(array, element) };
    }

    pub fn freeze_array(&self, array: Value<'_>) {
        // SAFETY: an array.
        unsafe { rb_ary_freeze(array) };
    }

    pub fn hash(&self) -> Value<'r> {
        // SAFETY: it takes nothing.
        unsafe { rb_hash_new() }
    }

    /// hash[key] = value. May raise what the key's #hash raises.
    pub fn put(&self, hash: Value<'_>, key: Value<'_>, value: Value<'_>) {
        // SAFETY: a Hash and two objects.
        unsafe { rb_hash_aset(hash, key, value) };
    }

    pub fn freeze_hash(&self, hash: Value<'_>) {
        // SAFETY: a Hash.
        unsafe { rb_hash_freeze(hash) };
    }

    /// The value of Ruby source at top level.
    pub fn evaluated(&self, source: &CStr) -> Value<'r> {
        // SAFETY: a C string, which is copied.
        unsafe { rb_eval_string(source.as_ptr()) }
    }
}
