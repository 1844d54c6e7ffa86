//! The frames that are being executed.
#![allow(unsafe_code)]

use std::ffi::{c_long, c_void};

use super::{entry, Protected, Ruby, Value};

/// What Ruby gives to a function that looks at the frames. Valid until that function returns.
#[repr(C)]
struct Inspector([u8; 0]);

unsafe extern "C-unwind" {
    fn rb_debug_inspector_open<'r>(
        function: extern "C-unwind" fn(*const Inspector, *mut c_void) -> Value<'r>,
        data: *mut c_void,
    ) -> Value<'r>;
    fn rb_debug_inspector_backtrace_locations<'r>(inspector: *const Inspector) -> Value<'r>;
    fn rb_debug_inspector_frame_binding_get<'r>(inspector: *const Inspector, index: c_long) -> Value<'r>;
    fn rb_debug_inspector_frame_self_get<'r>(inspector: *const Inspector, index: c_long) -> Value<'r>;
}

extern "C-unwind" fn list<'r>(inspector: *const Inspector, _: *mut c_void) -> Value<'r> {
    let work = |ruby: Ruby<'r>| {
        let all = ruby.array()?;
        // SAFETY: the inspector is valid until this function returns.
        let places = ruby.protect(|| unsafe { rb_debug_inspector_backtrace_locations(inspector) })?;
        for at in 0..ruby.length(places)? {
            let index = at as c_long;
            // SAFETY: as above, and there are as many frames as places.
            let binding = ruby.protect(|| unsafe { rb_debug_inspector_frame_binding_get(inspector, index) })?;
            // SAFETY: as above.
            let receiver = ruby.protect(|| unsafe { rb_debug_inspector_frame_self_get(inspector, index) })?;
            ruby.push(all, ruby.array_of(&[ruby.entry_of(places, at), binding, receiver])?)?;
        }
        Ok(all)
    };
    // SAFETY: Ruby calls this. It owns nothing.
    unsafe { entry(work) }
}

impl<'r> Ruby<'r> {
    /// All frames of the current thread, the innermost first: arrays of its place (Thread::Backtrace::Location), its
    /// Binding (nil where C code runs) and its receiver.
    pub fn frames(self) -> Protected<Value<'r>> {
        // SAFETY: the function has the type that Ruby calls, and uses no data.
        self.protect(|| unsafe { rb_debug_inspector_open(list, std::ptr::null_mut()) })
    }
}
