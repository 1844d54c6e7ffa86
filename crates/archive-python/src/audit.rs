//! Events that CPython raises for auditing.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::OnceLock;

use pyo3::ffi::PyObject;
use pyo3::prelude::*;

type Hook = extern "C" fn(*const c_char, *mut PyObject, *mut c_void) -> c_int;

extern "C" {
    // Not part of the stable ABI, but exported, with this signature, by every version from 3.8 on.
    fn PySys_AddAuditHook(hook: Hook, data: *mut c_void) -> c_int;
}

/// What is called with each event.
type Listener = Box<dyn Fn(&[u8]) -> PyResult<()> + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Has `listener` called with the name of each event, from now to the end of the process. Only the first one counts.
pub fn listen(_: Python<'_>, listener: Listener) {
    if LISTENER.set(listener).is_ok() {
        // SAFETY: the token says that this thread may call Python. The function lies in a library that is never unloaded, and takes no
        // data.
        unsafe {
            PySys_AddAuditHook(hear, std::ptr::null_mut());
        }
    }
}

extern "C" fn hear(event: *const c_char, _: *mut PyObject, _: *mut c_void) -> c_int {
    // SAFETY: CPython gives the name of the event, a string that lives until this returns.
    let event = unsafe { CStr::from_ptr(event) };
    // An error would keep the program from doing what it is about to do.
    if let Some(listener) = LISTENER.get() {
        let _ = listener(event.to_bytes());
    }
    0
}
