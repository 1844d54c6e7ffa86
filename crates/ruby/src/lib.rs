//! The native part of the gem `snapboot`, for CRuby 3.0 and later: the boot archive under `require`.
#![deny(unsafe_code)]

mod cell;
mod methods;
mod ruby;
mod store;

use cell::Locked;
use store::Store;

/// The archive of this process.
static STORE: Locked<Store> = Locked::empty();

/// Called by Ruby when the library is loaded.
#[allow(unsafe_code)]
#[no_mangle]
pub extern "C-unwind" fn Init_libsnapboot_ruby() {
    ruby::initialise();
    methods::define();
}
