//! Measures the cost of page faults by replaying them, one after the other, in a process that has been thawed up to its first instruction.
//!
//! A byte of each page is read or written through /proc/PID/mem, which makes the kernel bring the page in as a fault does. The second time
//! the page is present, and the difference is the cost of the fault. The time to enter and leave the kernel is measured in memory of this
//! process, and added. The process is then killed: nothing of the program runs.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use nix::unistd::Pid;

use super::pages::{Change, Snapshot, PAGE};
use crate::count::Watch;
use crate::merge::median_and_spread;

/// How many pages of this process are touched to measure the cost of a fault.
const TRIAL: usize = 256;
/// How often.
const TRIALS: usize = 5;
/// Memory of this size is always new: no allocator caches so much (bytes).
const FRESH: usize = 40 << 20;

/// Pages of a process to bring in, and their cost.
pub struct Replay<'a> {
    /// Before this entry, the process is in its thawed state.
    entry: usize,
    groups: Vec<&'a [(u64, Change)]>,
    costs: Result<Vec<Cost>, NoCost>,
}

/// Why the cost of page faults is unknown.
#[derive(Debug)]
pub enum NoCost {
    /// The process ended before it was thawed.
    Ended,
    /// A system call failed.
    Io(io::Error),
    /// Each start has the pages at other addresses.
    Elsewhere,
}

impl fmt::Display for NoCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCost::Ended => f.write_str("the process ended before it was thawed"),
            NoCost::Io(error) => error.fmt(f),
            NoCost::Elsewhere => f.write_str("the pages have other addresses in each start"),
        }
    }
}

/// The cost of a group's pages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Without the time to enter and leave the kernel (s).
    pub seconds: f64,
    /// The number of these pages; others were not present yet.
    pub pages: usize,
}

impl<'a> Replay<'a> {
    /// For the pages of these groups, before the entry of that number.
    pub fn new(entry: usize, groups: Vec<&'a [(u64, Change)]>) -> Replay<'a> {
        Replay { entry, groups, costs: Err(NoCost::Ended) }
    }

    /// The cost of each group.
    pub fn outcome(self) -> Result<Vec<Cost>, NoCost> {
        self.costs
    }

    fn take(&self, process: Pid) -> io::Result<Vec<Cost>> {
        let now = Snapshot::take(process)?;
        let memory = OpenOptions::new().read(true).write(true).open(format!("/proc/{process}/mem"))?;
        let is_there = |address: u64, change| match (now.region(address), change) {
            // A write to a shared mapping would change its file.
            (Some(region), Change::Written) => region.is_private,
            (region, Change::Read) => region.is_some(),
            (None, _) => false,
        };
        self.groups
            .iter()
            .map(|group| {
                let there: Vec<_> = group.iter().copied().filter(|&(page, change)| is_there(page, change)).collect();
                let (first, again) = (touch(&memory, &there)?, touch(&memory, &there)?);
                Ok(Cost { seconds: (first - again).max(0.0), pages: there.len() })
            })
            .collect()
    }
}

impl Watch for Replay<'_> {
    fn before_entry(&mut self, process: Pid, number: usize) -> ControlFlow<()> {
        if number < self.entry {
            return ControlFlow::Continue(());
        }
        self.costs = self.take(process).map_err(NoCost::Io);
        ControlFlow::Break(())
    }

    fn at_end(&mut self, _: Pid) {}
}

/// How long it takes to touch these pages (s).
fn touch(memory: &File, pages: &[(u64, Change)]) -> io::Result<f64> {
    let begun = Instant::now();
    for &(page, change) in pages {
        match change {
            Change::Read => memory.read_exact_at(&mut [0], page)?,
            Change::Written => memory.write_all_at(&[0], page)?,
        }
    }
    Ok(begun.elapsed().as_secs_f64())
}

/// The cost of a fault for new memory (s), and the part of it outside of the kernel: the difference to the same page through /proc/PID/mem.
pub fn of_new_memory() -> io::Result<(f64, f64)> {
    let own = OpenOptions::new().read(true).write(true).open("/proc/self/mem")?;
    let (mut all, mut inner) = (Vec::new(), Vec::new());
    for _ in 0..TRIALS {
        let mut memory = [(); 2].map(|()| vec![0u8; FRESH]);
        all.push(elapsed(|| write_pages(&mut memory[0])) - elapsed(|| write_pages(&mut memory[0])));
        let first = (memory[1].as_ptr() as u64).next_multiple_of(PAGE);
        let pages: Vec<_> = (0..TRIAL as u64).map(|number| (first + number * PAGE, Change::Written)).collect();
        inner.push(touch(&own, &pages)? - touch(&own, &pages)?);
        black_box(&mut memory);
    }
    let [all, inner] = [all, inner].map(|mut times| median_and_spread(&mut times).0.max(0.0) / TRIAL as f64);
    Ok((all, (all - inner).clamp(0.0, all)))
}

fn write_pages(memory: &mut [u8]) {
    for byte in memory.iter_mut().step_by(PAGE as usize).take(TRIAL) {
        *black_box(byte) = 0;
    }
}

fn elapsed(what: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    what();
    begun.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_costs_something_and_its_parts_no_more() {
        let (all, entering) = of_new_memory().expect("memory that is touched has faults");
        assert!(all > 0.0 && (0.0..=all).contains(&entering), "{all} {entering}");
    }
}
