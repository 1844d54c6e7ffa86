//! The pages of a stopped process, from the kernel's files in /proc: its mappings, which of their pages are present, and which of these are
//! private.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use nix::unistd::Pid;

/// Size of a page (bytes), as that of images.
pub const PAGE: u64 = image::PAGE;
/// The number of entries of /proc/PID/pagemap that are read at a time.
const PIECE: u64 = 1 << 16;
/// Reserved address space can be huge; the memory that a program fills is not (pages).
const MOST: u64 = 1 << 24;
/// Bits of an entry of pagemap: in memory, swapped, of a file or shared.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const FILE: u64 = 1 << 61;

/// A mapping.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    pub addresses: Range<u64>,
    pub is_private: bool,
    /// A file's path, or the kernel's name for it in brackets; empty for other memory.
    pub name: String,
}

/// All mappings and pages at one moment.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub regions: Vec<Region>,
    /// Numbers of the present pages, in order; the lowest bit says whether the page is private, and not one of a file.
    pages: Vec<u64>,
    /// The sum of minor and major faults.
    pub faults: u64,
}

/// A change of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is a page of a file, and is present now.
    Read,
    /// It is private now.
    Written,
}

impl Snapshot {
    /// Reads it from a stopped process.
    pub fn take(process: Pid) -> io::Result<Snapshot> {
        let faults = faults(process)?;
        let maps = fs::read(format!("/proc/{process}/maps"))?;
        let pagemap = File::open(format!("/proc/{process}/pagemap"))?;
        let mut snapshot = Snapshot { faults, ..Snapshot::default() };
        snapshot.regions.extend(String::from_utf8_lossy(&maps).lines().filter_map(region));
        let mut buffer = vec![0; PIECE as usize * 8];
        for region in &snapshot.regions {
            let (mut at, end) = (region.addresses.start / PAGE, region.addresses.end / PAGE);
            if end - at > MOST {
                continue;
            }
            while at < end {
                let piece = &mut buffer[..(end - at).min(PIECE) as usize * 8];
                pagemap.read_exact_at(piece, at * 8)?;
                for entry in piece.chunks_exact(8) {
                    let entry = u64::from_le_bytes(entry.try_into().expect("eight bytes"));
                    if entry & (PRESENT | SWAPPED) != 0 {
                        snapshot.pages.push(at << 1 | u64::from(entry & FILE == 0 || entry & SWAPPED != 0));
                    }
                    at += 1;
                }
            }
        }
        Ok(snapshot)
    }

    /// The mapping of an address.
    pub fn region(&self, address: u64) -> Option<&Region> {
        let after = self.regions.partition_point(|region| region.addresses.start <= address);
        let region = &self.regions[after.checked_sub(1)?];
        region.addresses.contains(&address).then_some(region)
    }

    /// The addresses of pages that have changed since an earlier moment, in order.
    pub fn since(&self, before: &Snapshot) -> Vec<(u64, Change)> {
        let mut earlier = before.pages.iter().peekable();
        let mut changes = Vec::new();
        for &page in &self.pages {
            while earlier.next_if(|&&other| other >> 1 < page >> 1).is_some() {}
            let was = earlier.next_if(|&&other| other >> 1 == page >> 1);
            let change = match (was, page & 1 == 1) {
                (None, false) => Change::Read,
                (None, true) => Change::Written,
                (Some(was), true) if was & 1 == 0 => Change::Written,
                _ => continue,
            };
            changes.push(((page >> 1) * PAGE, change));
        }
        changes
    }
}

/// The number of page faults of a process so far.
pub fn faults(process: Pid) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in parentheses may contain anything; the numbers follow its end.
    let mut numbers = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(7).step_by(2);
    let mut next = || numbers.next()?.parse::<u64>().ok();
    next().zip(next()).map(|(minor, major)| minor + major).ok_or_else(|| io::Error::other("an odd /proc/PID/stat"))
}

/// Parses a line of /proc/PID/maps; none for a mapping that no program touches.
fn region(line: &str) -> Option<Region> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let (addresses, protection) = (number(start)?..number(end)?, words.next()?);
    let name = words.nth(3).unwrap_or_default().trim_start().to_owned();
    let is_kernels = name.starts_with("[v"); // vdso, vvar, vsyscall
    let is_private = protection.ends_with('p');
    (!is_kernels && !protection.starts_with("---")).then_some(Region { addresses, is_private, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read() {
        let line = "7f00-9f00 rw-p 00001000 fe:01 35                   /a b/c (deleted)";
        let expected = Region { addresses: 0x7f00..0x9f00, is_private: true, name: "/a b/c (deleted)".to_owned() };
        assert_eq!(region(line), Some(expected));
        assert_eq!(region("7f00-9f00 r--s 0 00:00 0 ").map(|region| region.is_private), Some(false));
        for skipped in ["7f00-9f00 ---p 0 00:00 0 ", "7f00-9f00 r-xp 0 00:00 0    [vdso]", "x"] {
            assert_eq!(region(skipped), None, "{skipped}");
        }
    }

    #[test]
    fn pages_that_came_and_that_were_copied_are_found() {
        let at = |pages: &[(u64, u64)]| Snapshot {
            pages: pages.iter().map(|(page, own)| page << 1 | own).collect(),
            ..Snapshot::default()
        };
        let before = at(&[(1, 0), (2, 0), (4, 1), (9, 0)]);
        let after = at(&[(1, 0), (2, 1), (3, 0), (4, 1), (5, 1)]);
        let changes = [(2, Change::Written), (3, Change::Read), (5, Change::Written)];
        assert_eq!(after.since(&before), changes.map(|(page, change)| (page * PAGE, change)));
    }

    #[test]
    fn memory_of_this_process_shows_when_it_is_touched() {
        // Reserved before the first look, so that no memory of the look itself or of another test can lie there.
        let mut touched = Vec::with_capacity(10_000 * PAGE as usize);
        let before = Snapshot::take(Pid::this()).unwrap();
        touched.resize(touched.capacity(), 1u8);
        std::hint::black_box(&touched);
        let after = Snapshot::take(Pid::this()).unwrap();
        let inside = touched.as_ptr() as u64..touched.as_ptr() as u64 + touched.len() as u64;
        let found = after.since(&before).iter().filter(|(page, _)| inside.contains(page)).count();
        assert!(found >= 9_999, "{found}");
        assert!(after.faults > before.faults);
    }
}
