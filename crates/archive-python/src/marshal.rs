//! Does what `marshal.dumps` and `marshal.loads` do, but reads bytes in place.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int};

use pyo3::ffi::{PyObject, Py_ssize_t};
use pyo3::prelude::*;

extern "C" {
    // Not part of the stable ABI, but exported, with this signature, by every version from 2.0 on.
    fn PyMarshal_ReadObjectFromString(bytes: *const c_char, size: Py_ssize_t) -> *mut PyObject;
    // The same, from 2.4 on.
    fn PyMarshal_WriteObjectToString(object: *mut PyObject, version: c_int) -> *mut PyObject;
}

/// `Py_MARSHAL_VERSION` of marshal.h. An earlier one cannot express all constants of the compiler: 3.14 has constant slices.
fn version(python: Python<'_>) -> c_int {
    match python.version_info().minor {
        ..14 => 4,
        14 => 5,
        _ => 6,
    }
}

/// Decodes an object. Raises what `marshal.loads` raises. The bytes must come from the same version of Python.
pub fn load<'py>(python: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the bytes live until the call returns, which copies what it keeps of them. The token says that this thread may call
    // Python. The result is a new reference, or null with an exception set.
    unsafe {
        let object = PyMarshal_ReadObjectFromString(bytes.as_ptr().cast(), bytes.len() as Py_ssize_t);
        Bound::from_owned_ptr_or_err(python, object)
    }
}

/// Encodes an object. Raises what `marshal.dumps` raises.
pub fn save(object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let version = version(object.py());
    // SAFETY: a new reference to bytes, or null with an exception set.
    let bytes =
        unsafe { Bound::from_owned_ptr_or_err(object.py(), PyMarshal_WriteObjectToString(object.as_ptr(), version))? };
    bytes.extract()
}
