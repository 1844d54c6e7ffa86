//! When the steps of a thaw begin and end, for `snapboot explain`: noted only where SNAPBOOT_EXPLAIN names a file for that.
//!
//! docs/internals/protocol.md describes the entries. Front ends go on with them after the jump.

use core::fmt::Write;

use inputs::environment::value_of;
use linux_raw_sys::general::{O_APPEND, O_CLOEXEC, O_CREAT, O_NOFOLLOW, O_WRONLY};

use crate::block::Block;
use crate::sys;
use crate::text::Text;

/// Names the file.
const FILE: &[u8] = b"SNAPBOOT_EXPLAIN";
/// Says that system calls are counted from outside, see [`sys::announce`].
const COUNT: &[u8] = b"SNAPBOOT_EXPLAIN_COUNT";
/// More than there are.
const MAX_STEPS: usize = 12;
const TEXT_SIZE: usize = 2048;

/// The steps so far.
pub struct Steps {
    is_on: bool,
    counts: bool,
    begun: [(u64, &'static str); MAX_STEPS],
    count: usize,
    entries: u32,
}

impl Steps {
    /// None yet.
    pub fn of(block: &Block) -> Steps {
        let is_set = |name| value_of(name, block.environment()).is_some();
        let is_on = is_set(FILE);
        Steps { is_on, counts: is_on && is_set(COUNT), begun: [(0, ""); MAX_STEPS], count: 0, entries: 0 }
    }

    /// The step before ends, and one begins. `step`: its kind and its name.
    pub fn next(&mut self, step: &'static str) {
        if !self.is_on || self.count == MAX_STEPS {
            return;
        }
        if self.count > 0 {
            self.announce();
        }
        self.announce();
        self.begun[self.count] = (sys::monotonic().unwrap_or(0), step);
        self.count += 1;
    }

    /// Says which entry comes, where system calls are counted.
    fn announce(&mut self) {
        if self.counts {
            sys::announce(self.entries);
        }
        self.entries += 1;
    }

    /// Ends the last step and writes all of them to the file. That it cannot is no matter: then nothing is told.
    #[inline(never)]
    pub fn write(&mut self, block: &Block) {
        if !self.is_on {
            return;
        }
        self.announce();
        let end = sys::monotonic().unwrap_or(0);
        let mut text = Text::<TEXT_SIZE>::new();
        let steps = &self.begun[..self.count];
        for (index, (begun, step)) in steps.iter().enumerate() {
            let end = steps.get(index + 1).map_or(end, |(next, _)| *next);
            let _ = write!(text, "begin={begun} {step}\0end={end} \0");
        }
        let mut path = Text::<512>::new();
        path.push(value_of(FILE, block.environment()).unwrap_or_default());
        path.push(b"\0");
        if let (Some(text), Some(path)) = (text.complete(), path.complete()) {
            if let Ok(file) = sys::create(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0o600) {
                let _ = sys::write_all(file, text);
                sys::close(file);
            }
        }
    }
}
