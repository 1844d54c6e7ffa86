//! Signals such as Ctrl-C during a freeze: detected between waits, so that everything is cleaned up before the end.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;

use nix::sys::signal::SigSet;
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level};

use crate::outcome::{Result, Stop};

/// The signals that end a freeze.
const ENDING: [i32; 4] = [SIGALRM, SIGHUP, SIGINT, SIGTERM];
/// Higher numbers are real-time signals, which no shell ignores.
const LAST_STANDARD: i32 = 31;

/// Whether this process was started with that signal ignored.
pub fn is_ignored(signal: i32) -> bool {
    ignored_signals() & (1 << (signal - 1)) != 0
}

/// Detects signals from its construction on.
pub struct Interrupt {
    /// Becomes readable when a signal arrives.
    wake: UnixStream,
    /// The last signal, or 0.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Starts to detect signals, and gives every child the default action for each signal and an empty mask.
    ///
    /// A shell starts background commands with SIGINT ignored, nohup with SIGHUP ignored. A runtime that boots this way
    /// does not set its own handler, and the image would keep that state for good. A signal with a handler here has its
    /// default action in a child, so ignored signals get an empty handler.
    pub fn notice() -> std::io::Result<Self> {
        let (wake, sender) = UnixStream::pair()?;
        let signal = Arc::new(AtomicUsize::new(0));
        let ignored = ignored_signals();
        for number in 1..=LAST_STANDARD {
            if ignored & (1 << (number - 1)) != 0 {
                // Signals that cannot be handled cannot be ignored either; Rust itself resets SIGPIPE.
                let _ = flag::register(number, Arc::new(AtomicBool::new(false)));
            } else if ENDING.contains(&number) {
                flag::register_usize(number, Arc::clone(&signal), number as usize)?;
                low_level::pipe::register(number, sender.try_clone()?)?;
            }
        }
        SigSet::empty().thread_set_mask()?;
        Ok(Interrupt { wake, signal })
    }

    /// A descriptor that becomes readable when a signal arrives.
    pub fn wake(&self) -> &UnixStream {
        &self.wake
    }

    /// Fails if a signal has arrived.
    pub fn check(&self) -> Result<()> {
        self.signal().map_or(Ok(()), |signal| Err(Stop::Interrupted(signal)))
    }

    /// The signal that arrived, if any.
    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::SeqCst) {
            0 => None,
            number => Some(number as i32),
        }
    }
}

/// The mask of signals that were ignored when this process started.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
