//! Ctrl-C and its kind during a freeze: noticed between waits, so that everything is cleaned up before the end.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use nix::sys::signal::SigSet;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::outcome::{Result, Stop};

/// The signals that end a freeze.
const ENDING: [i32; 4] = [SIGALRM, SIGHUP, SIGINT, SIGTERM];
/// Signals beyond this number are real-time ones, which no shell sets to be ignored.
const LAST_STANDARD: i32 = 31;

/// Whether this process was started with that signal ignored.
pub fn is_ignored(signal: i32) -> bool {
    ignored_signals() & (1 << (signal - 1)) != 0
}

/// Notices signals from when it is made on.
pub struct Interrupt {
    /// Readable once a signal has come.
    wake: UnixStream,
    /// The last signal that came, or 0.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Starts to notice signals, and gives every child the default action for each signal and an empty mask.
    ///
    /// A shell starts background commands with SIGINT ignored, nohup with SIGHUP ignored. A runtime that boots so does not
    /// set its own handler, and the image would keep that for good. A signal that is handled here has its default action
    /// again in a child, so ignored ones get a handler that does nothing.
    pub fn notice() -> std::io::Result<Self> {
        let (wake, sender) = UnixStream::pair()?;
        let signal = Arc::new(AtomicUsize::new(0));
        let ignored = ignored_signals();
        for number in 1..=LAST_STANDARD {
            if ignored & (1 << (number - 1)) != 0 {
                // Those that cannot be handled cannot be ignored either; SIGPIPE is reset by Rust itself.
                let _ = flag::register(number, Arc::new(AtomicBool::new(false)));
            } else if ENDING.contains(&number) {
                flag::register_usize(number, Arc::clone(&signal), number as usize)?;
                low_level::pipe::register(number, sender.try_clone()?)?;
            }
        }
        SigSet::empty().thread_set_mask()?;
        Ok(Interrupt { wake, signal })
    }

    /// A descriptor that becomes readable when a signal comes.
    pub fn wake(&self) -> &UnixStream {
        &self.wake
    }

    /// Fails when a signal has come.
    pub fn check(&self) -> Result<()> {
        self.signal().map_or(Ok(()), |signal| Err(Stop::Interrupted(signal)))
    }

    /// The signal that came, if one did.
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::SeqCst) {
            0 => None,
            number => Some(number as i32),
        }
    }
}

/// The mask of signals that this process was started with ignored.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
