//! The C library's function that chooses a locale. [`super::libc_hooks`] explains why it is here.
//!
//! The C library looks into its archive of locales first, and only once: the archive stays mapped, or is never looked
//! for again if it was missing. An image with that state would miss every locale added later, so it would have to be
//! stale. So during the boot this function first looks a locale up in the directories, for which the C library has a
//! variable, and in the archive only if no directory has it.

use core::ffi::{c_char, c_int, CStr};
use core::slice;

use ::channel::Request;
use image::lookup_kind;
use inputs::lookups::{self, LOCALE_ARCHIVE};

use super::account_hooks::look_up;
use super::channel::send_to_recorder;
use super::events::is_on;
use super::libc_hooks::{locale, Next};
use super::locales;
use super::on_demand::name_of;

extern "C" {
    static mut environ: *const *const c_char;
}

static SETLOCALE: Next = Next::new("setlocale\0");
const VARIABLE: &[u8] = b"LOCPATH=/usr/lib/locale\0";
/// With more variables than this the archive is not avoided.
const MAX_VARIABLES: usize = 1000;

type SetLocale = unsafe extern "C" fn(c_int, *const c_char) -> *mut c_char;

/// Resolves it now, so that a thawed process need not.
pub fn bind() {
    SETLOCALE.address();
}

/// The C library's function of this name, see the module's description.
///
/// # Safety
/// As for the function of the C library.
#[no_mangle]
pub unsafe extern "C" fn setlocale(category: c_int, name: *const c_char) -> *mut c_char {
    // SAFETY: the type is that of the C library's function.
    let next: SetLocale = unsafe { SETLOCALE.get() };
    if is_on() && !name.is_null() {
        locale(category, name);
        locales::program_chooses();
        // SAFETY: as the caller says.
        let found = unsafe { with_folders(|| next(category, name)) };
        // SAFETY: a locale that was found has a name.
        if !found.is_null() && is_in_folders_only(unsafe { CStr::from_ptr(found) }.to_bytes()) {
            return found;
        }
    }
    // SAFETY: as the caller says.
    unsafe { next(category, name) }
}

/// Calls a function with the variable that keeps the C library from its archive. Null if that fails.
///
/// # Safety
///
/// The function leaves the environment alone.
unsafe fn with_folders(call: impl FnOnce() -> *mut c_char) -> *mut c_char {
    let mut list = [core::ptr::null(); MAX_VARIABLES + 2];
    list[0] = VARIABLE.as_ptr().cast();
    // SAFETY: `environ` is a null-terminated list of strings, or null; no other code keeps the other list.
    unsafe {
        let own = environ;
        let mut count = 0;
        while !own.is_null() && !(*own.add(count)).is_null() {
            let entry = *own.add(count);
            if count == MAX_VARIABLES || name_of(CStr::from_ptr(entry).to_bytes()) == b"LOCPATH" {
                return core::ptr::null_mut();
            }
            list[count + 1] = entry;
            count += 1;
        }
        if !crate::libc::has_usual_locale_folders() {
            return core::ptr::null_mut();
        }
        environ = list.as_ptr();
        let result = call();
        if core::ptr::eq(environ, list.as_ptr()) {
            environ = own;
        } else {
            // Another thread has set a variable meanwhile: the C library has made a list of its own from this one.
            libc::unsetenv(c"LOCPATH".as_ptr());
        }
        result
    }
}

/// Whether the archive has none of the locales in such a name (`C.UTF-8`, `LC_CTYPE=C.UTF-8;LC_TIME=C`). The image
/// depends on that.
fn is_in_folders_only(all: &[u8]) -> bool {
    let names = || all.split(|&byte| byte == b';').map(|part| part.rsplit(|&byte| byte == b'=').next().unwrap_or(part));
    let archived = || names().filter(|name| !matches!(*name, b"C" | b"POSIX"));
    let is_plain = |name: &[u8]| {
        let mut parts = name.split(|&byte| byte == b'.');
        // The C library has its own names for encodings that are named by a number.
        !name.contains(&b'/') && parts.nth(1).is_none_or(|code| code.iter().any(u8::is_ascii_alphabetic))
    };
    archived().all(|name| {
        look_up(lookup_kind::LOCALE, name);
        let is_missing = is_plain(name) && with_archive(|archive| is_missing(name, archive));
        send_to_recorder(Request::LookedUp, &[]);
        is_missing
    })
}

fn is_missing(name: &[u8], archive: &[u8]) -> bool {
    let answer = lookups::answer(lookup_kind::LOCALE, name, archive);
    answer == lookups::answer(lookup_kind::LOCALE, name, b"")
}

/// Passes the archive to `look`, empty if it is missing. False if it cannot be read.
fn with_archive(look: impl FnOnce(&[u8]) -> bool) -> bool {
    let mut path = [0; LOCALE_ARCHIVE.len() + 1];
    path[..LOCALE_ARCHIVE.len()].copy_from_slice(LOCALE_ARCHIVE.as_bytes());
    // SAFETY: plain calls; the path ends with a NUL, and the mapping lives until it is unmapped. Truncating the file
    // would crash every other process that has it mapped, too.
    unsafe {
        let errno = *libc::__errno_location();
        let file =
            libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) as c_int;
        let is_there = file >= 0 || *libc::__errno_location() != libc::ENOENT;
        *libc::__errno_location() = errno;
        if file < 0 {
            return !is_there && look(b"");
        }
        let size = libc::lseek(file, 0, libc::SEEK_END).max(0) as usize;
        let start = libc::mmap(core::ptr::null_mut(), size, libc::PROT_READ, libc::MAP_PRIVATE, file, 0);
        libc::close(file);
        if start == libc::MAP_FAILED {
            *libc::__errno_location() = errno;
            return false;
        }
        let result = look(slice::from_raw_parts(start.cast(), size));
        libc::munmap(start, size);
        result
    }
}
