//! Whether Ruby warns while it compiles a file. Code from the archive is not parsed, so nobody would hear of it again.
//!
//! `Warning.warn` is defined while Ruby compiles, before the method of that name that is there. Where the program has defined
//! just this one itself, nothing is heard.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::OnceLock;

use crate::ruby::{self, method::Function, Protected, Value};

static IS_LISTENING: AtomicBool = AtomicBool::new(false);

/// Somebody was warned of something.
static WAS_HEARD: AtomicBool = AtomicBool::new(false);

/// Warning, and its singleton class.
static WARNING: OnceLock<(Value, Value)> = OnceLock::new();

/// Forgets what was heard, and listens from now on.
pub fn listen() -> Protected<()> {
    WAS_HEARD.store(false, Relaxed);
    let (warning, class) = warning()?;
    if !ruby::send(class, "method_defined?", &[ruby::symbol("warn")?, ruby::boolean(false)])?.is_truthy() {
        Function::Any(warn).define_singleton(warning, c"warn")?;
        IS_LISTENING.store(true, Relaxed);
    }
    Ok(())
}

/// Listens no longer.
pub fn stop() -> Protected<()> {
    if IS_LISTENING.swap(false, Relaxed) {
        ruby::send(warning()?.1, "remove_method", &[ruby::symbol("warn")?])?;
    }
    Ok(())
}

/// Whether there was a warning.
pub fn were_heard() -> bool {
    WAS_HEARD.load(Relaxed)
}

fn warning() -> Protected<(Value, Value)> {
    if let Some(known) = WARNING.get() {
        return Ok(*known);
    }
    let warning = ruby::keep(ruby::module(c"Warning")?)?;
    let class = ruby::keep(ruby::send(warning, "singleton_class", &[])?)?;
    Ok(*WARNING.get_or_init(|| (warning, class)))
}

/// Warning.warn(message, category: nil)
unsafe extern "C-unwind" fn warn(count: c_int, arguments: *const Value, _: Value) -> Value {
    WAS_HEARD.store(true, Relaxed);
    // SAFETY: as Ruby gave them.
    let arguments = unsafe { ruby::method::arguments(count, arguments) };
    ruby::entry(|| ruby::call_super(arguments))
}
