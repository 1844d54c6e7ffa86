//! Whether Ruby warns while it compiles a file. Code from the archive is not parsed, so nobody would hear of it again.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::OnceLock;

use crate::ruby::{self, method::Function, Protected, Value};

/// Somebody was warned of something.
static WAS_HEARD: AtomicBool = AtomicBool::new(false);

/// The module before Warning's own methods.
static LISTENER: OnceLock<Value> = OnceLock::new();

/// Forgets what was heard, and listens from now on.
pub fn listen() -> Protected<()> {
    WAS_HEARD.store(false, Relaxed);
    if LISTENER.get().is_some() {
        return Ok(());
    }
    let archive = ruby::module_under(ruby::module(c"Snapboot")?, c"Archive")?;
    let listener = ruby::keep(ruby::module_under(archive, c"Listener")?)?;
    LISTENER.get_or_init(|| listener);
    Function::Any(warn).define(listener, c"warn")?;
    let class = ruby::send(ruby::module(c"Warning")?, "singleton_class", &[])?;
    ruby::send(class, "prepend", &[listener]).map(drop)
}

/// Whether there was a warning.
pub fn were_heard() -> bool {
    WAS_HEARD.load(Relaxed)
}

/// Warning.warn(message, category: nil)
unsafe extern "C-unwind" fn warn(count: c_int, arguments: *const Value, _: Value) -> Value {
    WAS_HEARD.store(true, Relaxed);
    // SAFETY: as Ruby gave them.
    let arguments = unsafe { ruby::method::arguments(count, arguments) };
    ruby::entry(|| ruby::call_super(arguments))
}
