//! The page faults of a thaw, by the contents of the pages: a library, the heap, new memory.
//!
//! The run whose system calls are counted is observed between the parts of the start: which pages have appeared since the previous part,
//! and how many faults the kernel has counted ([`pages`]). The tables of the image show the contents ([`holders`]). One more process
//! measures the cost ([`replay`]).

mod holders;
mod pages;
mod replay;
mod rows;
mod spans;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use image::{mapping_kind, Mapping, Section};
use image_file::{ImageFile, Variant};
use nix::unistd::Pid;

use self::holders::Holders;
use self::pages::{Change, Snapshot, PAGE};
pub use self::replay::{Cost, NoCost, Replay};
use self::spans::Interval;
use crate::count::Watch;
use crate::events::Event;
use crate::merge::median_and_spread;
use crate::tree::Node;

/// The maximum number of cached file pages that one fault maps: those within a range of this size.
const AROUND: u64 = 16 * PAGE;

/// The number of processes in which faults are replayed.
const REPLAYS: usize = 8;

/// Observes a start between its parts.
pub struct Moments {
    /// The entries before which pages are observed.
    wanted: BTreeSet<usize>,
    snapshots: BTreeMap<usize, Snapshot>,
    /// The number of faults before each entry.
    faults: BTreeMap<usize, u64>,
    end: Option<Snapshot>,
    /// Why it could not be observed.
    pub failed: Option<io::Error>,
}

impl Moments {
    /// For a start with the same entries as one with these events.
    pub fn like(events: &[Event]) -> Moments {
        let wanted = spans::top(events).iter().flat_map(|span| [span.begin, span.end]).collect();
        let (snapshots, faults) = (BTreeMap::new(), BTreeMap::new());
        Moments { wanted, snapshots, faults, end: None, failed: None }
    }

    fn look(&mut self, process: Pid, entry: usize) -> io::Result<()> {
        self.faults.insert(entry, pages::faults(process)?);
        if self.wanted.contains(&entry) {
            self.snapshots.insert(entry, Snapshot::take(process)?);
        }
        Ok(())
    }
}

impl Watch for Moments {
    fn before_entry(&mut self, process: Pid, number: usize) -> ControlFlow<()> {
        if let Err(error) = self.look(process, number) {
            self.failed.get_or_insert(error);
        }
        ControlFlow::Continue(())
    }

    fn at_end(&mut self, process: Pid) {
        match Snapshot::take(process) {
            Ok(snapshot) => self.end = Some(snapshot),
            Err(error) => {
                self.failed.get_or_insert(error);
            }
        }
    }
}

/// The faults of all parts of a start.
pub struct Faults {
    /// Those that the launcher has taken in advance, followed by those of each part.
    parts: Vec<OfPart>,
    /// The entry where the launcher has done its work.
    thawed: usize,
    /// How many of the pages to replay are present by then.
    there: usize,
    /// How many variants the image has.
    variants: usize,
    /// Why their cost is unknown.
    untimed: Option<NoCost>,
}

/// The faults of one part.
struct OfPart {
    interval: Interval,
    /// The kernel's count.
    count: u64,
    /// How many of these belong to nested parts.
    inner: u64,
    /// The contents of the pages.
    held: BTreeMap<String, Held>,
}

/// Pages with the same contents.
#[derive(Debug, Default)]
struct Held {
    /// Each written page, and one page for each read fault.
    changes: Vec<(u64, Change)>,
    /// Pages of the image or of another file that were written to: copied.
    copied: u64,
    /// Pages that were zeros.
    new: u64,
    /// The number of faults for these: one covers many pages of a huge page.
    new_times: u64,
    /// Pages of files that were read.
    read: u64,
    /// The number of faults for these: one brings in its neighbours.
    read_times: u64,
    /// Their cost (s), as far as it was measured.
    seconds: f64,
}

