//! Lets a Ruby string be changed that is frozen: what `ENV` answers is, and a thaw has to put another value there where that is a secret.
//!
//! Ruby has no way to do that. Its front end gives the address, and looks afterwards whether the string is frozen still.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The first word of each object of CRuby 3.1 to 3.4: its type, and flags (include/ruby/internal/value_type.h, fl_type.h).
const TYPE: usize = 0x1f;
const STRING: usize = 0x05;
const FROZEN: usize = 1 << 11;
/// In a string: it is in the table of those that exist once, which finds it by its content (RSTRING_FSTR in internal/string.h).
const IS_UNIQUE: usize = 1 << 29;

/// In a string: what is in it lies outside of the object, and is not freed with it (STR_NOEMBED and STR_NOFREE in string.c).
const IS_OUTSIDE: usize = 1 << 13;
const STAYS: usize = 1 << 30;

/// Takes the flag away from the string at this address, in hexadecimal digits; not from one that Ruby finds by its content.
pub fn let_change(address: &[u8]) {
    let Some(address) = core::str::from_utf8(address).ok().and_then(|digits| usize::from_str_radix(digits, 16).ok())
    else {
        return;
    };
    if address == 0 || address % align_of::<usize>() != 0 {
        return;
    }
    // SAFETY: the front end of this process tells where one of its objects lies that it keeps alive. Ruby has given up its lock for this call, and
    // another thread may change the flags of any object as it collects garbage: both changes are made at once, or neither.
    let word = unsafe { AtomicUsize::from_ptr(core::ptr::with_exposed_provenance_mut(address)) };
    let changed = |flags: usize| {
        // Copies of a frozen string use what is in it. They keep it when this one gets another content.
        let kept = if flags & IS_OUTSIDE != 0 { STAYS } else { 0 };
        (flags & TYPE == STRING && flags & IS_UNIQUE == 0).then_some((flags & !FROZEN) | kept)
    };
    // One that is no such string stays as it is.
    let _ = word.fetch_update(Relaxed, Relaxed, changed);
}
