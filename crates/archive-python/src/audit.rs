//! Events that CPython raises for auditing.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::OnceLock;

use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::document::utf8;

type Hook = extern "C" fn(*const c_char, *mut PyObject, *mut c_void) -> c_int;

extern "C" {
    // Not part of the stable ABI, but exported, with this signature, by every version from 3.8 on.
    fn PySys_AddAuditHook(hook: Hook, data: *mut c_void) -> c_int;
}

/// What is called before somebody looks at all objects.
type Listener = Box<dyn Fn(Python<'_>) -> PyResult<()> + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// What is called with the path of each file that is opened to be read.
static READS: OnceLock<fn(&str)> = OnceLock::new();
static IS_LISTENING: AtomicBool = AtomicBool::new(false);

/// Has `listener` called before anybody looks at all objects or at those that refer to one. Only the first one counts.
pub fn listen(python: Python<'_>, listener: Listener) {
    let _ = LISTENER.set(listener);
    begin(python);
}

/// Has `note` called with the path, a str, of each file that is opened to be read. Only the first one counts.
pub fn listen_to_reads(python: Python<'_>, note: fn(&str)) {
    let _ = READS.set(note);
    begin(python);
}

fn begin(_: Python<'_>) {
    if !IS_LISTENING.swap(true, Ordering::Relaxed) {
        // SAFETY: the token says that this thread may call Python. The function lies in a library that is never unloaded, and takes no
        // data.
        unsafe {
            PySys_AddAuditHook(hear, std::ptr::null_mut());
        }
    }
}

/// The path in the arguments of the event `open`: it, the mode and the flags.
fn note_read(note: fn(&str), arguments: &Bound<'_, PyAny>) {
    let text = |index| arguments.cast::<PyTuple>().ok()?.get_item(index).ok()?.cast_into_exact::<PyString>().ok();
    if let (Some(path), Some(mode)) = (text(0), text(1)) {
        if let (Some(path), Some(b"r" | b"rb")) = (utf8(&path), utf8(&mode)) {
            note(std::str::from_utf8(path).unwrap_or_default());
        }
    }
}

extern "C" fn hear(event: *const c_char, arguments: *mut PyObject, _: *mut c_void) -> c_int {
    // SAFETY: CPython gives the name of the event, a string that lives until this returns.
    let event = unsafe { CStr::from_ptr(event) };
    let is_heard = event == c"open" || event == c"gc.get_objects" || event == c"gc.get_referrers";
    if !is_heard {
        return 0;
    }
    // SAFETY: these events are raised by functions of Python, which hold the interpreter's lock, also while it ends: attaching once more
    // would abort the process then.
    let python = unsafe { Python::assume_attached() };
    if event == c"open" {
        // SAFETY: CPython gives an object that lives until the event is over.
        let arguments = unsafe { Bound::from_borrowed_ptr_or_opt(python, arguments) };
        if let (Some(note), Some(arguments)) = (READS.get(), arguments) {
            note_read(*note, &arguments);
        }
    } else if let Some(listener) = LISTENER.get() {
        // An error would keep the program from doing what it is about to do.
        let _ = listener(python);
    }
    0
}
