//! A second process for a moment, which works in the same memory while this one goes on: on another CPU it looks at hundreds of files
//! while the frozen memory is being laid out.
//!
//! It is a process and not a thread, so that nothing at all is left of it once it was waited for: the frozen process is to be
//! single-threaded from its first instruction on.
#![allow(unsafe_code)]

use crate::arch;
use crate::sys::{self, Pid};

/// With more inputs than this it takes less time to look at them in a second process than to wait for them in this one. To make one
/// takes as long as looking at some fifty.
const MANY: usize = 128;

/// Whether a second process saves time for so many inputs.
pub fn pays(inputs: usize) -> bool {
    inputs > MANY && sys::has_cpus()
}

/// What a helper process can do.
pub trait Work {
    /// Does it. What comes of it stays in the work; a process that was killed leaves it unfinished.
    fn run(&mut self);
}

/// Work that may be going on in a second process, which alone touches it until [`HelperProcess::finish`].
pub struct HelperProcess<'a, W: Work> {
    work: &'a mut W,
    process: Option<Pid>,
}

impl<'a, W: Work> HelperProcess<'a, W> {
    /// Has the work done: in a second process, if that `pays` and can be had, or else before this returns.
    pub fn start(work: &'a mut W, pays: bool) -> Self {
        let place = &raw mut *work as usize;
        // SAFETY: the second process ends when the work is done, and until then nobody here touches the work.
        let process = if pays { unsafe { arch::spawn(run::<W>, place) }.ok() } else { None };
        if process.is_none() {
            work.run();
        }
        HelperProcess { work, process }
    }

    /// The work, if there is no second process at it.
    pub fn done(&self) -> Option<&W> {
        self.process.is_none().then_some(&*self.work)
    }

    /// Waits for the end of the second process, and gives the work back.
    pub fn finish(&mut self) -> &mut W {
        if let Some(process) = self.process.take() {
            sys::wait(process);
        }
        self.work
    }
}

impl<W: Work> Drop for HelperProcess<'_, W> {
    /// No fallback may leave a child that its program does not know.
    fn drop(&mut self) {
        self.finish();
    }
}

/// What the second process does.
extern "C" fn run<W: Work>(place: usize) -> ! {
    // SAFETY: `HelperProcess::start` passes the address of its work, which it does not touch before this process has ended.
    let work = unsafe { &mut *(place as *mut W) };
    work.run();
    sys::exit(0)
}