impl Held {
    fn faults(&self) -> u64 {
        self.copied + self.new_times + self.read_times
    }
}

impl Faults {
    /// The faults of a start of this image with these events; none if it was not observed everywhere.
    pub fn between(image: &Path, events: &[Event], moments: &Moments) -> Option<Faults> {
        let (intervals, thawed) = spans::intervals(events)?;
        let image = ImageFile::open(image).ok()?;
        let at_first = moments.snapshots.get(&thawed)?;
        let holders = Holders::from_tables(thawed_variant(&image, at_first)?).ok()?;
        let parts = intervals.into_iter().map(|interval| {
            let before = moments.snapshots.get(&interval.begin)?;
            let after = match interval.end {
                Some(end) => moments.snapshots.get(&end)?,
                None => moments.end.as_ref()?,
            };
            let between = |begin, end| Some(moments.faults.get(&end)?.saturating_sub(*moments.faults.get(&begin)?));
            let inner = interval.inner.iter().filter_map(|&(begin, end)| between(begin, end)).sum();
            let count = after.faults.saturating_sub(before.faults);
            let mut held = held(before, after, &holders);
            if !interval.is_launcher {
                fit(&mut held, count);
            }
            Some(OfPart { count, inner, held, interval })
        });
        let (parts, variants) = (parts.collect::<Option<_>>()?, image.variants.len());
        let mut faults = Faults { parts, thawed, there: 0, variants, untimed: None };
        let pages = faults.after_the_launcher().flat_map(|held| &held.changes);
        faults.there = pages.filter(|(page, _)| at_first.region(*page).is_some()).count();
        Some(faults)
    }

    /// The pages whose faults are replayed.
    pub fn replay(&self) -> Replay<'_> {
        Replay::new(self.thawed, self.after_the_launcher().map(|held| held.changes.as_slice()).collect())
    }

    fn after_the_launcher(&self) -> impl Iterator<Item = &Held> {
        self.parts.iter().filter(|part| !part.interval.is_launcher).flat_map(|part| part.held.values())
    }

    /// The maximum number of replays, so that some surely hit the same variant of the image.
    pub fn most_replays(&self) -> usize {
        2 * REPLAYS * self.variants
    }

    /// Whether these [`Faults::replay`]s are enough.
    pub fn are_enough(&self, runs: &[Result<Vec<Cost>, NoCost>]) -> bool {
        runs.iter().any(Result::is_err) || runs.iter().flatten().filter(|run| self.fits(run)).count() >= REPLAYS
    }

    /// Whether a replay hit the same variant of the image: another one has other addresses.
    fn fits(&self, run: &[Cost]) -> bool {
        run.iter().map(|cost| cost.pages).sum::<usize>() * 2 >= self.there
    }

    /// Adds the costs from several [`Faults::replay`]s.
    pub fn take_costs(&mut self, runs: Vec<Result<Vec<Cost>, NoCost>>) {
        let (mut costs, mut why) = (Vec::new(), None);
        for run in runs {
            match run {
                Ok(run) if self.fits(&run) => costs.push(run),
                Ok(_) => {}
                Err(no_cost) => why = why.or(Some(no_cost)),
            }
        }
        if costs.is_empty() {
            self.untimed = Some(why.unwrap_or(NoCost::Elsewhere));
            return;
        }
        let (new, entering) = replay::of_new_memory().unwrap_or_default();
        let parts = self.parts.iter_mut().filter(|part| !part.interval.is_launcher);
        for (index, held) in parts.flat_map(|part| part.held.values_mut()).enumerate() {
            let pages = costs[0][index].pages;
            let mut times: Vec<f64> = costs.iter().map(|run| run[index].seconds).collect();
            let measured = median_and_spread(&mut times).0;
            held.seconds = match pages {
                // New memory does not exist before the program runs.
                0 => held.changes.len() as f64 * new,
                _ => measured * held.changes.len() as f64 / pages as f64 + held.faults() as f64 * entering,
            };
        }
    }

    /// Puts them into the tree of the start. Returns why their cost is unknown, if it is.
    pub fn add_to(self, root: &mut Node) -> Option<NoCost> {
        rows::add(root, &self.parts);
        self.untimed
    }
}

