//! Gives CRuby the hash seed that images of a program share (`FreezeRequest::hash_seed`), as PYTHONHASHSEED does for Python. CRuby draws its
//! own while it initializes, and this is the first time that the process asks the C library for random bytes (random.c,
//! `Init_RandomSeed`; the generators' own seeds come later, and a thaw renews them). Whatever else asked first would get bytes that other boots get,
//! too, so a variable asks for it, which no boot but that of CRuby has.

use core::ffi::{c_char, c_int, c_long, c_uint, c_void, CStr};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::libc_hooks::Next;

/// The variable with the seed, in digits.
const VARIABLE: &CStr = c"SNAPBOOT_RUBY_HASHSEED";

/// The seed; 0 if there is none, or CRuby has it already.
static SEED: AtomicU64 = AtomicU64::new(0);

static GETENTROPY: Next = Next::new("getentropy\0");
static GETRANDOM: Next = Next::new("getrandom\0");

/// Reads the variable, and removes it. Called by the constructor.
pub fn take() {
    // SAFETY: the loader runs constructors in one thread, before any code holds pointers into the environment.
    unsafe {
        let value: *const c_char = libc::getenv(VARIABLE.as_ptr());
        if !value.is_null() {
            SEED.store(libc::strtoul(value, core::ptr::null_mut(), 10), Relaxed);
            libc::unsetenv(VARIABLE.as_ptr());
        }
    }
    GETENTROPY.address_if_any();
    GETRANDOM.address_if_any();
}

/// Exchanges the first random bytes for those of the seed, if there is one.
///
/// # Safety
/// So many bytes can be written there.
unsafe fn exchange(bytes: *mut c_void, count: usize) {
    let mut state = match SEED.load(Relaxed) {
        0 => return,
        _ => SEED.swap(0, Relaxed),
    };
    // SAFETY: as the caller promises.
    for byte in unsafe { core::slice::from_raw_parts_mut(bytes.cast::<u8>(), count) } {
        // The generator of Steele and others (SplitMix64, 2014): a seed of few bits becomes many.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        *byte = (mixed ^ mixed >> 31) as u8;
    }
}

/// The C library's function of this name (since 2.25).
///
/// # Safety
/// As for the function of the C library.
#[no_mangle]
pub unsafe extern "C" fn getentropy(bytes: *mut c_void, count: usize) -> c_int {
    // SAFETY: the type is that of the C library's function; the arguments are the caller's, and good for so many bytes if it succeeds.
    unsafe {
        let status = match GETENTROPY.address_if_any().is_null() {
            false => GETENTROPY.get::<unsafe extern "C" fn(*mut c_void, usize) -> c_int>()(bytes, count),
            // Up to 256 bytes come at once, or none.
            true if count <= 256 => (libc::syscall(libc::SYS_getrandom, bytes, count, 0) != count as c_long).into(),
            true => {
                *libc::__errno_location() = libc::EIO;
                1
            }
        };
        if status == 0 {
            exchange(bytes, count);
        }
        -status.abs()
    }
}

/// The C library's function of this name (since 2.25).
///
/// # Safety
/// As for the function of the C library.
#[no_mangle]
pub unsafe extern "C" fn getrandom(bytes: *mut c_void, count: usize, flags: c_uint) -> isize {
    // SAFETY: as above; it returns how many bytes it has written.
    unsafe {
        let written = match GETRANDOM.address_if_any().is_null() {
            false => GETRANDOM.get::<unsafe extern "C" fn(*mut c_void, usize, c_uint) -> isize>()(bytes, count, flags),
            true => libc::syscall(libc::SYS_getrandom, bytes, count, flags) as isize,
        };
        if let Ok(written) = usize::try_from(written) {
            exchange(bytes, written);
        }
        written
    }
}
