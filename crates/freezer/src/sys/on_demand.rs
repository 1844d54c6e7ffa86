//! Variables that the boot gets on demand: the file `environment` of the control directory.
//!
//! Each variable is hidden until the program looks it up, sets it or removes it. A look-up sets it, as if it had been
//! set from the start. So the values of all others are nowhere in the process when it is frozen. Child processes that
//! get the boot's environment get all of them but the volatile ones.
//!
//! Some variables of the file are for libraries: the loader and the constructors of libraries have found them in the
//! environment. Before the program starts they are removed from it, or get the user's values. Later only C code that looks
//! them up sees them.

use core::ffi::{c_char, CStr};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// Keys of the entries.
const VARIABLE: &[u8] = b"variable=";
const VOLATILE: &[u8] = b"volatile=";
const INTERNAL: &[u8] = b"internal=";
/// Longer names are not replaced; those for libraries have up to 24 bytes.
const LONGEST_NAME: usize = 63;
/// Replaces the first letter of a key once the variable is no longer hidden.
const TAKEN: u8 = 0xff;

/// Bytes reserved after the file for lists of variables; only the used part takes memory.
const LISTS_SIZE: usize = 1 << 20;

/// Address and size of the file in memory.
static START: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static SIZE: AtomicUsize = AtomicUsize::new(0);
/// How many of these bytes are used.
static USED: AtomicUsize = AtomicUsize::new(0);

/// Reads the file at this path, which ends with a NUL.
pub fn start(path: &[u8]) {
    // SAFETY: plain calls; the mapping is as large as what is read into it.
    unsafe {
        let file = libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC);
        if file < 0 {
            return;
        }
        let size = usize::try_from(libc::lseek(file, 0, libc::SEEK_END)).unwrap_or(0);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let place = libc::mmap(ptr::null_mut(), total(size), libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        if place != libc::MAP_FAILED && size > 0 && libc::pread(file, place, size, 0) == size as isize {
            START.store(place.cast(), Relaxed);
            SIZE.store(size, Relaxed);
        }
        libc::close(file);
    }
    replace_internal();
}

/// Gives the variables for libraries the user's values, or removes them from the environment.
fn replace_internal() {
    for (_, entry) in entries_with(INTERNAL) {
        let mut buffer = [0; LONGEST_NAME + 1];
        let name = name_of(entry.to_bytes());
        let Some(place) = buffer.get_mut(..name.len()) else { continue };
        place.copy_from_slice(name);
        let Ok(name) = CStr::from_bytes_until_nul(&buffer) else { continue };
        // SAFETY: plain calls with strings; the loader runs constructors in one thread.
        unsafe {
            match unhide(name) {
                Some(own) => libc::setenv(name.as_ptr(), own.as_ptr(), 1),
                None => libc::unsetenv(name.as_ptr()),
            };
        }
    }
}

/// The value of a variable for libraries.
pub fn internal(name: &CStr) -> Option<&'static CStr> {
    let (_, entry) = entries_with(INTERNAL).find(|(_, entry)| name_of(entry.to_bytes()) == name.to_bytes())?;
    Some(value_of(entry, name))
}

