//! Descriptors 0, 1 and 2, which each start has its own of: an image cannot hold what the boot has made of them.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::descriptors::file_of;
use crate::findings::Findings;
use crate::sys;

const NAMES: [&[u8]; 3] = [b"standard input", b"standard output", b"standard error"];

/// What each of them was when the process started.
static STARTED_WITH: [[AtomicU64; 3]; 3] = [const { [const { AtomicU64::new(0) }; 3] }; 3];

/// Which file a descriptor is for: device, inode and how it was opened. Zeros where it is closed.
type Identity = [u64; 3];

/// Flags that cannot be changed once the file is open.
const LASTING: i32 = libc::O_ACCMODE | libc::O_DSYNC;

fn now(number: u32) -> Identity {
    let flags = (sys::descriptor_fact(number, libc::F_GETFL) & LASTING) as u64;
    sys::descriptor_status(number).map_or([0; 3], |status| [status.device, status.inode, flags])
}

/// To be called before the program starts.
pub fn remember() {
    for (number, kept) in (0..).zip(&STARTED_WITH) {
        kept.iter().zip(now(number)).for_each(|(kept, value)| kept.store(value, Relaxed));
    }
}

/// Adds a finding for each that the program has closed, or has put something else in the place of.
pub fn inspect(findings: &mut Findings) {
    for (number, (kept, name)) in (0..).zip(STARTED_WITH.iter().zip(NAMES)) {
        let now = now(number);
        if kept.iter().map(|value| value.load(Relaxed)).eq(now) {
            continue;
        }
        let remedy = b"; leave that to the main part, since each start has its own";
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
