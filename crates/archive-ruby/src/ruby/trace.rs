//! Traces compilation.
#![allow(unsafe_code)]

use std::ffi::c_void;

use super::{entry, nil, Protected, Ruby, Value};

unsafe extern "C-unwind" {
    fn rb_tracepoint_new<'r>(
        thread: Value<'_>,
        events: u32,
        function: extern "C-unwind" fn(Value<'_>, *mut c_void),
        data: *mut c_void,
    ) -> Value<'r>;
    fn rb_tracepoint_enable<'r>(tracepoint: Value<'_>) -> Value<'r>;
    fn rb_tracepoint_disable<'r>(tracepoint: Value<'_>) -> Value<'r>;
}

/// Number of the event for code that has just been compiled. Part of the public API, the same in all versions.
pub(super) const SCRIPT_COMPILED: u32 = 0x2000;

/// What a TracePoint calls, with itself.
pub type Listener = fn(Ruby<'_>, Value<'_>);

extern "C-unwind" fn compiled(tracepoint: Value<'_>, listener: *mut c_void) {
    // SAFETY: the listener that `compile_tracer` gave to Ruby.
    let listener = unsafe { std::mem::transmute::<*mut c_void, Listener>(listener) };
    // SAFETY: Ruby calls this. It owns nothing.
    unsafe {
        entry(|ruby| {
            listener(ruby, tracepoint);
            Ok(ruby.nil())
        });
    }
}

impl<'r> Ruby<'r> {
    /// A TracePoint that calls `listener` when a file or string has been compiled. It is not enabled.
    pub fn compile_tracer(self, listener: Listener) -> Protected<Value<'r>> {
        // SAFETY: the function has the type that Ruby calls, and gets the data that it expects.
        self.protect(|| unsafe { rb_tracepoint_new(nil(), SCRIPT_COMPILED, compiled, listener as *mut c_void) })
    }

    pub fn enable(self, tracepoint: Value<'_>) -> Protected<()> {
        // SAFETY: a TracePoint.
        self.protect(|| unsafe { rb_tracepoint_enable(tracepoint) }).map(drop)
    }

    pub fn disable(self, tracepoint: Value<'_>) -> Protected<()> {
        // SAFETY: a TracePoint.
        self.protect(|| unsafe { rb_tracepoint_disable(tracepoint) }).map(drop)
    }
}