/// The value in `NAME=VALUE`, of which this is the name.
fn value_of(entry: &'static CStr, name: &CStr) -> &'static CStr {
    // SAFETY: the value follows the name and `=`, and ends with the same NUL as the entry.
    unsafe { CStr::from_ptr(entry.as_ptr().add(name.count_bytes() + 1)) }
}

/// Unmaps the file. Nothing that was returned may be used any more.
pub fn stop() {
    let size = SIZE.swap(0, Relaxed);
    USED.store(0, Relaxed);
    let start = START.swap(ptr::null_mut(), Relaxed);
    if size > 0 {
        // SAFETY: `start` has mapped this.
        unsafe { libc::munmap(start.cast(), total(size)) };
    }
}

fn total(size: usize) -> usize {
    size.next_multiple_of(align_of::<usize>()) + LISTS_SIZE
}

/// The name in `NAME=VALUE`.
pub fn name_of(entry: &[u8]) -> &[u8] {
    entry.split(|&byte| byte == b'=').next().unwrap_or(entry)
}

/// A hidden variable: the places of its entry and of its `NAME=VALUE`, which ends with a NUL.
struct Hidden {
    key: *mut u8,
    entry: &'static CStr,
    is_volatile: bool,
}

/// All variables that are still hidden.
fn hidden_variables() -> impl Iterator<Item = Hidden> {
    all_variables().filter(|hidden| !hidden.is_taken())
}

/// Whether a variable of the start is or was hidden with this `NAME=VALUE`, so that only a look-up has set it.
pub fn was_hidden(entry: &[u8]) -> bool {
    all_variables().any(|hidden| hidden.entry.to_bytes() == entry)
}

/// All variables, hidden or not.
fn all_variables() -> impl Iterator<Item = Hidden> {
    let with = |tail, is_volatile| entries_with(tail).map(move |(key, entry)| Hidden { key, entry, is_volatile });
    with(VARIABLE, false).chain(with(VOLATILE, true))
}

/// The entries with this key, of which the first letter may be replaced: the place of the key, and what follows it.
fn entries_with(wanted: &'static [u8]) -> impl Iterator<Item = (*mut u8, &'static CStr)> {
    let start = START.load(Relaxed);
    let mut next = start;
    let end = start.wrapping_add(SIZE.load(Relaxed));
    core::iter::from_fn(move || {
        while next < end {
            let key = next;
            // SAFETY: each entry ends with a NUL, and the last one is followed by zeros.
            let all = unsafe { CStr::from_ptr(key.add(1).cast()) };
            next = next.wrapping_add(all.count_bytes() + 2);
            if all.to_bytes().starts_with(&wanted[1..]) {
                // SAFETY: the key is followed by the rest of the entry.
                return Some((key, unsafe { CStr::from_ptr(key.add(wanted.len()).cast()) }));
            }
        }
        None
    })
}

impl Hidden {
    fn name(&self) -> &'static [u8] {
        name_of(self.entry.to_bytes())
    }

    fn is_taken(&self) -> bool {
        // SAFETY: the first byte of an entry.
        unsafe { *self.key == TAKEN }
    }

    /// Marks it as no longer hidden.
    fn mark_unhidden(&self) {
        // SAFETY: the first byte of an entry, to which there are no references.
        unsafe { *self.key = TAKEN };
    }
}

/// Unhides a variable that is looked up, and returns its value; the caller has to set it.
pub fn unhide(name: &CStr) -> Option<&'static CStr> {
    let found = hidden_variables().find(|hidden| hidden.name() == name.to_bytes())?;
    found.mark_unhidden();
    Some(value_of(found.entry, name))
}

/// Unhides a variable that the program sets or removes itself; None means all.
pub fn forget(name: Option<&[u8]>) {
    hidden_variables()
        .filter(|hidden| name.is_none_or(|name| hidden.name() == name))
        .for_each(|hidden| hidden.mark_unhidden());
}

/// Calls `set` with each variable that is not volatile, and unhides all.
pub fn unhide_all(set: impl Fn(*const c_char, *const c_char)) {
    for hidden in hidden_variables().filter(|hidden| !hidden.is_volatile) {
        hidden.mark_unhidden();
        let length = hidden.name().len();
        // SAFETY: the byte after the name is a NUL for a moment; no other code reads an entry that is no longer hidden.
        unsafe {
            let name = hidden.entry.as_ptr().cast_mut();
            *name.add(length) = 0;
            set(name, name.add(length + 1));
            *name.add(length) = b'=' as c_char;
        }
    }
}

/// The list of variables, followed by those that are hidden and not volatile; only the list if they do not fit.
///
/// # Safety
///
/// `list` is a null-terminated list of strings that live on.
pub unsafe fn with_hidden(list: *const *const c_char) -> *const *const c_char {
    let added = hidden_variables().filter(|hidden| !hidden.is_volatile).count();
    if added == 0 || list.is_null() {
        return list;
    }
    // SAFETY: the caller guarantees the list; the copy belongs to this call.
    unsafe {
        let own = (0..).take_while(|&at| !(*list.add(at)).is_null()).count();
        let size = (own + added + 1) * size_of::<usize>();
        let offset = USED.fetch_add(size, Relaxed);
        if offset + size > LISTS_SIZE {
            return list;
        }
        let copy = START.load(Relaxed).add(total(SIZE.load(Relaxed)) - LISTS_SIZE + offset).cast::<*const c_char>();
        ptr::copy_nonoverlapping(list, copy, own);
        let entries = hidden_variables().filter(|hidden| !hidden.is_volatile).take(added);
        let end = entries.zip(own..).map(|(hidden, at)| copy.add(at).write(hidden.entry.as_ptr())).count() + own;
        copy.add(end).write(ptr::null());
        copy
    }
}
