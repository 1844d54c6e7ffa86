//! CPython's flags and its UTF-8 mode in places that Python code cannot change: `sys.flags`, the preliminary
//! configuration of the runtime, and the old global variables of the C API. A thaw sets them from its own environment.
//!
//! Exported functions and variables of CPython lead to all of them, except the preliminary configuration inside
//! `_PyRuntime`. That is searched for: its fields have the order of the public PyPreConfig, and CPython itself returns
//! their values. Before a freeze, [`find`] checks whether CPython returns a value that was changed there; otherwise
//! nothing is ever changed.

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_long, c_void, CStr};
use core::mem::{transmute_copy, MaybeUninit};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

type Object = *mut c_void;

/// `sys.flags` and the indices of the flags that are set.
#[derive(Clone, Copy)]
pub struct Places {
    /// `sys.flags`.
    pub flags: usize,
    /// The index of `dont_write_bytecode`.
    pub dont_write_bytecode: isize,
    /// The index of `utf8_mode`.
    pub utf8_mode: isize,
}

/// CPython in this process.
struct Python {
    places: Places,
    from_long: unsafe extern "C" fn(c_long) -> Object,
    get_item: unsafe extern "C" fn(Object, isize) -> Object,
    set_item: unsafe extern "C" fn(Object, isize, Object),
    release: unsafe extern "C" fn(Object),
    /// `utf8_mode` of the preliminary configuration.
    utf8_mode: *mut c_int,
    /// The variables of the C API.
    utf8_variable: *mut c_int,
    dont_write_variable: *mut c_int,
    unbuffered_variable: *mut c_int,
    locale_from_environment: unsafe extern "C" fn(c_int) -> *mut c_char,
}

struct Cell(UnsafeCell<Option<Python>>);
// SAFETY: only used in the thread of the front end, which holds the interpreter's lock.
unsafe impl Sync for Cell {}
static PYTHON: Cell = Cell(UnsafeCell::new(None));

fn python() -> Option<&'static Python> {
    // SAFETY: see `Cell`; it is written once, before its first read.
    unsafe { (*PYTHON.0.get()).as_ref() }
}

/// The interpreter's lock, which Python releases while it calls `readlink`; empty in a process without Python.
pub struct Lock(c_int);

type Take = unsafe extern "C" fn() -> c_int;
type GiveBack = unsafe extern "C" fn(c_int);

/// The functions that acquire and release it; null before they are resolved.
static TAKE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
static GIVE_BACK: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

impl Lock {
    /// Resolves the functions, if this is a Python.
    pub fn find() {
        if let (Some(take), Some(give_back)) = (exported(c"PyGILState_Ensure"), exported(c"PyGILState_Release")) {
            GIVE_BACK.store(give_back, Relaxed);
            TAKE.store(take, Relaxed);
        }
    }

    /// Acquires the lock.
    pub fn take() -> Option<Lock> {
        let take = TAKE.load(Relaxed);
        // SAFETY: the type of the function of that name; this is a thread of the interpreter.
        (!take.is_null()).then(|| Lock(unsafe { transmute_copy::<_, Take>(&take)() }))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let give_back = GIVE_BACK.load(Relaxed);
        // SAFETY: as above; the thread has acquired it.
        unsafe { transmute_copy::<_, GiveBack>(&give_back)(self.0) };
    }
}

