//! The freezer: a library preloaded (LD_PRELOAD) into the process that is frozen. It writes the process to an image.
//!
//! Its constructor registers fork handlers. Once the front end has armed it ([`sys::channel`]), the next fork is the
//! freeze: the *prepare* handler inspects what a fork would drop ([`prepare`]), and the *child* handler captures the
//! rest ([`capture`]) and ends the child. A thaw returns from that child handler: [`resume`] is the first code in the
//! thawed process, and the runtime's own code after the fork follows.
//!
//! Nothing here uses the process' heap, stdio or locks; working memory is an arena of the freezer's own
//! ([`sys::arena`]). Unsafe code lives in `sys`, `arch` and `libc` only.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

mod allocator;
mod arch;
mod capture;
mod captured_memory;
mod descriptors;
mod findings;
mod kernel;
mod libc;
mod maps;
mod pages;
mod prepare;
mod standard_streams;
mod sys;

use image::Handover;

/// Called before a fork in the process that forks.
fn before_fork() {
    if sys::channel::is_armed() {
        prepare::inspect();
        allocator::before_freeze();
    }
}

/// Called after a fork in the process that forked.
fn after_fork_in_parent() {
    findings::forget();
    sys::arena::release();
}

/// Called after a fork in the child. If the freezer is armed, the process is frozen here and resumes here after a thaw.
fn after_fork_in_child() {
    if let Some(buffer) = sys::channel::take_arm() {
        sys::attributes::settle();
        let handover = arch::suspend(capture::run);
        resume(&handover, buffer);
    }
}

/// The first code in a thawed process: fills the front end's buffer, adopts the new environment, unmaps the launcher's
/// leftovers and lets malloc map memory again.
fn resume(handover: &Handover, buffer: Option<sys::ArgvBuffer>) {
    if let Some(buffer) = buffer {
        buffer.fill(handover);
    }
    sys::adopt_environment(handover);
    allocator::after_thaw();
}
