//! Interned strings that decoded code has used before, found without asking Python.
//!
//! Modules share most of their names. Interning one takes a new string, its hash and a look-up in Python's own table; here the name's bytes
//! lead to the interned string.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::c_char;
use std::hash::{BuildHasherDefault, Hasher};

use pyo3::ffi::{PyObject, PyUnicode_FromStringAndSize, PyUnicode_InternInPlace, Py_ssize_t};

use super::layout::Layout;

/// By a hash of their bytes. The table holds a reference to each for ever, as code does.
#[derive(Default)]
pub struct Names(HashMap<u64, Name, BuildHasherDefault<AsIs>>);

struct Name(*mut PyObject);

// SAFETY: only used by who holds the interpreter's lock.
unsafe impl Send for Name {}

impl Names {
    /// The interned string of that UTF-8 text, which the caller does not own; null, with an exception set, where there is no memory.
    ///
    /// # Safety
    /// The caller holds the interpreter's lock, and `layout` is that of the Python that runs.
    pub unsafe fn interned(&mut self, layout: &Layout, text: &[u8]) -> *mut PyObject {
        let hash = hash(text);
        if let Some(name) = self.0.get(&hash) {
            // SAFETY: the table holds a reference to this string.
            if unsafe { layout.ascii_text(name.0) } == Some(text) {
                return name.0;
            }
        }
        // SAFETY: so many bytes are there; a new string is the caller's, and interning exchanges it for another at most.
        unsafe {
            let mut name = PyUnicode_FromStringAndSize(text.as_ptr().cast::<c_char>(), text.len() as Py_ssize_t);
            if !name.is_null() {
                PyUnicode_InternInPlace(&mut name);
                self.0.entry(hash).or_insert(Name(name));
            }
            name
        }
    }
}

/// A fast hash for short texts. In any case, the text is compared.
fn hash(text: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15; // 2^64 divided by the golden ratio
    let mut hash = text.len() as u64;
    let mut words = text.chunks_exact(8);
    for word in &mut words {
        let word = word.try_into().map_or(0, u64::from_le_bytes);
        hash = (hash.rotate_left(5) ^ word).wrapping_mul(MULTIPLIER);
    }
    for byte in words.remainder() {
        hash = (hash.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(MULTIPLIER);
    }
    hash ^ hash >> 32
}

/// For keys that are already hashes.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0 << 8 | u64::from(*byte);
        }
    }
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}