/// The address of an exported symbol; None without it.
fn exported(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: a plain call.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

/// An exported function.
///
/// # Safety
/// `F` is the type of a pointer to the function of that name.
unsafe fn function<F>(name: &CStr) -> Option<F> {
    // SAFETY: as the caller says.
    exported(name).map(|address| unsafe { transmute_copy(&address) })
}

/// Finds everything that [`set_flags`] changes, and tests it. False if something is unexpected; then nothing has
/// changed.
pub fn find(places: Places) -> bool {
    // SAFETY: the types are those of CPython's C API, from 3.8 to 3.13.
    let found = unsafe { look(places) };
    let is_found = found.is_some();
    // SAFETY: see `Cell`.
    unsafe { *PYTHON.0.get() = found };
    is_found
}

/// # Safety
///
/// This is a process of CPython 3.8 to 3.13, the caller holds its lock, and `places` are correct.
unsafe fn look(places: Places) -> Option<Python> {
    // SAFETY: as the caller says.
    unsafe {
        Some(Python {
            places,
            from_long: function(c"PyLong_FromLong")?,
            get_item: function(c"PyStructSequence_GetItem")?,
            set_item: function(c"PyStructSequence_SetItem")?,
            release: function(c"Py_DecRef")?,
            utf8_mode: utf8_mode_place()?,
            utf8_variable: exported(c"Py_UTF8Mode")?.cast(),
            dont_write_variable: exported(c"Py_DontWriteBytecodeFlag")?.cast(),
            unbuffered_variable: exported(c"Py_UnbufferedStdioFlag")?.cast(),
            locale_from_environment: function(c"_Py_SetLocaleFromEnv")?,
        })
    }
}

/// The fields of PyPreConfig (Include/cpython/initconfig.h).
const FIELDS: [&CStr; 10] = [
    c"_config_init",
    c"parse_argv",
    c"isolated",
    c"use_environment",
    c"configure_locale",
    c"coerce_c_locale",
    c"coerce_c_locale_warn",
    c"utf8_mode",
    c"dev_mode",
    c"allocator",
];
const UTF8_MODE: usize = 7;

/// The address of the runtime's `utf8_mode`; None if it is uncertain.
///
/// # Safety
///
/// As for [`look`].
unsafe fn utf8_mode_place() -> Option<*mut c_int> {
    // SAFETY: the types are those of the C API; `_PyRuntime` is as large as its symbol says.
    unsafe {
        let configuration: unsafe extern "C" fn() -> Object = function(c"_Py_GetConfigsAsDict")?;
        let item: unsafe extern "C" fn(Object, *const c_char) -> Object = function(c"PyDict_GetItemString")?;
        let put: unsafe extern "C" fn(Object, *const c_char, Object) -> c_int = function(c"PyDict_SetItemString")?;
        let as_long: unsafe extern "C" fn(Object) -> c_long = function(c"PyLong_AsLong")?;
        let equal: unsafe extern "C" fn(Object, Object, c_int) -> c_int = function(c"PyObject_RichCompareBool")?;
        let clear: unsafe extern "C" fn() = function(c"PyErr_Clear")?;
        let release: unsafe extern "C" fn(Object) = function(c"Py_DecRef")?;
        let fields = |all: Object| -> Option<Object> {
            let fields = if all.is_null() { all } else { item(all, c"pre_config".as_ptr()) };
            (!fields.is_null()).then_some(fields)
        };
        let before = configuration();
        let mut wanted = [0; FIELDS.len()];
        for (place, name) in wanted.iter_mut().zip(FIELDS) {
            let value = item(fields(before)?, name.as_ptr());
            *place = if value.is_null() { return None } else { as_long(value) as c_int };
        }
        let (start, size) = runtime()?;
        let mut matches = (0..size / size_of::<c_int>())
            .map(|index| start.add(index))
            .take_while(|place| place.add(FIELDS.len()) <= start.add(size / size_of::<c_int>()))
            .filter(|place| core::slice::from_raw_parts(*place, FIELDS.len()) == wanted);
        let (place, None) = (matches.next()?.add(UTF8_MODE), matches.next()) else { return None };
        // With another value, CPython must return a difference in this field only.
        let name = FIELDS[UTF8_MODE].as_ptr();
        *place = 1 - wanted[UTF8_MODE];
        let after = configuration();
        *place = wanted[UTF8_MODE];
        let value = item(fields(after)?, name);
        let is_it = !value.is_null()
            && as_long(value) == c_long::from(1 - wanted[UTF8_MODE])
            && put(fields(after)?, name, item(fields(before)?, name)) == 0
            && equal(before, after, EQUAL) == 1;
        clear();
        release(before);
        release(after);
        is_it.then_some(place)
    }
}

/// Py_EQ.
const EQUAL: c_int = 2;

/// Start and size in bytes of the runtime's state.
fn runtime() -> Option<(*mut c_int, usize)> {
    extern "C" {
        fn dladdr1(address: *const c_void, info: *mut libc::Dl_info, more: *mut *mut c_void, flags: c_int) -> c_int;
    }
    /// RTLD_DL_SYMENT of dlfcn.h.
    const SYMBOL: c_int = 1;
    let start = exported(c"_PyRuntime")?;
    let (mut info, mut symbol) = (MaybeUninit::<libc::Dl_info>::zeroed(), core::ptr::null_mut());
    // SAFETY: the C library fills in both, and the symbol that it finds is one of the ELF file.
    let size = unsafe {
        if dladdr1(start, info.as_mut_ptr(), &mut symbol, SYMBOL) == 0 || symbol.is_null() {
            return None;
        }
        let info = info.assume_init();
        if info.dli_saddr != start {
            return None;
        }
        (*symbol.cast::<libc::Elf64_Sym>()).st_size as usize
    };
    Some((start.cast(), size))
}

/// Sets both flags in all places. False if [`find`] has not found them.
pub fn set_flags(dont_write_bytecode: bool, utf8_mode: bool) -> bool {
    let Some(python) = python() else { return false };
    let places = python.places;
    let flags = core::ptr::with_exposed_provenance_mut(places.flags);
    // SAFETY: `sys.flags` lives as long as the interpreter, and no other code can change it meanwhile; `set_item` takes
    // over the new value and leaves the old one to us. The variables are CPython's own.
    unsafe {
        for (index, value) in [(places.dont_write_bytecode, dont_write_bytecode), (places.utf8_mode, utf8_mode)] {
            let (old, new) = ((python.get_item)(flags, index), (python.from_long)(value.into()));
            (python.set_item)(flags, index, new);
            (python.release)(old);
        }
        *python.utf8_mode = utf8_mode.into();
        *python.utf8_variable = utf8_mode.into();
        *python.dont_write_variable = dont_write_bytecode.into();
    }
    true
}

/// Sets whether the standard streams are unbuffered for CPython's C code.
pub fn set_unbuffered(is_unbuffered: bool) {
    if let Some(python) = python() {
        // SAFETY: a variable of CPython's.
        unsafe { *python.unbuffered_variable = is_unbuffered.into() };
    }
}

/// Chooses the locale that the environment names, as CPython does at its start. None if [`find`] has not found the
/// function.
pub fn locale_from_environment(category: c_int) -> Option<()> {
    // SAFETY: the type is that of CPython's function.
    python().map(|python| unsafe { (python.locale_from_environment)(category) }).map(drop)
}

/// Invalidates CPython's cache of a type's attributes after its dictionary was changed.
pub fn type_was_modified(address: usize) -> bool {
    // SAFETY: the type is that of CPython's function, and the front end passes the address of one of its types.
    unsafe {
        let Some(modified) = function::<unsafe extern "C" fn(Object)>(c"PyType_Modified") else { return false };
        modified(core::ptr::with_exposed_provenance_mut(address));
    }
    true
}