/// The variant that a process was thawed from: most of its memory has the same addresses.
fn thawed_variant<'a>(image: &'a ImageFile, now: &Snapshot) -> Option<&'a Variant> {
    let there = |variant: &Variant| {
        let rows = variant.tables().rows::<Mapping>(Section::Mappings).ok()?;
        Some(rows.filter(|row| row.kind == mapping_kind::IMAGE && now.region(row.start).is_some()).count())
    };
    image.variants.iter().max_by_key(|variant| there(variant))
}

/// The changes between two moments, by contents.
fn held(before: &Snapshot, after: &Snapshot, holders: &Holders) -> BTreeMap<String, Held> {
    let mut all: BTreeMap<String, Held> = BTreeMap::new();
    let mut around = (0, 0);
    for (page, change) in after.since(before) {
        let Some(region) = after.region(page) else { continue };
        let held = all.entry(holders.name(page, region)).or_default();
        match change {
            Change::Read => {
                held.read += 1;
                // One mapping after the other, each page by page.
                let here = (region.addresses.start, page / AROUND);
                if here == around {
                    continue;
                }
                held.read_times += 1;
                around = here;
            }
            Change::Written if region.name.starts_with('/') => held.copied += 1,
            Change::Written => {
                held.new += 1;
                held.new_times += 1;
            }
        }
        held.changes.push((page, change));
    }
    all
}

/// Reduces the faults to the kernel's count: one fault may map more than [`AROUND`] if a file is in memory in large pieces, and huge pages
/// of zeros.
fn fit(held: &mut BTreeMap<String, Held>, count: u64) {
    let too_many = |held: &BTreeMap<String, Held>| held.values().map(Held::faults).sum::<u64>().saturating_sub(count);
    let excess = too_many(held);
    reduce(held.values_mut().map(|held| &mut held.read_times), excess);
    let excess = too_many(held);
    reduce(held.values_mut().map(|held| &mut held.new_times), excess);
}

/// Subtracts this much from the numbers in proportion, at most to zero.
fn reduce<'a>(numbers: impl Iterator<Item = &'a mut u64>, by: u64) {
    let mut numbers: Vec<_> = numbers.collect();
    let all: u64 = numbers.iter().map(|number| **number).sum();
    let mut left = by.min(all);
    if left == 0 {
        return;
    }
    let share = left as f64 / all as f64;
    numbers.sort_by_key(|number| std::cmp::Reverse(**number));
    for number in &mut numbers {
        let taken = ((**number as f64 * share) as u64).min(left);
        **number -= taken;
        left -= taken;
    }
    // The rest from rounding is smaller than the count of numbers.
    for number in &mut numbers {
        let taken = left.min(u64::from(**number > 0));
        **number -= taken;
        left -= taken;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_as_many_as_the_kernel_has_counted() {
        let of = |copied, new, read_times| Held { copied, new, new_times: new, read_times, ..Held::default() };
        let all = || {
            BTreeMap::from(
                [("a", of(3, 4, 30)), ("b", of(0, 2, 7)), ("c", of(1, 0, 1))].map(|(n, h)| (n.to_owned(), h)),
            )
        };
        for (count, expected) in [(100, 48), (48, 48), (30, 30), (8, 8), (1, 4)] {
            let mut held = all();
            fit(&mut held, count);
            assert_eq!(held.values().map(Held::faults).sum::<u64>(), expected, "{count}");
        }
        let mut held = all();
        fit(&mut held, 29);
        // Read faults are estimated, the others are not.
        assert_eq!((held["a"].faults() - held["a"].read_times, held["a"].read_times), (7, 14));
    }
}
