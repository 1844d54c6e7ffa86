//! Checks whether compiling is traced: tracers would miss code from the archive.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::ruby::{Method, Protected, Ruby, Value};

/// The name under which the original TracePoint.new remains.
const BEFORE: &str = "snapboot_new_before";

/// A TracePoint for all events, or for this one, was created. Used if Ruby does not show whether one is enabled.
static MAY_BE_TRACED: AtomicBool = AtomicBool::new(false);

/// Whether compiling is traced.
pub fn is_compiling_traced(ruby: Ruby<'_>) -> bool {
    ruby.is_compiling_traced().unwrap_or_else(|| MAY_BE_TRACED.load(Relaxed))
}

/// Watches for new TracePoints from now on, if Ruby does not show them.
pub fn watch(ruby: Ruby<'_>) -> Protected<()> {
    let class = ruby.find_constant(ruby.object_class(), "TracePoint")?;
    if let (None, Some(class)) = (ruby.is_compiling_traced(), class) {
        ruby.alias_singleton(class, BEFORE, "new")?;
        ruby.define_singleton(class, c"new", Method::any(new))?;
    }
    Ok(())
}

/// TracePoint.new(*events) { ... }
fn new<'r>(ruby: Ruby<'r>, class: Value<'r>, events: &[Value<'r>]) -> Protected<Value<'r>> {
    let compiled = ruby.symbol("script_compiled")?;
    let is_other = |event: &Value<'_>| *event != compiled && ruby.is_symbol(*event);
    if events.is_empty() || !events.iter().all(is_other) {
        MAY_BE_TRACED.store(true, Relaxed);
    }
    ruby.call_with_block(class, ruby.intern(BEFORE)?, events)
}
