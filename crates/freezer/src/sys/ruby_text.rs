//! Makes a frozen Ruby string mutable: strings from `ENV` are frozen, and a thaw has to replace the value of a secret
//! in them.
//!
//! Ruby has no API for that. Its front end passes the address, and checks afterwards whether the string is still
//! frozen.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The first word of each object of CRuby 3.1 to 3.4: its type, and flags (include/ruby/internal/value_type.h,
/// fl_type.h).
const TYPE: usize = 0x1f;
const STRING: usize = 0x05;
const FROZEN: usize = 1 << 11;
/// In a string: it is in the table of unique strings, which finds it by its content (RSTRING_FSTR in
/// internal/string.h).
const IS_UNIQUE: usize = 1 << 29;

/// In a string: its content lies outside the object and is not freed with it (STR_NOEMBED and STR_NOFREE in string.c).
const IS_OUTSIDE: usize = 1 << 13;
const STAYS: usize = 1 << 30;

/// Clears the frozen flag of the string at this address, in hexadecimal; not if Ruby finds the string by its content.
pub fn let_change(address: &[u8]) {
    let Some(address) = core::str::from_utf8(address).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok())
    else {
        return;
    };
    if address == 0 || address % align_of::<usize>() != 0 {
        return;
    }
    // SAFETY: the front end of this process passes the address of an object that it keeps alive. Ruby has released its
    // lock for this call, and another thread may change the flags of any object during garbage collection: so both
    // changes are made atomically, or neither.
    let word = unsafe { AtomicUsize::from_ptr(core::ptr::with_exposed_provenance_mut(address)) };
    let changed = |flags: usize| {
        // Copies of a frozen string share its content. They keep it when this string gets another one.
        let kept = if flags & IS_OUTSIDE != 0 { STAYS } else { 0 };
        (flags & TYPE == STRING && flags & IS_UNIQUE == 0).then_some((flags & !FROZEN) | kept)
    };
    // Other objects stay unchanged.
    let _ = word.fetch_update(Relaxed, Relaxed, changed);
}
