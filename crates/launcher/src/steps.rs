//! When the steps of a thaw begin and end, for `snapboot explain`: noted only where SNAPBOOT_EXPLAIN names a file for that.
//!
//! docs/internals/protocol.md describes the entries. Front ends go on with them after the jump.

use core::fmt::Write;

use image::{reserved, Directory, Section};
use inputs::environment::value_of;
use linux_raw_sys::general::{O_APPEND, O_CLOEXEC, O_CREAT, O_NOFOLLOW, O_WRONLY};

use crate::argument_block::Block;
use crate::frozen::Frozen;
use crate::laps::Laps;
use crate::reason::Reason;
use crate::sys::{self, Fd};
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
    /// What tells the variant that is thawed: where its tables are in the image.
    variant: u64,
    checked: Laps,
    /// Whether a second process has checked the inputs.
    is_beside: bool,
    mapped: Laps,
}

impl Steps {
    /// None yet.
    pub fn new(block: &Block) -> Steps {
        let is_set = |name| value_of(name, block.environment()).is_some();
        let is_on = is_set(FILE);
        let counts = is_on && is_set(COUNT);
        let (checked, mapped) = (Laps::default(), Laps::default());
        let begun = [(0, ""); MAX_STEPS];
        Steps { is_on, counts, begun, count: 0, entries: 0, variant: 0, checked, is_beside: false, mapped }
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

    /// Room for the time that each directory of inputs takes.
    pub fn directories(&mut self, frozen: &Frozen) -> Result<Laps, Reason> {
        self.variant = frozen.head.tables_offset;
        let rows = frozen.rows::<Directory>(Section::Directories)?;
        Ok(if self.has_laps() { Laps::with_room(reserved::TIMES_OF_DIRECTORIES, rows.len()) } else { Laps::default() })
    }

    /// Whether times of parts of steps are noted: not where calls are counted, which this would add to.
    fn has_laps(&self) -> bool {
        self.is_on && !self.counts
    }

    /// Takes these times. `is_beside`: a second process has done that meanwhile.
    pub fn have_checked(&mut self, checked: Laps, is_beside: bool) {
        (self.checked, self.is_beside) = (checked, is_beside);
    }

    /// Room for the time that each of so many mapped files takes, from now on.
    pub fn files(&mut self, count: usize) -> &mut Laps {
        if self.has_laps() {
            self.mapped = Laps::with_room(reserved::TIMES_OF_FILES, count);
            self.mapped.begin();
        }
        &mut self.mapped
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
                let beside = u32::from(self.is_beside);
                write_laps(file, format_args!("checked={} {beside}", self.variant), &self.checked);
                write_laps(file, format_args!("mapped={}", self.variant), &self.mapped);
                sys::close(file);
            }
        }
    }
}

/// Writes an entry that begins with `head` and has all these times, if they were noted. One that cannot be written as a whole makes all that
/// is told worthless, as any other.
fn write_laps(file: Fd, head: core::fmt::Arguments<'_>, laps: &Laps) {
    if !laps.are_noted() {
        return;
    }
    /// Room for the longest time, and the NUL at the end.
    const LONGEST: usize = 24;
    let mut text = Text::<TEXT_SIZE>::new();
    let _ = text.write_fmt(head);
    for time in laps.times() {
        if text.bytes().len() + LONGEST > TEXT_SIZE {
            let _ = sys::write_all(file, text.bytes());
            text = Text::new();
        }
        let _ = write!(text, " {time}");
    }
    text.push(b"\0");
    let _ = sys::write_all(file, text.bytes());
}
