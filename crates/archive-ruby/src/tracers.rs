//! Whether somebody traces what is compiled: code from the archive would go unnoticed.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::ruby::{self, method::Function, Protected, Value};

const BEFORE: &str = "snapboot_new_before";

/// A TracePoint for all events, or for this one, has been made, where Ruby does not tell whether one is enabled.
static MAY_BE_TRACED: AtomicBool = AtomicBool::new(false);

/// Whether somebody wants to hear of all code that is compiled.
pub fn is_compiling_traced() -> bool {
    ruby::is_compiling_traced().unwrap_or_else(|| MAY_BE_TRACED.load(Relaxed))
}

/// Notices TracePoints from now on, where Ruby does not tell.
pub fn watch() -> Protected<()> {
    let class = ruby::find_constant(ruby::object_class(), "TracePoint")?;
    if let (None, Some(class)) = (ruby::is_compiling_traced(), class) {
        ruby::alias_singleton(class, BEFORE, "new")?;
        Function::Any(new).define_singleton(class, c"new")?;
    }
    Ok(())
}

/// TracePoint.new(*events) { ... }
unsafe extern "C-unwind" fn new(count: c_int, arguments: *const Value, class: Value) -> Value {
    // SAFETY: as Ruby gave them.
    let events = unsafe { ruby::method::arguments(count, arguments) };
    ruby::entry(|| {
        let compiled = ruby::symbol("script_compiled")?;
        let is_other = |event: &Value| *event != compiled && event.is_symbol();
        if events.is_empty() || !events.iter().all(is_other) {
            MAY_BE_TRACED.store(true, Relaxed);
        }
        ruby::call_with_block(class, ruby::intern(BEFORE)?, events)
    })
}
