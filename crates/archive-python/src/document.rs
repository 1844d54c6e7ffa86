//! Makes the objects of a parsed document from the notation of notation.rs, which describes the format.
#![allow(unsafe_code)]

use pyo3::ffi::{self, PyObject, Py_ssize_t};
use pyo3::prelude::*;

/// Deeper than most documents, and far from a stack overflow.
pub const DEEPEST: usize = 100;

extern "C" {
    // Not part of the stable ABI, but exported, with these signatures, by every version from 3.5 on.
    fn PyODict_New() -> *mut PyObject;
    fn PyODict_SetItem(dict: *mut PyObject, key: *mut PyObject, value: *mut PyObject) -> i32;
    static mut PyODict_Type: PyObject;
    // Part of the stable ABI from 3.10 on; exported, with this signature, by every version from 3.3 on.
    fn PyUnicode_AsUTF8AndSize(text: *mut PyObject, size: *mut Py_ssize_t) -> *const u8;
}

/// The address of the type `collections.OrderedDict`.
pub fn ordered_type() -> *mut PyObject {
    &raw mut PyODict_Type
}

/// A str in UTF-8, which it caches as long as it lives; `None` if it cannot be encoded.
pub fn utf8<'a>(text: &'a Bound<'_, pyo3::types::PyString>) -> Option<&'a [u8]> {
    // SAFETY: the object is a str, which lives as long as the result.
    unsafe { utf8_of(text.as_ptr()) }
}

/// The same.
///
/// # Safety
/// `text` is a str, lives as long as the result is used, and the caller holds the interpreter's lock.
pub unsafe fn utf8_of<'a>(text: *mut PyObject) -> Option<&'a [u8]> {
    let mut size: Py_ssize_t = 0;
    // SAFETY: what the call gives lives as long as the str does, and is not changed meanwhile: a str never is.
    unsafe {
        let bytes = PyUnicode_AsUTF8AndSize(text, &mut size);
        if bytes.is_null() {
            ffi::PyErr_Clear();
            return None;
        }
        Some(std::slice::from_raw_parts(bytes, size as usize))
    }
}

/// The object of a payload, if it is one. Leaves no exception set.
pub fn read<'py>(python: Python<'py>, payload: &[u8]) -> Option<Bound<'py, PyAny>> {
    let mut reader = Reader { python, rest: payload, texts: Vec::new(), shared: Vec::new() };
    let object = reader.object(0).filter(|_| reader.rest.is_empty());
    if object.is_none() {
        drop(PyErr::take(python));
    }
    object
}

/// The unread rest.
struct Reader<'a, 'py> {
    python: Python<'py>,
    rest: &'a [u8],
    /// Strings that may occur again.
    texts: Vec<Bound<'py, PyAny>>,
    /// Other objects that occur again.
    shared: Vec<Bound<'py, PyAny>>,
}

