//! Checks whether Ruby warns while it compiles a file. Code from the archive is not parsed, so the warning would never be repeated.
//!
//! `Warning.warn` is overridden while Ruby compiles. If the program itself has overridden it, warnings are not seen.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::OnceLock;

use crate::ruby::{Method, Protected, Ruby, Value};

static IS_LISTENING: AtomicBool = AtomicBool::new(false);

/// There was a warning.
static WAS_HEARD: AtomicBool = AtomicBool::new(false);

/// Warning, and its singleton class.
static WARNING: OnceLock<(Value<'static>, Value<'static>)> = OnceLock::new();

/// Forgets earlier warnings, and listens from now on.
pub fn listen(ruby: Ruby<'_>) -> Protected<()> {
    WAS_HEARD.store(false, Relaxed);
    let (warning, class) = warning(ruby)?;
    if !ruby.send(class, "method_defined?", &[ruby.symbol("warn")?, ruby.boolean(false)])?.is_truthy() {
        ruby.define_singleton(warning, c"warn", Method::any(warn))?;
        IS_LISTENING.store(true, Relaxed);
    }
    Ok(())
}

/// Listens no longer.
pub fn stop(ruby: Ruby<'_>) -> Protected<()> {
    if IS_LISTENING.swap(false, Relaxed) {
        ruby.send(warning(ruby)?.1, "remove_method", &[ruby.symbol("warn")?])?;
    }
    Ok(())
}

/// Whether there was a warning.
pub fn were_heard() -> bool {
    WAS_HEARD.load(Relaxed)
}

fn warning(ruby: Ruby<'_>) -> Protected<(Value<'static>, Value<'static>)> {
    if let Some(known) = WARNING.get() {
        return Ok(*known);
    }
    let warning = ruby.keep(ruby.module(c"Warning")?)?;
    let class = ruby.keep(ruby.send(warning, "singleton_class", &[])?)?;
    Ok(*WARNING.get_or_init(|| (warning, class)))
}

/// Warning.warn(message, category: nil)
fn warn<'r>(ruby: Ruby<'r>, _: Value<'r>, arguments: &[Value<'r>]) -> Protected<Value<'r>> {
    WAS_HEARD.store(true, Relaxed);
    ruby.call_super(arguments)
}
