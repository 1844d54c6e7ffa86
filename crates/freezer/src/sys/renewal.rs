//! Settings that a thaw takes from its own environment and only C code can set: the C library's locale, its buffering
//! of the standard streams, and those of [`super::cpython`].
//!
//! A front end asks through [`Request::Renew`](::channel::Request::Renew); the answer is a number.

use core::ffi::{c_char, c_int, CStr};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ::channel::locale::{COERCED, HAS_OTHERS, IS_C, IS_CHOSEN, IS_TARGET, IS_UTF8};

use super::cpython::{self, Places};
use super::locales;

/// See PEP 538.
const TARGETS: [&CStr; 3] = [c"C.UTF-8", c"C.utf8", c"UTF-8"];

/// Whether a thawed process may ask.
static IS_PREPARED: AtomicBool = AtomicBool::new(false);

/// Whether a thawed process may ask.
pub fn is_prepared() -> bool {
    IS_PREPARED.load(Relaxed)
}

/// Answers a front end. During the boot: `find=ADDRESS,INDEX,INDEX` (hexadecimal; `sys.flags`, and the indices of
/// `dont_write_bytecode` and `utf8_mode` in it), `thaws` for a runtime that only renews the locale, `modified=ADDRESS`
/// (a type of CPython), `state` (of the locale). Then also in a thawed process: `python locale`, `locale`, `flags=D,U`
/// and `unbuffered=U` with digits 0 or 1. None if the request fails.
pub fn answer(question: &[u8]) -> Option<c_int> {
    let mut parts = question.splitn(2, |&byte| byte == b'=');
    let (word, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut numbers = rest.split(|&byte| byte == b',').map(number);
    let mut next = || numbers.next().flatten();
    if word == b"find" {
        cpython::Lock::find();
    }
    let _lock = cpython::Lock::take();
    match word {
        b"find" => {
            let (Some(flags), Some(first), Some(second)) = (next(), next(), next()) else { return None };
            let places = Places { flags, dont_write_bytecode: first as isize, utf8_mode: second as isize };
            let is_found = cpython::find(places);
            locales::runtime_has_chosen();
            IS_PREPARED.store(is_found, Relaxed);
            done(is_found)
        }
        b"thaws" => {
            locales::runtime_has_chosen();
            IS_PREPARED.store(true, Relaxed);
            Some(0)
        }
        b"modified" => done(next().is_some_and(cpython::type_was_modified)),
        b"state" => Some(state()),
        b"locale" => {
            // If the named locale does not exist, the initial one stays.
            locales::choose(libc::LC_CTYPE, c"C");
            locales::choose(libc::LC_CTYPE, c"");
            Some(state())
        }
        b"python locale" => python_locale(),
        b"flags" => match (next(), next()) {
            (Some(dont_write_bytecode), Some(utf8_mode)) => {
                done(cpython::set_flags(dont_write_bytecode != 0, utf8_mode != 0))
            }
            _ => None,
        },
        b"unbuffered" => match next() {
            Some(is_unbuffered) => {
                cpython::set_unbuffered(is_unbuffered != 0);
                crate::libc::buffer_standard_streams(is_unbuffered == 0);
                Some(0)
            }
            None => None,
        },
        _ => None,
    }
}

fn done(is_done: bool) -> Option<c_int> {
    is_done.then_some(0)
}

fn number(digits: &[u8]) -> Option<usize> {
    usize::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

/// The state of the current locale.
fn state() -> c_int {
    let is_c = |category| matches!(locales::current_name(category).to_bytes(), b"C" | b"POSIX");
    let text = locales::current_name(libc::LC_CTYPE);
    let mut state = 0;
    let mut add = |holds: bool, bit: c_int| state |= if holds { bit } else { 0 };
    add(is_c(libc::LC_CTYPE), IS_C);
    add(TARGETS.contains(&text), IS_TARGET);
    add(locales::text_encoding() == c"UTF-8", IS_UTF8);
    add((0..=libc::LC_IDENTIFICATION).any(|it| it != libc::LC_CTYPE && it != libc::LC_ALL && !is_c(it)), HAS_OTHERS);
    add(locales::is_chosen(), IS_CHOSEN);
    state
}

/// Does what CPython does at its start (`_PyPreConfig_Write` and `_Py_CoerceLegacyLocale`): takes LC_CTYPE's locale
/// from the environment and, if that is C and LC_ALL is unset, coerces it to C.UTF-8, in the environment, too.
fn python_locale() -> Option<c_int> {
    extern "C" {
        fn setenv(name: *const c_char, value: *const c_char, overwrite: c_int) -> c_int;
    }
    locales::choose(libc::LC_ALL, c"C");
    cpython::locale_from_environment(libc::LC_CTYPE)?;
    let was_c = state() & IS_C;
    // SAFETY: getenv returns a string or null.
    let is_overridden = unsafe {
        let all = libc::getenv(c"LC_ALL".as_ptr());
        !all.is_null() && *all != 0
    };
    if was_c == 0 || is_overridden {
        return Some(state());
    }
    for (number, target) in TARGETS.iter().enumerate() {
        if locales::choose(libc::LC_CTYPE, target) && !locales::text_encoding().is_empty() {
            // SAFETY: both are strings.
            unsafe { setenv(c"LC_CTYPE".as_ptr(), target.as_ptr(), 1) };
            cpython::locale_from_environment(libc::LC_ALL)?;
            return Some(state() | was_c | (COERCED * (number as c_int + 1)));
        }
        locales::choose(libc::LC_CTYPE, c"C");
    }
    Some(state())
}
