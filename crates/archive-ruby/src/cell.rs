//! What belongs to whoever has Ruby's global lock.
#![allow(unsafe_code)]

use std::cell::{Cell, UnsafeCell};

/// A value for one user at a time: the thread that has the GVL, in the main Ractor.
pub struct Locked<T> {
    value: UnsafeCell<Option<T>>,
    is_used: Cell<bool>,
}

// SAFETY: `with` is only called by threads that have the GVL, in the main Ractor (the methods of require.rs and methods.rs see
// to that), so that no two of them are in it at the same time unless one gave the lock away inside of `with`. `is_used` sees that.
unsafe impl<T> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub const fn empty() -> Self {
        Locked { value: UnsafeCell::new(None), is_used: Cell::new(false) }
    }

    /// Puts the value there, unless there is one.
    pub fn fill(&self, make: impl FnOnce() -> Option<T>) {
        if self.is_used.get() {
            return;
        }
        // SAFETY: nobody uses it, and `make` gets no access to it.
        let value = unsafe { &mut *self.value.get() };
        if value.is_none() {
            *value = make();
        }
    }

    /// Gives the value to `work`, which does not run Ruby code. `None`: there is no value, or somebody is using it.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        if self.is_used.replace(true) {
            return None;
        }
        // SAFETY: nobody else uses it, as `is_used` said, and this use ends before that is reset.
        let result = unsafe { &mut *self.value.get() }.as_mut().map(work);
        self.is_used.set(false);
        result
    }
}