impl<'a, 'py> Reader<'a, 'py> {
    fn object(&mut self, depth: usize) -> Option<Bound<'py, PyAny>> {
        if depth > DEEPEST {
            return None;
        }
        match self.byte()? {
            b's' => self.text(),
            b'S' => {
                let text = self.text()?;
                self.texts.push(text.clone());
                Some(text)
            }
            b'r' => {
                let number = self.size()?;
                self.texts.get(number).cloned()
            }
            b'{' => self.dict(depth),
            b'<' => self.ordered(depth),
            b'[' => self.list(depth),
            b'(' => self.tuple(depth),
            b'i' => {
                let number = i64::from_le_bytes(self.number()?);
                // SAFETY: makes a new object; null is looked at.
                self.made(unsafe { ffi::PyLong_FromLongLong(number) })
            }
            b'1' => {
                let number = i64::from(self.byte()?);
                // SAFETY: the same.
                self.made(unsafe { ffi::PyLong_FromLongLong(number) })
            }
            b'f' => {
                let number = f64::from_le_bytes(self.number()?);
                // SAFETY: the same.
                self.made(unsafe { ffi::PyFloat_FromDouble(number) })
            }
            b'n' => Some(self.python.None().into_bound(self.python)),
            b'y' => Some(pyo3::types::PyBool::new(self.python, true).to_owned().into_any()),
            b'x' => Some(pyo3::types::PyBool::new(self.python, false).to_owned().into_any()),
            b'b' => {
                let bytes = self.bytes()?;
                Some(pyo3::types::PyBytes::new(self.python, bytes).into_any())
            }
            b'=' => {
                let object = self.object(depth + 1)?;
                self.shared.push(object.clone());
                Some(object)
            }
            b'*' => {
                let number = self.size()?;
                self.shared.get(number).cloned()
            }
            // A type of `datetime`, and its arguments.
            b'd' => {
                let kind = std::str::from_utf8(self.bytes()?).ok()?;
                let arguments = self.object(depth + 1)?.cast_into::<pyo3::types::PyTuple>().ok()?;
                let module = self.python.import("datetime").ok()?;
                module.getattr(kind).ok()?.call1(arguments).ok()
            }
            _ => None,
        }
    }

    fn dict(&mut self, depth: usize) -> Option<Bound<'py, PyAny>> {
        // SAFETY: makes a new object; null is looked at.
        let dict = self.made(unsafe { ffi::PyDict_New() })?;
        for _ in 0..self.size()? {
            let (key, value) = (self.object(depth + 1)?, self.object(depth + 1)?);
            // SAFETY: three objects that live, the first one a dict.
            if unsafe { ffi::PyDict_SetItem(dict.as_ptr(), key.as_ptr(), value.as_ptr()) } != 0 {
                return None;
            }
        }
        Some(dict)
    }

    fn ordered(&mut self, depth: usize) -> Option<Bound<'py, PyAny>> {
        // SAFETY: makes a new object; null is looked at.
        let dict = self.made(unsafe { PyODict_New() })?;
        for _ in 0..self.size()? {
            let (key, value) = (self.object(depth + 1)?, self.object(depth + 1)?);
            // SAFETY: three objects that live, the first one an OrderedDict.
            if unsafe { PyODict_SetItem(dict.as_ptr(), key.as_ptr(), value.as_ptr()) } != 0 {
                return None;
            }
        }
        Some(dict)
    }

    fn list(&mut self, depth: usize) -> Option<Bound<'py, PyAny>> {
        let size = self.size_of_rest()?;
        // SAFETY: makes a new object; null is looked at. Until it is full, no Python code sees it.
        let list = self.made(unsafe { ffi::PyList_New(size) })?;
        for index in 0..size {
            let element = self.object(depth + 1)?;
            // SAFETY: a list of more than `index` places, and an object that it takes over.
            unsafe { ffi::PyList_SetItem(list.as_ptr(), index, element.into_ptr()) };
        }
        Some(list)
    }

    fn tuple(&mut self, depth: usize) -> Option<Bound<'py, PyAny>> {
        let size = self.size_of_rest()?;
        // SAFETY: makes a new object; null is looked at. Nobody else has it until it is full.
        let tuple = self.made(unsafe { ffi::PyTuple_New(size) })?;
        for index in 0..size {
            let element = self.object(depth + 1)?;
            // SAFETY: a tuple of more than `index` places, and an object that it takes over.
            unsafe { ffi::PyTuple_SetItem(tuple.as_ptr(), index, element.into_ptr()) };
        }
        Some(tuple)
    }

    fn text(&mut self) -> Option<Bound<'py, PyAny>> {
        let bytes = self.bytes()?;
        // SAFETY: makes a new object of bytes that live; null is looked at.
        self.made(unsafe { ffi::PyUnicode_FromStringAndSize(bytes.as_ptr().cast(), bytes.len() as Py_ssize_t) })
    }

    fn made(&self, made: *mut PyObject) -> Option<Bound<'py, PyAny>> {
        // SAFETY: a new reference, or null.
        unsafe { Bound::from_owned_ptr_or_opt(self.python, made) }
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*byte)
    }

    /// A number in groups of seven bits, the highest first; all but the last have the top bit.
    fn size(&mut self) -> Option<usize> {
        let mut size = 0_usize;
        loop {
            let byte = self.byte()?;
            size = size.checked_mul(128)? | usize::from(byte & 0x7f);
            if byte < 0x80 {
                return Some(size);
            }
        }
    }

    /// A number of objects: each takes at least a byte.
    fn size_of_rest(&mut self) -> Option<Py_ssize_t> {
        let size = self.size()?;
        (size <= self.rest.len()).then_some(size as Py_ssize_t)
    }

    /// Bytes after their number.
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let size = self.size()?;
        let (bytes, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        Some(bytes)
    }

    fn number(&mut self) -> Option<[u8; 8]> {
        let (number, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*number)
    }
}
