//! Whether the files that the boot depended on are what they were.

use image::{Input, Section};
use linux_raw_sys::general::{O_CLOEXEC, O_DIRECTORY, O_NONBLOCK, O_PATH, O_RDONLY};

use crate::check::Frozen;
use crate::fallback::Reason;
use crate::freshness::{Freshness, Recorded};
use crate::start::without_nul;
use crate::sys::{self, Fd, Status};

/// Compares every input; the first difference is the reason for the fallback.
pub fn unchanged(frozen: &Frozen, freshness: &mut Freshness) -> Result<(), Reason> {
    if freshness.trusts() {
        return Ok(());
    }
    let mut directory = Directory::default();
    for input in frozen.rows::<Input>(Section::Inputs)? {
        let path = frozen.text(input.path)?;
        let Input { size, mtime, ctime, digest, .. } = input;
        let recorded = Recorded { size, mtime, ctime, digest };
        match directory.stat(path) {
            Ok(now)
                if freshness.holds(
                    without_nul(path),
                    || sys::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC),
                    &now,
                    &recorded,
                ) => {}
            Ok(_) => return Err(Reason::new("stale: this file has changed").subject(without_nul(path))),
            Err(errno) => {
                let reason = Reason::new("stale: this file cannot be found any more");
                return Err(reason.subject(without_nul(path)).errno(errno));
            }
        }
    }
    directory.close();
    Ok(())
}

/// The directory of the last input. Rows are sorted by directory, and a look-up from an open directory saves the walk down a
/// deep path: with hundreds of inputs that is most of the time.
#[derive(Default)]
struct Directory {
    path: &'static [u8],
    open: Option<Fd>,
}

impl Directory {
    /// Status of a file by its absolute path, which ends with a NUL.
    fn stat(&mut self, path: &'static [u8]) -> sys::Result<Status> {
        let name_start = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        let (parent, name) = path.split_at(name_start);
        if parent != self.path {
            self.close();
            self.path = parent;
            return sys::stat(None, path);
        }
        if self.open.is_none() {
            self.open = open(parent);
        }
        match self.open {
            Some(directory) => sys::stat(Some(directory), name),
            None => sys::stat(None, path),
        }
    }

    fn close(&mut self) {
        if let Some(directory) = self.open.take() {
            sys::close(directory);
        }
    }
}

/// Opens a directory for look-ups; None when that fails, and for a path that is longer than any real one.
fn open(path: &[u8]) -> Option<Fd> {
    let mut with_nul = [0u8; 4096];
    with_nul.get_mut(..path.len())?.copy_from_slice(path);
    sys::open(with_nul.get(..path.len() + 1)?, O_PATH | O_DIRECTORY | O_CLOEXEC).ok()
}
