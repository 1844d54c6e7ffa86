//! What the kernel gave this process, untouched: Rust's own `main` would change signals and descriptors.

use std::ffi::{c_char, c_int, CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;

/// A start, as the kernel gave it.
pub struct Start {
    /// The words of the command line.
    pub words: Vec<&'static OsStr>,
    /// The entries of the environment.
    entries: Vec<&'static OsStr>,
    argv: Vec<*const c_char>,
    environment: *const *const c_char,
}

impl Start {
    /// The value of a variable.
    pub fn variable(&self, name: &str) -> Option<&'static OsStr> {
        self.entries.iter().find_map(|entry| {
            let value = entry.as_bytes().strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(OsStr::from_bytes(value))
        })
    }

    /// Executes another program with the environment and the words of this start but for the first few, and others before them. Returns only
    /// if that fails.
    pub fn execute(&self, program: &CStr, before: &[CString], without: usize) -> io::Error {
        let words = before.iter().map(|word| word.as_ptr()).chain(self.argv.iter().skip(without).copied());
        let argv: Vec<*const c_char> = words.chain([std::ptr::null()]).collect();
        // SAFETY: both lists end with a null pointer, and all else in them is text that ends with a NUL: that of `before`, and the kernel's.
        unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), self.environment) };
        io::Error::last_os_error()
    }
}

/// The pointers and texts of a list that ends with a null pointer.
///
/// # Safety
/// `list` is such a list, and it and its texts stay as they are while the process lives.
unsafe fn texts(list: *const *const c_char) -> (Vec<*const c_char>, Vec<&'static OsStr>) {
    (0..)
        // SAFETY: entries up to the null pointer are there, and none behind it is looked at.
        .map(|index| unsafe { *list.add(index) })
        .take_while(|text| !text.is_null())
        // SAFETY: by the contract of this function, the text ends with a NUL and stays.
        .map(|text| (text, OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes())))
        .unzip()
}

/// Called by the C library's start code.
// SAFETY: no other function of that name is linked.
#[unsafe(no_mangle)]
extern "C" fn main(_: c_int, argv: *const *const c_char, environment: *const *const c_char) -> c_int {
    // SAFETY: the C library passes the kernel's lists, which nothing here changes.
    let ((argv, words), (_, entries)) = unsafe { (texts(argv), texts(environment)) };
    crate::enter(&Start { words, entries, argv, environment })
}

/// Writes to standard error, if that is open.
pub fn say(text: &str) {
    // SAFETY: the text is that long.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}
