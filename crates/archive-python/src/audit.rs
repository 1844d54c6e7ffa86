//! CPython's audit events: reads of all objects, and the program's own changes of directories.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::OnceLock;

use pyo3::ffi::{PyErr_Clear, PyErr_Occurred, PyLong_AsLong, PyObject, PyTuple_GetItem, PyTuple_Size};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::document::utf8;

type Hook = extern "C" fn(*const c_char, *mut PyObject, *mut c_void) -> c_int;

extern "C" {
    // Not part of the stable ABI, but exported, with this signature, by every version from 3.8 on.
    fn PySys_AddAuditHook(hook: Hook, data: *mut c_void) -> c_int;
}

/// Called before anybody reads all objects.
type Listener = Box<dyn Fn(Python<'_>) -> PyResult<()> + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();
static IS_HOOKED: AtomicBool = AtomicBool::new(false);

/// Whether directories may have changed.
static CHANGES: AtomicU8 = AtomicU8::new(NONE);
const NONE: u8 = 0;
const ONCE: u8 = 1;
const ALWAYS: u8 = 2;

/// Whether the working directory was changed, or may have been since.
static HAS_MOVED: AtomicBool = AtomicBool::new(false);

/// Called with the path of each file that is opened for reading.
static READS: OnceLock<fn(&str)> = OnceLock::new();

/// Calls `listener` before anybody reads all objects or the referrers of one. Only the first listener counts.
pub fn listen(python: Python<'_>, listener: Listener) {
    let _ = LISTENER.set(listener);
    watch(python);
}

/// Calls `note` with the path of each file that is opened for reading. Only the first one counts.
pub fn listen_to_reads(python: Python<'_>, note: fn(&str)) {
    let _ = READS.set(note);
    watch(python);
}

/// Whether the program may have changed directories since the last call, from the first call of [`watch`] on.
pub fn has_changed() -> bool {
    CHANGES.compare_exchange(ONCE, NONE, Ordering::Relaxed, Ordering::Relaxed) != Err(NONE)
}

/// Whether the working directory may differ from that of the program's start. Once it may, it always may: an event precedes the change, and
/// other threads run in between.
pub fn may_have_moved() -> bool {
    HAS_MOVED.load(Ordering::Relaxed)
}

/// Receives events from now on.
pub fn watch(_: Python<'_>) {
    if IS_HOOKED.swap(true, Ordering::Relaxed) {
        return;
    }
    // SAFETY: the token says that this thread may call Python. The function lies in a library that is never unloaded, and takes no data. An
    // exception is one of another hook, which did not want this one.
    unsafe {
        if PySys_AddAuditHook(on_event, std::ptr::null_mut()) != 0 {
            PyErr_Clear();
            CHANGES.store(ALWAYS, Ordering::Relaxed);
            HAS_MOVED.store(true, Ordering::Relaxed);
        }
    }
}

/// Passes on the path, a str or bytes, from the arguments of the event `open`: path, mode and flags.
fn note_read(note: fn(&str), arguments: &Bound<'_, PyAny>) {
    let item = |index| arguments.cast::<PyTuple>().ok()?.get_item(index).ok();
    let (Some(path), Some(mode)) = (item(0), item(1).and_then(|mode| mode.cast_into_exact::<PyString>().ok())) else {
        return;
    };
    if !matches!(utf8(&mode), Some(b"r" | b"rb")) {
        return;
    }
    let path = match path.cast_exact::<PyString>() {
        Ok(path) => utf8(path),
        Err(_) => path.cast_exact::<PyBytes>().ok().map(|path| path.as_bytes()),
    };
    if let Some(path) = path.and_then(|path| std::str::from_utf8(path).ok()) {
        note(path);
    }
}

extern "C" fn on_event(event: *const c_char, arguments: *mut PyObject, _: *mut c_void) -> c_int {
    // SAFETY: CPython gives the name of the event, a string that lives until this returns.
    let event = unsafe { CStr::from_ptr(event) }.to_bytes();
    // A library function that ctypes finds may be the system's own.
    if matches!(event, b"os.chdir" | b"ctypes.dlsym") {
        HAS_MOVED.store(true, Ordering::Relaxed);
    }
    let changes = match event {
        b"open" if is_for_writing(arguments) => ONCE,
        b"os.mkdir" | b"os.rename" | b"os.remove" | b"os.rmdir" | b"os.link" | b"os.symlink" => ONCE,
        // Another process raises no events here.
        b"subprocess.Popen" | b"os.system" | b"os.posix_spawn" | b"os.spawn" | b"os.fork" | b"os.forkpty" => ALWAYS,
        b"os.startfile" | b"pty.spawn" => ALWAYS,
        _ => NONE,
    };
    if changes != NONE {
        CHANGES.fetch_max(changes, Ordering::Relaxed);
    }
    if !matches!(event, b"open" | b"gc.get_objects" | b"gc.get_referrers") {
        return 0;
    }
    // SAFETY: these events are raised by functions of Python, which hold the interpreter's lock, also while it ends: attaching once more
    // would abort the process then.
    let python = unsafe { Python::assume_attached() };
    if event == b"open" {
        // SAFETY: CPython gives an object that lives until the event is over.
        let arguments = unsafe { Bound::from_borrowed_ptr_or_opt(python, arguments) };
        if let (Some(note), Some(arguments)) = (READS.get(), arguments) {
            note_read(*note, &arguments);
        }
    } else if let Some(listener) = LISTENER.get() {
        // An error would prevent the program's next action.
        let _ = listener(python);
    }
    0
}

/// Whether the arguments of the event `open`, a path, a mode and flags, are those of a file that may be created.
fn is_for_writing(arguments: *mut PyObject) -> bool {
    // SAFETY: CPython gives a tuple, and holds the interpreter's lock. What is taken out of it is borrowed.
    unsafe {
        if arguments.is_null() || PyTuple_Size(arguments) != 3 {
            if !PyErr_Occurred().is_null() {
                PyErr_Clear();
            }
            return true;
        }
        let flags = PyLong_AsLong(PyTuple_GetItem(arguments, 2));
        if flags == -1 && !PyErr_Occurred().is_null() {
            PyErr_Clear();
            return true;
        }
        // O_WRONLY, O_RDWR and O_CREAT of Linux.
        flags & (1 | 2 | 0o100) != 0
    }
}
