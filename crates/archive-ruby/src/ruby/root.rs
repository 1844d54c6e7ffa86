//! Places outside of the stack that the garbage collector scans.
#![allow(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::{nil, Main, Protected, Value};

unsafe extern "C-unwind" {
    fn rb_gc_register_address(place: *const AtomicUsize);
}

/// A place for one object, which the garbage collector neither takes nor moves while it is there.
pub struct Root(&'static AtomicUsize);

impl Root {
    /// An empty place. It stays as long as the process.
    pub fn new(ruby: Main<'_>) -> Protected<Self> {
        let place: &'static AtomicUsize = Box::leak(Box::new(AtomicUsize::new(nil().0)));
        // SAFETY: a place of an object, which is nil for now, and is never freed.
        ruby.protect(|| unsafe { rb_gc_register_address(place) })?;
        Ok(Root(place))
    }

    pub fn set(&self, _: Main<'_>, object: Value<'_>) {
        self.0.store(object.0, Relaxed);
    }

    /// Takes the object out, or nil.
    pub fn take<'r>(&self, _: Main<'r>) -> Value<'r> {
        Value(self.0.swap(nil().0, Relaxed), std::marker::PhantomData)
    }
}
