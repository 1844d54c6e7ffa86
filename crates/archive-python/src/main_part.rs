//! Runs a program's main part in the place of Python, which tells that it is about to run it.
//!
//! With lazy imports the main part has other code than Python would compile. Python raises an event for auditing right before it reads a
//! script or compiles the text of `-c`, with no code of its own running: what is run then is run as if Python did it. An exception there keeps
//! Python from going on, and is treated as one of the main part; `SystemExit` so ends a main part that Python is not to run again.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::null_mut;
use std::sync::OnceLock;

use pyo3::exceptions::{PyKeyboardInterrupt, PySystemExit};
use pyo3::ffi::{PyEval_EvalCode, PyObject};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

type Hook = extern "C" fn(*const c_char, *mut PyObject, *mut c_void) -> c_int;

extern "C" {
    // Not part of the stable ABI, but exported, with these signatures, by every version from 3.8 on.
    fn PySys_AddAuditHook(hook: Hook, data: *mut c_void) -> c_int;
    fn PyRun_StringFlags(
        text: *const c_char,
        start: c_int,
        globals: *mut PyObject,
        locals: *mut PyObject,
        flags: *mut c_void,
    ) -> *mut PyObject;
}

/// `Py_file_input` of CPython's compile.h.
const FILE_INPUT: c_int = 257;

static PREPARE: OnceLock<Py<PyAny>> = OnceLock::new();

/// Adds the function to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run_main, module)?)
}

/// run_main(prepare) -> None. Has the main part of a script or of `-c` be what prepare(event, value) gives: code and the names of its
/// module; None: Python is to run it. event, value: see `cpython.run_file` and `cpython.run_command` of Python's documentation.
#[pyfunction]
fn run_main(prepare: Py<PyAny>) {
    if PREPARE.set(prepare).is_ok() {
        // SAFETY: Python has called this. The function lies in a library that is never unloaded, and takes no data. An exception is one
        // of another hook, which did not want this one.
        unsafe {
            if PySys_AddAuditHook(hear, null_mut()) != 0 {
                pyo3::ffi::PyErr_Clear();
            }
        }
    }
}

extern "C" fn hear(event: *const c_char, arguments: *mut PyObject, _: *mut c_void) -> c_int {
    // SAFETY: CPython gives the name of the event, a string that lives until this returns.
    let event = unsafe { CStr::from_ptr(event) };
    if !matches!(event.to_bytes(), b"cpython.run_file" | b"cpython.run_command") {
        return 0;
    }
    // SAFETY: CPython raises these events in its main thread, which holds the interpreter's lock.
    let python = unsafe { Python::assume_attached() };
    // SAFETY: CPython gives an object that lives until the event is over.
    let arguments = unsafe { Bound::from_borrowed_ptr_or_opt(python, arguments) };
    let name = event.to_str().unwrap_or_default();
    match arguments.and_then(|arguments| prepare(python, name, &arguments)) {
        None => 0,
        Some((code, names)) => {
            let error = match run(&code, &names) {
                Ok(()) => PySystemExit::new_err(()),
                Err(error) => error,
            };
            if name == "cpython.run_file" {
                // As Python does.
                for name in ["__file__", "__cached__"] {
                    let _ = names.del_item(name);
                }
            }
            error.restore(python);
            -1
        }
    }
}

/// Code and names of the main part. `None`: Python has to run it.
fn prepare<'py>(
    python: Python<'py>,
    event: &str,
    arguments: &Bound<'py, PyAny>,
) -> Option<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
    let value = arguments.cast::<PyTuple>().ok()?.get_item(0).ok()?;
    PREPARE.get()?.bind(python).call1((event, value)).ok()?.extract().ok()
}

/// Runs code that belongs to no function.
fn run(code: &Bound<'_, PyAny>, names: &Bound<'_, PyDict>) -> PyResult<()> {
    let python = code.py();
    // SAFETY: all are objects that live until the call returns. The result is a new reference, or null with an exception set.
    let result = unsafe {
        let result = PyEval_EvalCode(code.as_ptr(), names.as_ptr(), names.as_ptr());
        Bound::from_owned_ptr_or_err(python, result)
    };
    let error = match result {
        Ok(_) => return Ok(()),
        Err(error) => error,
    };
    if error.is_instance_of::<PyKeyboardInterrupt>(python) {
        // Python's end is another one when what it has run itself was interrupted.
        // SAFETY: the text ends with a null character, and the names are a dict. An exception is what it is run for.
        unsafe {
            let raise = c"raise KeyboardInterrupt";
            let _ = Bound::from_owned_ptr_or_err(
                python,
                PyRun_StringFlags(raise.as_ptr(), FILE_INPUT, names.as_ptr(), names.as_ptr(), null_mut()),
            );
        }
    }
    Err(error)
}
