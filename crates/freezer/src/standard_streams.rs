//! Descriptors 0, 1 and 2. Each start has its own, so an image cannot hold changes that the boot makes to them.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::descriptors::file_of;
use crate::findings::Findings;
use crate::sys;

const NAMES: [&[u8]; 3] = [b"standard input", b"standard output", b"standard error"];

/// Their identities when the process started.
static STARTED_WITH: [[AtomicU64; 3]; 3] = [const { [const { AtomicU64::new(0) }; 3] }; 3];

/// For each of them the other one that the program duplicated to it: its number plus one. If the boot has the same file
/// at both, the identity does not show a duplicate.
static COPY_OF: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];

/// The file of a descriptor: device, inode and open flags. Zeros if it is closed.
type Identity = [u64; 3];

/// Flags that cannot change once the file is open.
const LASTING: i32 = libc::O_ACCMODE | channel::STANDARD_INPUT;

fn now(number: u32) -> Identity {
    let flags = (sys::descriptor_fact(number, libc::F_GETFL) & LASTING) as u64;
    sys::descriptor_status(number).map_or([0; 3], |status| [status.device, status.inode, flags])
}

/// Records the identities. Call it before the program starts.
pub fn remember() {
    for (number, kept) in (0..).zip(&STARTED_WITH) {
        kept.iter().zip(now(number)).for_each(|(kept, value)| kept.store(value, Relaxed));
    }
}

/// Call it when the program makes `to` a duplicate of `from`. The program may restore a stream that it had saved.
pub fn copied(from: i32, to: i32) {
    let (Ok(from), Ok(to)) = (usize::try_from(from), usize::try_from(to)) else { return };
    if let Some(copy) = COPY_OF.get(to).filter(|_| from != to) {
        copy.store(if from < COPY_OF.len() { from + 1 } else { 0 }, Relaxed);
    }
}

/// Adds a finding for each stream that the program has closed or replaced.
pub fn inspect(findings: &mut Findings) {
    for (number, (kept, name)) in (0..).zip(STARTED_WITH.iter().zip(NAMES)) {
        let now = now(number);
        let remedy = b"; leave that to the main part, since each start has its own";
        if kept.iter().map(|value| value.load(Relaxed)).eq(now) {
            if let Some(other) = COPY_OF[number as usize].load(Relaxed).checked_sub(1) {
                let parts: [&[u8]; 6] =
                    [b"(", name, b") was made a copy of ", NAMES[other], b" by the program while it loaded", remedy];
                findings.add_descriptor(number, &parts);
            }
            continue;
        }
        if now == [0; 3] {
            findings.add_descriptor(number, &[b"(", name, b") was closed by the program while it loaded", remedy]);
        } else {
            let file = file_of(number);
            findings.add_descriptor(
                number,
                &[b"(", name, b") was made ", &file, b" by the program while it loaded", remedy],
            );
        }
    }
}
