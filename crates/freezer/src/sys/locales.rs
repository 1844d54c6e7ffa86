//! The locale of the C library: choosing it past the hook, and what is known of it.

use core::ffi::{c_char, c_int, CStr};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

type SetLocale = unsafe extern "C" fn(c_int, *const c_char) -> *mut c_char;

/// Whether somebody has chosen a locale while the process boots.
static IS_CHOSEN: AtomicBool = AtomicBool::new(false);

/// Whether somebody has chosen a locale, and not the runtime at its start.
pub fn is_chosen() -> bool {
    IS_CHOSEN.load(Relaxed)
}

/// The program chooses one.
pub fn program_chooses() {
    IS_CHOSEN.store(true, Relaxed);
}

/// The runtime has started: what was chosen until now was its own choice.
pub fn runtime_has_chosen() {
    IS_CHOSEN.store(false, Relaxed);
}

/// The C library's own function. Looked up only where a locale is renewed.
fn set_locale(category: c_int, name: *const c_char) -> *mut c_char {
    // SAFETY: the type is that of the C library's function; the name is a string, or null to ask which locale is in effect.
    unsafe {
        let address = libc::dlsym(libc::RTLD_NEXT, c"setlocale".as_ptr());
        assert!(!address.is_null(), "glibc has this function");
        transmute::<*mut core::ffi::c_void, SetLocale>(address)(category, name)
    }
}

/// Chooses a locale. Returns whether there is one of that name.
pub fn choose(category: c_int, name: &CStr) -> bool {
    !set_locale(category, name.as_ptr()).is_null()
}

/// The name of the locale in effect.
pub fn name(category: c_int) -> &'static CStr {
    // SAFETY: the C library returns a string that lives until another locale is chosen.
    unsafe { CStr::from_ptr(set_locale(category, core::ptr::null())) }
}

/// The encoding of text in the locale in effect.
pub fn text_encoding() -> &'static CStr {
    // SAFETY: a plain call that returns a string.
    unsafe { CStr::from_ptr(libc::nl_langinfo(libc::CODESET)) }
}
