//! What a thaw sets by its own environment where only C code can: the locale of the C library, its buffering of the standard streams, and
//! what [`super::cpython`] knows.
//!
//! A front end asks by setting the variable [`NAME`], which is never set by that: the call fails, and its error number minus [`FIRST`] is the
//! answer.

use core::ffi::{c_char, c_int, CStr};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::cpython::{self, Places};
use super::locales;
use super::noted;

/// The variable.
pub const NAME: &[u8] = b"SNAPBOOT_RENEW";
/// errno of the answer 0; and of the first attribute in [`super::attributes`]. The errors from there on exist: Ruby makes a class of any other, which
/// the program would see.
pub const FIRST: c_int = 60;
/// The answer where something cannot be done.
const CANNOT: c_int = FIRST - 1;

/// Answers about the locale: the one of text is C (so Python is in its UTF-8 mode).
const IS_C: c_int = 1;
/// Its name is one of those that Python puts in the place of C.
const IS_TARGET: c_int = 2;
/// Its text is UTF-8.
const IS_UTF8: c_int = 4;
/// Another category than that of text is not C.
const HAS_OTHERS: c_int = 8;
/// The program has chosen it, not the runtime.
const IS_CHOSEN: c_int = 16;
/// Python has put the first of [`TARGETS`] in the place of C; twice this, the second one, and so on.
const COERCED: c_int = 32;

/// See PEP 538.
const TARGETS: [&CStr; 3] = [c"C.UTF-8", c"C.utf8", c"UTF-8"];

/// Whether a thawed process may ask.
static IS_PREPARED: AtomicBool = AtomicBool::new(false);

/// Whether a front end may ask.
pub fn is_asked(name: &[u8]) -> bool {
    (noted::is_on() || IS_PREPARED.load(Relaxed)) && name == NAME
}

/// Answers a front end. While the process boots: `find=ADDRESS,INDEX,INDEX` (hexadecimal; `sys.flags`, and the indices of
/// `dont_write_bytecode` and `utf8_mode` in it), `thaws` for a runtime that only asks for the locale, `modified=ADDRESS` (a type of CPython's),
/// `state` (of the locale). Then also in a thawed process: `python locale`, `locale`, `flags=D,U` and `unbuffered=U` with digits 0 or 1.
/// Returns an errno.
pub fn answer(question: &[u8]) -> c_int {
    let mut parts = question.splitn(2, |&byte| byte == b'=');
    let (word, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut numbers = rest.split(|&byte| byte == b',').map(number);
    let mut next = || numbers.next().flatten();
    match word {
        b"find" => {
            let (Some(flags), Some(first), Some(second)) = (next(), next(), next()) else { return CANNOT };
            let places = Places { flags, dont_write_bytecode: first as isize, utf8_mode: second as isize };
            let is_found = cpython::find(places);
            locales::runtime_has_chosen();
            IS_PREPARED.store(is_found, Relaxed);
            done(is_found)
        }
        b"thaws" => {
            locales::runtime_has_chosen();
            IS_PREPARED.store(true, Relaxed);
            FIRST
        }
        b"modified" => done(next().is_some_and(cpython::type_was_modified)),
        b"state" => FIRST + state(),
        b"locale" => {
            // What stays where there is none of that name is what a process begins with.
            locales::choose(libc::LC_CTYPE, c"C");
            locales::choose(libc::LC_CTYPE, c"");
            FIRST + state()
        }
        b"python locale" => python_locale().map_or(CANNOT, |state| FIRST + state),
        b"flags" => match (next(), next()) {
            (Some(dont_write_bytecode), Some(utf8_mode)) => {
                done(cpython::set_flags(dont_write_bytecode != 0, utf8_mode != 0))
            }
            _ => CANNOT,
        },
        b"unbuffered" => match next() {
            Some(is_unbuffered) => {
                cpython::set_unbuffered(is_unbuffered != 0);
                crate::libc::buffer_standard_streams(is_unbuffered == 0);
                FIRST
            }
            None => CANNOT,
        },
        _ => CANNOT,
    }
}

fn done(is_done: bool) -> c_int {
    if is_done {
        FIRST
    } else {
        CANNOT
    }
}

fn number(digits: &[u8]) -> Option<usize> {
    usize::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

/// Of the locale in effect.
fn state() -> c_int {
    let is_c = |category| matches!(locales::name(category).to_bytes(), b"C" | b"POSIX");
    let text = locales::name(libc::LC_CTYPE);
    let mut state = 0;
    let mut add = |holds: bool, bit: c_int| state |= if holds { bit } else { 0 };
    add(is_c(libc::LC_CTYPE), IS_C);
    add(TARGETS.contains(&text), IS_TARGET);
    add(locales::text_encoding() == c"UTF-8", IS_UTF8);
    add((0..=libc::LC_IDENTIFICATION).any(|it| it != libc::LC_CTYPE && it != libc::LC_ALL && !is_c(it)), HAS_OTHERS);
    add(locales::is_chosen(), IS_CHOSEN);
    state
}

/// Does what CPython does at its start (`_PyPreConfig_Write` and `_Py_CoerceLegacyLocale`): takes the locale of text from the environment
/// and, where that is C and LC_ALL says nothing, puts C.UTF-8 in its place, in the environment, too.
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
