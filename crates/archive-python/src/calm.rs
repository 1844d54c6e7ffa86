//! Calls a function of Python once the boot has calmed down ([`archive::session::when_calm`]), in a thread that is not the program's: its
//! signal handlers, trace functions and exceptions have no part in it. The main thread waits meanwhile, between two of its instructions, so
//! it neither forks nor changes anything.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use archive::session::{go_on, let_work, Work};
use pyo3::ffi::{PyEval_RestoreThread, PyEval_SaveThread, Py_AddPendingCall};
use pyo3::prelude::*;

static FUNCTION: OnceLock<Py<PyAny>> = OnceLock::new();

/// when_calm(function) -> None. Calls it, without arguments, once no module was looked for during a while, and again after more were. Only the
/// first function counts.
#[pyfunction]
pub fn when_calm(function: Py<PyAny>) {
    if FUNCTION.set(function).is_ok() {
        archive::session::when_calm(Work { ask, after_fork, run });
    }
}

/// Has the main thread call [`wait`] soon.
fn ask() -> bool {
    // SAFETY: any thread may call it, with or without the interpreter's lock. The function lies in a library that is never unloaded.
    unsafe { Py_AddPendingCall(Some(wait), std::ptr::null_mut()) == 0 }
}

/// Has the main thread begin anew soon: it is still inside of `os.fork`, which counts threads.
fn after_fork() {
    // SAFETY: as above. If it cannot take one more call, nothing is reported until more is loaded.
    unsafe { Py_AddPendingCall(Some(begin), std::ptr::null_mut()) };
}

extern "C" fn begin(_: *mut c_void) -> c_int {
    go_on();
    0
}

extern "C" fn wait(_: *mut c_void) -> c_int {
    // SAFETY: CPython calls this with the interpreter's lock, which it takes again here before it goes on.
    let_work(|join| unsafe {
        let state = PyEval_SaveThread();
        join();
        PyEval_RestoreThread(state);
    });
    0
}

fn run() {
    Python::attach(|python| {
        if let Some(function) = FUNCTION.get() {
            // An error does not concern the program.
            let _ = function.call0(python);
        }
    });
}
