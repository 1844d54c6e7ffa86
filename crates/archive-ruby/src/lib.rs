//! The native part of the gem `snapboot`, for CRuby 3.0 and later: the boot archive under `require`.
#![deny(unsafe_code)]

mod boot;
mod cell;
mod code;
mod directories;
mod document;
mod endings;
mod events;
mod heap;
mod load_path;
mod methods;
mod names;
mod objects;
mod process;
mod queue;
mod relocate;
mod require;
mod ruby;
mod store;
mod tracers;
mod warnings;

use boot::Boot;
use cell::Locked;
use store::Store;

/// The archive of this process.
static STORE: Locked<Store> = Locked::empty();

/// What this process knows besides it.
static BOOT: Locked<Boot> = Locked::empty();

/// Called by Ruby when the library is loaded.
#[allow(unsafe_code)]
#[no_mangle]
pub extern "C-unwind" fn Init_libsnapboot_ruby() {
    ruby::initialise();
    ruby::entry(methods::define);
}
