//! The rehearsal: a thaw of the image with an empty main part, which finds the pages that every start writes to. The
//! launcher then maps these in at once instead of one page fault after the other.
//!
//! `SNAPBOOT_REHEARSE` makes the front end stop the process (SIGSTOP) at its end, and keeps the launcher from falling
//! back. Nothing of the program runs, not even hooks; its exit handlers run only in a process that cannot affect others
//! ([`confined`]). A failed rehearsal costs only the speed-up.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use image::{mapping_kind, Mapping, PAGE};
use judge::environment::Environment;
use runtime::deadline::{kill_group, Deadline};
use runtime::terminal::Terminal;
use rustix::process::{kill_process, waitpid, Pid, Signal, WaitOptions};

use super::confined;
use crate::boot::UsedPages;

/// Time limit of a rehearsal, and how often it is checked.
const LIMIT: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_micros(200);

/// Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const FILE_OR_SHARED: u64 = 1 << 61;

/// Runs `image` with the environment and the terminal of the boot; the result is empty if nothing was learnt.
pub fn rehearse(
    image: &Path,
    mappings: &[Mapping],
    environment: &Environment,
    terminal: Option<&Terminal>,
) -> UsedPages {
    let mut rehearsals = ways_to_start(image).filter_map(|mut way| {
        let value = if way.is_confined { "confined" } else { "1" };
        way.command.env_clear().envs(environment.visible().cloned()).env("SNAPBOOT_REHEARSE", value);
        way.command.stderr(Stdio::null());
        way.run(LIMIT, terminal, |child| {
            Some(UsedPages { of_files: pages_of_files(child, mappings).ok()?, ..used_pages(child, mappings).ok()? })
        })?
        .0
    });
    rehearsals.next().unwrap_or_default()
}

/// A way to start an image that stops itself before its program does anything.
pub struct Way {
    pub command: Command,
    /// Whether the process cannot affect others.
    pub is_confined: bool,
}

/// The ways to start an image, best first.
pub fn ways_to_start(image: &Path) -> impl Iterator<Item = Way> {
    let confined = confined::command(image).ok().map(|command| Way { command, is_confined: true });
    confined.into_iter().chain([Way { command: Command::new(image), is_confined: false }])
}

impl Way {
    /// Runs the image until it stops, and calls `look`; also returns how long it took. None if it ends instead, or
    /// exceeds `limit`.
    pub fn run<T>(
        mut self,
        limit: Duration,
        terminal: Option<&Terminal>,
        look: impl FnOnce(&Child) -> T,
    ) -> Option<(T, Duration)> {
        self.command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
        if let Some(terminal) = terminal {
            terminal.attach_unread(&mut self.command).ok()?;
        }
        let mut begun = Instant::now();
        let mut child = self.command.spawn().ok()?;
        let pid = Pid::from_child(&child);
        let mut has_stopped = wait_for_stop(&child, limit);
        if has_stopped && self.is_confined {
            begun = Instant::now();
            has_stopped = kill_process(pid, Signal::CONT).is_ok() && wait_for_stop(&child, limit);
        }
        let took = begun.elapsed();
        let seen = has_stopped.then(|| (look(&child), took));
        kill_group(&mut child);
        seen
    }
}

/// Waits until the process has stopped itself; false if it ended or exceeded the limit.
fn wait_for_stop(child: &Child, limit: Duration) -> bool {
    let deadline = Deadline::new(child, limit);
    while !deadline.left().is_zero() {
        match waitpid(Some(Pid::from_child(child)), WaitOptions::UNTRACED | WaitOptions::NOHANG) {
            Ok(Some((_, status))) => return status.stopped(),
            Ok(None) => sleep(TICK),
            Err(_) => return false,
        }
    }
    false
}

/// The pages that a process uses of all mappings that come from the image.
pub fn used_pages(child: &Child, mappings: &[Mapping]) -> io::Result<UsedPages> {
    let mut used = UsedPages::default();
    look_at_pages(child, mappings, mapping_kind::IMAGE, |row, distance, entry| {
        if entry & (PRESENT | SWAPPED) != 0 {
            used.touched.push(row.offset + distance);
            if entry & FILE_OR_SHARED == 0 {
                used.written.insert(row.start + distance);
            }
        }
    })?;
    Ok(used)
}

/// Row of the files section and offset in that file, of all pages of mapped files that a process has in memory.
fn pages_of_files(child: &Child, mappings: &[Mapping]) -> io::Result<BTreeSet<(u32, u64)>> {
    let mut pages = BTreeSet::new();
    look_at_pages(child, mappings, mapping_kind::FILE, |row, distance, entry| {
        if entry & PRESENT != 0 {
            pages.insert((row.file, row.offset + distance));
        }
    })?;
    Ok(pages)
}

/// Calls `look` for each page of a process' mappings of this kind, with the mapping, the page's distance from its start, and its entry in
/// the process' pagemap.
fn look_at_pages(
    child: &Child,
    mappings: &[Mapping],
    kind: u32,
    mut look: impl FnMut(&Mapping, u64, u64),
) -> io::Result<()> {
    let page_map = File::open(format!("/proc/{}/pagemap", child.id()))?;
    for row in mappings.iter().filter(|row| row.kind == kind) {
        let mut entries = vec![0; ((row.end - row.start) / PAGE) as usize * 8];
        page_map.read_exact_at(&mut entries, row.start / PAGE * 8)?;
        for (index, entry) in entries.chunks_exact(8).enumerate() {
            let entry = u64::from_le_bytes(entry.try_into().expect("eight bytes"));
            look(row, index as u64 * PAGE, entry);
        }
    }
    Ok(())
}
