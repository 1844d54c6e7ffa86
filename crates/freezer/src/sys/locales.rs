//! The C library's locale: chooses it without the hook, and reads its properties.

use core::ffi::{c_char, c_int, CStr};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

type SetLocale = unsafe extern "C" fn(c_int, *const c_char) -> *mut c_char;

/// Whether any code has chosen a locale during the boot.
static IS_CHOSEN: AtomicBool = AtomicBool::new(false);

/// Whether the program has chosen a locale, rather than the runtime at its start.
pub fn is_chosen() -> bool {
    IS_CHOSEN.load(Relaxed)
}

/// Records that the program chooses a locale.
pub fn program_chooses() {
    IS_CHOSEN.store(true, Relaxed);
}

/// Records that the runtime has started: earlier choices were its own.
pub fn runtime_has_chosen() {
    IS_CHOSEN.store(false, Relaxed);
}

/// The C library's own function. Resolved only when a locale is renewed.
fn set_locale(category: c_int, name: *const c_char) -> *mut c_char {
    // SAFETY: the type is that of the C library's function; the name is a string, or null to ask which locale is in effect.
    unsafe {
        let address = libc::dlsym(libc::RTLD_NEXT, c"setlocale".as_ptr());
        assert!(!address.is_null(), "glibc has this function");
        transmute::<*mut core::ffi::c_void, SetLocale>(address)(category, name)
    }
}

/// Chooses a locale. Returns whether it exists.
pub fn choose(category: c_int, name: &CStr) -> bool {
    !set_locale(category, name.as_ptr()).is_null()
}

/// The name of the locale in effect.
pub fn current_name(category: c_int) -> &'static CStr {
    // SAFETY: the C library returns a string that lives until another locale is chosen.
    unsafe { CStr::from_ptr(set_locale(category, core::ptr::null())) }
}

/// The encoding of LC_CTYPE's current locale.
pub fn text_encoding() -> &'static CStr {
    // SAFETY: a plain call that returns a string.
    unsafe { CStr::from_ptr(libc::nl_langinfo(libc::CODESET)) }
}
