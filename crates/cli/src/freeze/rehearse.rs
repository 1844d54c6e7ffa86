//! The rehearsal: a thaw of the finished image that stops before the program's main part, to see which pages every start
//! writes to. The launcher then brings these in at once instead of one page fault after the other.
//!
//! `SNAPBOOT_REHEARSE=1` tells the front end to stop the process (SIGSTOP) when it has adapted the frozen process, and the
//! launcher never to fall back. Nothing of the program runs, no hook either. A rehearsal that fails costs nothing but the gain.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use image::{mapping_kind, HotRange, Mapping, Section, Tables, PAGE};
use rustix::process::{waitpid, Pid, WaitOptions};

use crate::child::kill_group;

/// How long a rehearsal may take, and how often it is looked at.
const LIMIT: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(2);

/// Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const FILE_OR_SHARED: u64 = 1 << 61;

/// Runs `image` with the environment of the boot and returns the pages that were written; none when that cannot be told.
pub fn hot_ranges(image: &Path, tables: &Tables<'_>, environment: &[(OsString, OsString)]) -> Vec<HotRange> {
    let mut command = Command::new(image);
    command.env_clear().envs(environment.iter().cloned()).env("SNAPBOOT_REHEARSE", "1").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return Vec::new() };
    let ranges = if stops(&child) { written(&child, tables).unwrap_or_default() } else { Vec::new() };
    kill_group(&mut child);
    ranges
}

/// Waits until the process has stopped itself; false when it ended or took too long.
fn stops(child: &Child) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < LIMIT {
        match waitpid(Some(Pid::from_child(child)), WaitOptions::UNTRACED | WaitOptions::NOHANG) {
            Ok(Some((_, status))) => return status.stopped(),
            Ok(None) => sleep(TICK),
            Err(_) => return false,
        }
    }
    false
}

/// The written pages of mappings that come from the image.
fn written(child: &Child, tables: &Tables<'_>) -> io::Result<Vec<HotRange>> {
    let page_map = File::open(format!("/proc/{}/pagemap", child.id()))?;
    let mut ranges: Vec<HotRange> = Vec::new();
    let rows = tables.rows::<Mapping>(Section::Mappings).map_err(io::Error::other)?;
    for row in rows.filter(|row| row.kind == mapping_kind::IMAGE) {
        for page in written_pages(&page_map, row.start / PAGE..row.end / PAGE)? {
            let start = page * PAGE;
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = start + PAGE,
                _ => ranges.push(HotRange { start, end: start + PAGE }),
            }
        }
    }
    Ok(ranges)
}

fn written_pages(page_map: &File, pages: Range<u64>) -> io::Result<Vec<u64>> {
    let mut entries = vec![0; (pages.end - pages.start) as usize * 8];
    page_map.read_exact_at(&mut entries, pages.start * 8)?;
    let entries = entries.chunks_exact(8).map(|entry| u64::from_le_bytes(entry.try_into().expect("eight bytes")));
    let is_written = |entry: u64| entry & (PRESENT | SWAPPED) != 0 && entry & FILE_OR_SHARED == 0;
    Ok(pages.zip(entries).filter(|(_, entry)| is_written(*entry)).map(|(page, _)| page).collect())
}
