//! Words in which a library of the frozen process keeps what the CPU can do: each thaw renews them.
//!
//! While the program booted, a variable kept the library to a level of CPUs, so the words hold the features of that
//! level. The library's own function, which it calls once when it is loaded, fills them for the CPU that is there, and
//! the process then computes as an ordinary start does. The function is the library's, so nothing here knows what the
//! words mean.
//!
//! The launcher checks the result: a CPU on which the image thaws has all features of the level, so no bit may be
//! missing. Otherwise the function is not the one that the freeze took it for, and the words stay as they were: right
//! on every CPU of the level, but slower.
#![allow(unsafe_code)]

use image::{Capabilities, Section};

use crate::arch;
use crate::frozen::Frozen;
use crate::reason::Reason;

/// Words of which the freeze knows the content, so that each bit of theirs has to stay.
const KNOWN: usize = 4;

/// The most words that a function writes.
const MOST: usize = Capabilities::SIZES.1 as usize / size_of::<u32>();

/// Renews the words of each library. The memory of the frozen process is in place.
pub fn renew(frozen: &Frozen) -> Result<(), Reason> {
    for row in frozen.rows::<Capabilities>(Section::Capabilities)? {
        let count = (row.size as usize / size_of::<u32>()).min(MOST);
        // SAFETY: both addresses lie in memory of the frozen process, the words in writable and the function in
        // executable memory (validated). No thread runs. The function only asks the CPU, and needs neither
        // thread-local memory nor the C library; the freeze knows it by its code, in a file that has not changed.
        unsafe {
            let words = core::slice::from_raw_parts_mut(row.words as *mut u32, count);
            let mut before = [0; MOST];
            before[..count].copy_from_slice(words);
            let first = arch::call(row.function, row.words) | row.always;
            words[0] = first as u32;
            words[1] = (first >> 32) as u32;
            if !has_all(&before[..KNOWN], words) {
                words.copy_from_slice(&before[..count]);
            }
        }
    }
    Ok(())
}

/// Whether each bit of `before` is set in `words`.
fn has_all(before: &[u32], words: &[u32]) -> bool {
    before.iter().zip(words).all(|(before, now)| before & !now == 0)
}
