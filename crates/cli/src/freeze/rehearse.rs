//! The rehearsal: a thaw of the finished image with an empty main part, to see which pages every start writes to. The launcher
//! then brings these in at once instead of one page fault after the other.
//!
//! `SNAPBOOT_REHEARSE` tells the front end to stop the process (SIGSTOP) at its end, and the launcher never to fall back. Nothing of
//! the program runs, no hook either; only its exit handlers do where they can do nothing to anybody else ([`confined`]). A rehearsal
//! that fails costs nothing but the gain.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use image::{mapping_kind, HotRange, Mapping, Section, Tables, PAGE};
use rustix::process::{waitpid, Pid, WaitOptions};

use super::confined;
use crate::child::kill_group;

/// How long a rehearsal may take, and how often it is looked at.
const LIMIT: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(2);

/// Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
const FILE_OR_SHARED: u64 = 1 << 61;

/// What a rehearsal has shown.
#[derive(Default)]
pub struct Rehearsal {
    /// Pages that were written.
    pub hot: Vec<HotRange>,
    /// Offsets in the image of the pages that were needed.
    pub touched: Vec<u64>,
}

/// Runs `image` with the environment of the boot; the result is empty when nothing could be learnt.
pub fn rehearse(image: &Path, tables: &Tables<'_>, environment: &[(OsString, OsString)]) -> Rehearsal {
    let confined = confined::command(image).ok().map(|command| (command, "confined"));
    let ways = confined.into_iter().chain([(Command::new(image), "1")]);
    let mut rehearsals = ways.filter_map(|(mut command, way)| {
        command.env_clear().envs(environment.iter().cloned()).env("SNAPBOOT_REHEARSE", way);
        watch(&mut command, tables)
    });
    rehearsals.next().unwrap_or_default()
}

/// Runs the command until it stops, and looks at it; None when it ends instead, or takes too long.
fn watch(command: &mut Command, tables: &Tables<'_>) -> Option<Rehearsal> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().ok()?;
    let rehearsal = if stops(&child) { look(&child, tables).ok() } else { None };
    kill_group(&mut child);
    rehearsal
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

/// Looks at the pages of all mappings that come from the image.
fn look(child: &Child, tables: &Tables<'_>) -> io::Result<Rehearsal> {
    let page_map = File::open(format!("/proc/{}/pagemap", child.id()))?;
    let mut rehearsal = Rehearsal::default();
    let rows = tables.rows::<Mapping>(Section::Mappings).map_err(io::Error::other)?;
    for row in rows.filter(|row| row.kind == mapping_kind::IMAGE) {
        let mut entries = vec![0; ((row.end - row.start) / PAGE) as usize * 8];
        page_map.read_exact_at(&mut entries, row.start / PAGE * 8)?;
        for (index, entry) in entries.chunks_exact(8).enumerate() {
            let entry = u64::from_le_bytes(entry.try_into().expect("eight bytes"));
            let distance = index as u64 * PAGE;
            if entry & (PRESENT | SWAPPED) != 0 {
                rehearsal.touched.push(row.offset + distance);
                if entry & FILE_OR_SHARED == 0 {
                    rehearsal.add_hot(row.start + distance);
                }
            }
        }
    }
    Ok(rehearsal)
}

impl Rehearsal {
    fn add_hot(&mut self, start: u64) {
        match self.hot.last_mut() {
            Some(last) if last.end == start => last.end = start + PAGE,
            _ => self.hot.push(HotRange { start, end: start + PAGE }),
        }
    }
}
