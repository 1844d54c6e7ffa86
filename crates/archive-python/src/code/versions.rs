//! The numbers by which CPython identifies code from 3.12 on: a specialised call remembers the number of its target, so no two code objects
//! of an interpreter may have the same one. Since 3.13 calls of functions without a number are not specialised.
//!
//! The interpreter numbers the code that it creates itself. So each code object made here gets the number of an empty one that the
//! interpreter creates, and that is released at once.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};

use pyo3::ffi::{PyErr_Clear, PyObject, Py_DecRef};
use pyo3::Python;

use super::layout::{read, Layout};

extern "C" {
    // Not part of the stable ABI, but exported by every version.
    fn PyCode_NewEmpty(file: *const c_char, function: *const c_char, line: c_int) -> *mut PyObject;
}

/// A number that no code object has; 0, which means none, if they have run out. `None`: there is no memory. `field`: its offset in code.
///
/// # Safety
/// The caller holds the interpreter's lock, and code has such a field.
pub unsafe fn unused(field: usize) -> Option<u32> {
    // SAFETY: both texts end with a zero byte, and nobody else refers to the new object.
    unsafe {
        let code = PyCode_NewEmpty(c"".as_ptr(), c"".as_ptr(), 1);
        if code.is_null() {
            PyErr_Clear();
            return None;
        }
        let number = read::<u32>(code, field);
        Py_DecRef(code);
        Some(number)
    }
}

/// Whether the interpreter counts new code in the field of this layout, which is otherwise known to be right.
pub fn are_counted(_: Python<'_>, layout: &Layout) -> bool {
    layout.version.is_none_or(|field| {
        // SAFETY: the token says that this thread holds the lock, and the field lies within the size of code.
        let [first, second, third] = [0; 3].map(|_| unsafe { unused(field) }.unwrap_or_default());
        first != 0 && first.checked_add(1) == Some(second) && second.checked_add(1) == Some(third)
    })
}
