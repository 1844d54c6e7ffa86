//! The freezer: a library inside the process that is being frozen (by LD_PRELOAD), which writes the process to an image.
//!
//! Its constructor registers fork handlers. When the front end has asked for that ([`sys::channel`]), its next
//! fork is the freeze: the *prepare* handler looks at what a fork would drop ([`prepare`]), the *child* handler captures the rest
//! ([`capture`]) and ends the child. What the child handler was about to return to is what a thaw returns to: [`resume`] is the
//! first code that runs in the thawed process, then the runtime's own code after fork.
//!
//! Nothing here uses the process' heap, stdio or locks; working memory is an arena of the freezer's own ([`sys::arena`]).
//! Unsafe code lives in `sys`, `arch` and `libc` only.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod allocator;
mod arch;
mod capture;
mod descriptors;
mod findings;
mod kernel;
mod libc;
mod maps;
mod memory_layout;
mod pages;
mod prepare;
mod standard_streams;
mod sys;

use image::Handover;

/// Called before a fork, in the process that forks.
fn before_fork() {
    if sys::channel::is_armed() {
        prepare::inspect();
        allocator::before_freeze();
    }
}

/// Called after a fork, in the process that forked.
fn after_fork_in_parent() {
    findings::forget();
    sys::arena::release();
}

/// Called after a fork, in the child: when armed, this is where the process is frozen and where it goes on after a thaw.
fn after_fork_in_child() {
    if let Some(buffer) = sys::channel::take_arm() {
        sys::attributes::settle();
        let handover = arch::suspend(capture::run);
        resume(&handover, buffer);
    }
}

/// The first thing in a thawed process: tells the front end what it was started with, takes over the new environment, drops what the
/// launcher left and lets malloc map memory again.
fn resume(handover: &Handover, buffer: Option<sys::ArgvBuffer>) {
    if let Some(buffer) = buffer {
        buffer.fill(handover);
    }
    sys::adopt_environment(handover);
    allocator::after_thaw();
}
