//! Process-wide functions of the C library: forks, threads and signals.
#![allow(unsafe_code)]

use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};

use channel::Request;
use rustix::process::{getrlimit, Resource};

/// Makes the C library call these functions around every fork: before it, and after it in the parent and in the child. Not around functions
/// that start another program at once (`system`, `spawn`), which share the memory until then.
pub fn at_fork(before: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) {
    // SAFETY: three functions without arguments, in a library that is never unloaded.
    unsafe {
        libc::pthread_atfork(Some(before), Some(parent), Some(child));
    }
}

/// Whether the next fork of this thread is a freeze: asks the freezer, where there is one.
pub fn is_about_to_freeze() -> bool {
    let word = Request::IsArmed.word().as_bytes();
    let name = [channel::NAME, word, b"=\0"].concat();
    let mut answer = [0u8];
    // SAFETY: the name ends with a NUL, and the answer has that size.
    let size = unsafe { libc::readlink(name.as_ptr().cast(), answer.as_mut_ptr().cast(), answer.len()) };
    size == 1 && answer == *b"1"
}

/// Makes the C library call this function when the process ends by `exit`, after everything that the runtime does at its end.
pub fn at_exit(work: extern "C" fn()) {
    // SAFETY: a function without arguments, in a library that is never unloaded.
    unsafe {
        libc::atexit(work);
    }
}

/// Whether the program's memory is limited: a thread takes some of it.
pub fn is_memory_limited() -> bool {
    [Resource::As, Resource::Data].into_iter().any(|of| getrlimit(of).current.is_some())
}

/// Returns freed memory to the kernel, which the C library would otherwise keep.
pub fn give_memory_back() {
    // SAFETY: it may be called at any time; other threads that need memory wait meanwhile.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Starts a thread that handles no signals: they are for the program's threads. `None`: no further thread can be started.
pub fn start_thread(stack: usize, work: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: both have room for a set of signals, which the first call fills and the second gets.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let thread = Builder::new().name("snapboot".into()).stack_size(stack).spawn(work).ok();
    // SAFETY: the set that the call above has filled.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
    }
    thread
}
