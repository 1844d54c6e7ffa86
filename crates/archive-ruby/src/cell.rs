//! Values that belong to the main Ractor.
#![allow(unsafe_code)]

use std::cell::{Cell, UnsafeCell};

use crate::ruby::Main;

/// A value for one user at a time: the thread that has the lock of the main Ractor.
pub struct GvlCell<T> {
    value: UnsafeCell<Option<T>>,
    is_used: Cell<bool>,
}

// SAFETY: both methods need the token of the main Ractor, which one thread has at a time. A thread that runs Ruby code inside
// `work` may give the lock to another: `is_used` keeps that one out. The value moves between threads so, hence `Send`.
unsafe impl<T: Send> Sync for GvlCell<T> {}

impl<T> GvlCell<T> {
    pub const fn empty() -> Self {
        GvlCell { value: UnsafeCell::new(None), is_used: Cell::new(false) }
    }

    /// Puts the value there, unless there is one.
    pub fn fill(&self, _: Main<'_>, make: impl FnOnce() -> Option<T>) {
        if self.is_used.replace(true) {
            return;
        }
        // SAFETY: nobody else uses it, as `is_used` said, and this use ends before that is reset.
        let value = unsafe { &mut *self.value.get() };
        if value.is_none() {
            *value = make();
        }
        self.is_used.set(false);
    }

    /// Passes the value to `work`, which must not run Ruby code. `None`: there is no value, or it is in use.
    pub fn with<R>(&self, _: Main<'_>, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.is_used.replace(true) {
            return None;
        }
        // SAFETY: nobody else uses it, as `is_used` said, and this use ends before that is reset.
        let result = unsafe { &mut *self.value.get() }.as_mut().map(work);
        self.is_used.set(false);
        result
    }
}
