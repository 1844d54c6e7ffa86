//! Begins a process again until its memory lies as that of other boots does, but for a distance that is the same for all mappings between
//! the heap and the stack: then images of two versions of a program have much in common.
//!
//! The kernel draws that distance at each start. What it gives places to afterwards depends on it by its last digits alone: huge pages, and
//! Python's pools, begin at multiples of their sizes.

use core::ffi::{c_char, CStr};

/// What the loader is moved by is a multiple of this: the size of a huge page (bytes). One start of 512 is as wanted, where pages have 4 KiB.
const STEP: u64 = 2 << 20;
/// The variable that asks for it: how many starts may be made, in digits.
const VARIABLE: &CStr = c"SNAPBOOT_LAYOUT";

/// Executes the program again if it is asked to, and this process does not lie as it should. `arguments` and `variables`: what the loader gives
/// constructors, as the kernel has left it. Returns in a process that goes on.
///
/// # Safety
/// A constructor calls it, before anything else knows about this process, with what it was given.
pub unsafe fn settle(arguments: *const *const c_char, variables: *const *const c_char) {
    // SAFETY: there is one thread, and nothing holds pointers into the environment yet.
    unsafe {
        let left = libc::getenv(VARIABLE.as_ptr());
        if left.is_null() {
            return;
        }
        let is_as_wanted = libc::getauxval(libc::AT_BASE).is_multiple_of(STEP);
        if !is_as_wanted && is_counted_down(left) {
            // Fails where the program was removed: then this start is as good as any.
            libc::syscall(libc::SYS_execve, libc::getauxval(libc::AT_EXECFN), arguments, variables);
        }
        libc::unsetenv(VARIABLE.as_ptr());
    }
}

/// Takes one off a number in digits, in its place. Returns false at 0, and for what is no number.
///
/// # Safety
/// It is a string that can be written to, and nothing else refers to it.
unsafe fn is_counted_down(number: *mut c_char) -> bool {
    // SAFETY: as the caller promises; its length stays.
    let digits = unsafe { core::slice::from_raw_parts_mut(number.cast::<u8>(), libc::strlen(number)) };
    let Some(last) = digits.iter().rposition(|digit| *digit != b'0') else { return false };
    if !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    digits[last] -= 1;
    digits[last + 1..].fill(b'9');
    true
}
