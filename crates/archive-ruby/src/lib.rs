//! The native part of the gem `snapboot`, for CRuby 3.0 and later: the boot archive under `require`.
#![deny(unsafe_code)]

mod boot;
mod cell;
mod code;
mod document;
mod events;
mod exits;
mod gems;
mod heap;
mod linked_in;
mod load_path;
mod methods;
mod names;
mod relocate;
mod require;
mod ruby;
mod script;
mod session;
mod warnings;

/// Called by Ruby when the library is loaded.
#[allow(unsafe_code)]
#[no_mangle]
pub extern "C-unwind" fn Init_libsnapboot_ruby() {
    // SAFETY: Ruby calls this, and it owns nothing.
    unsafe { ruby::initialise(methods::define) };
}
