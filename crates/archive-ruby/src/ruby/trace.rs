//! Hearing of code that is compiled.
#![allow(unsafe_code)]

use std::ffi::c_void;

use super::{nil, protect, Protected, Value};

unsafe extern "C-unwind" {
    fn rb_tracepoint_new(
        thread: Value,
        events: u32,
        function: extern "C-unwind" fn(Value, *mut c_void),
        data: *mut c_void,
    ) -> Value;
    fn rb_tracepoint_enable(tracepoint: Value) -> Value;
    fn rb_tracepoint_disable(tracepoint: Value) -> Value;
}

/// Number of the event for code that has just been compiled. Part of the public API, the same in all versions.
pub(super) const SCRIPT_COMPILED: u32 = 0x2000;

/// A TracePoint that calls `function` with itself when a file or string has been compiled. It is not enabled.
pub fn compile_tracer(function: extern "C-unwind" fn(Value, *mut c_void)) -> Protected {
    // SAFETY: the function has the type that Ruby calls, and no use for data.
    protect(|| unsafe { rb_tracepoint_new(nil(), SCRIPT_COMPILED, function, std::ptr::null_mut()) })
}

pub fn enable(tracepoint: Value) -> Protected<()> {
    // SAFETY: a TracePoint.
    protect(|| unsafe { rb_tracepoint_enable(tracepoint) }).map(drop)
}

pub fn disable(tracepoint: Value) -> Protected<()> {
    // SAFETY: a TracePoint.
    protect(|| unsafe { rb_tracepoint_disable(tracepoint) }).map(drop)
}
