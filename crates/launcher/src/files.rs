//! Whether the files and directories that the boot depended on are what they were.

use image::{directory_flag, Directory, Input, Section};
use linux_raw_sys::errno::{ENOENT, ENOTDIR};
use linux_raw_sys::general::{O_CLOEXEC, O_DIRECTORY, O_NONBLOCK, O_PATH, O_RDONLY};

use crate::answers::Known;
use crate::freshness::{self, Freshness, Recorded};
use crate::frozen::Frozen;
use crate::helper_process::Work;
use crate::laps::Laps;
use crate::reason::{Reason, Thing};
use crate::shared_file::Lookups;
use crate::start::without_nul;
use crate::sys::{self, Errno, Fd, Status};

/// With fewer files than this to look at, opening their directory first would take longer.
const WORTH_OPENING: u32 = 2;

/// With more inputs than this it takes less time to look at them in a second process than to wait for them in this one. To make one
/// takes as long as looking at some fifty.
const MANY: usize = 128;

/// The comparison of all inputs, and what came of it.
pub struct Files<'a> {
    frozen: &'a Frozen,
    outcome: Option<Result<(), Reason>>,
    /// What is known of files whose times have changed.
    pub freshness: Freshness,
    /// How long each directory took, with its inputs.
    pub laps: Laps,
}

impl<'a> Files<'a> {
    /// The inputs of a frozen process, not looked at yet. `laps`: room for the time that each directory takes.
    pub fn of(frozen: &'a Frozen, laps: Laps) -> Result<Self, Reason> {
        let Frozen { file, tables, image_id, settings, .. } = frozen;
        let freshness = Freshness::of(*file, tables, *image_id, settings.policy).map_err(Reason::image)?;
        Ok(Files { frozen, outcome: None, freshness, laps })
    }

    /// Whether there is more to look at than a second process costs.
    pub fn are_many(&self) -> bool {
        !self.freshness.trusts() && self.frozen.rows::<Input>(Section::Inputs).is_ok_and(|rows| rows.len() > MANY)
    }

    /// Whether all inputs are what they were, after the work was done.
    pub fn outcome(&self) -> Result<(), Reason> {
        self.outcome.unwrap_or(Err(Reason::new("the process that looked at the inputs was killed")))
    }
}

impl Work for Files<'_> {
    fn run(&mut self) {
        self.outcome = Some(unchanged(self.frozen, &mut self.freshness, &mut self.laps));
    }
}

/// Compares every input, directory by directory; the first difference is the reason for the fallback.
fn unchanged(frozen: &Frozen, freshness: &mut Freshness, laps: &mut Laps) -> Result<(), Reason> {
    if freshness.trusts() {
        return Ok(());
    }
    let mut known = Known::of(frozen);
    let mut inputs = frozen.rows::<Input>(Section::Inputs)?.enumerate();
    laps.begin();
    for (directory, row) in frozen.rows::<Directory>(Section::Directories)?.enumerate() {
        let path = frozen.text(row.path)?;
        if row.flags & directory_flag::MAY_BE_ABSENT != 0 && is_absent(path) {
            laps.end(directory);
            continue;
        }
        let place = Place::find(path, &row)?;
        if row.answers_size > 0 {
            let mut ask = || known.ask(&row, place.path, place.open);
            if place.is_relative() {
                ask()?;
            } else {
                freshness.answers_hold(without_nul(place.path), &place.status()?, &row, ask)?;
            }
        }
        for (number, input) in inputs.by_ref().take(row.inputs as usize) {
            let path = frozen.text(input.path)?;
            let Input { size, mtime, ctime, digest, .. } = input;
            let recorded = Recorded { size, mtime, ctime, digest };
            let open = || sys::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
            let gone = |errno| Reason::gone(Thing::File, path, errno);
            match place.stat(path) {
                Ok(now) if place.is_relative() => {
                    if !freshness::is_same(path, &now, &recorded).map_err(gone)? {
                        return Err(Reason::new(OTHER_HERE).subject(without_nul(path)));
                    }
                }
                Ok(now) => {
                    if freshness.holds(without_nul(path), open, &now, &recorded).map_err(gone)? {
                        continue;
                    }
                    let lookups = Lookups::to(frozen, number)?;
                    if lookups.are_none() {
                        return Err(Reason::new(CHANGED).subject(without_nul(path)));
                    }
                    freshness.shared_holds(without_nul(path), &now, || lookups.ask(path))?;
                }
                Err(errno) => {
                    let lookups = Lookups::to(frozen, number)?;
                    if errno != Errno(ENOENT) || lookups.are_none() {
                        return Err(gone(errno));
                    }
                    lookups.ask_of(b"")?;
                }
            }
        }
        place.close();
        laps.end(directory);
    }
    Ok(())
}

fn is_absent(path: &[u8]) -> bool {
    matches!(sys::stat(None, path), Err(Errno(ENOENT | ENOTDIR)))
}

/// A directory of inputs. A look-up from an open one saves the walk down a deep path: with hundreds of inputs that is most of the
/// time.
struct Place {
    path: &'static [u8],
    open: Option<Fd>,
}

impl Place {
    fn find(path: &'static [u8], row: &Directory) -> Result<Place, Reason> {
        let open = (path.starts_with(b"/") && row.inputs >= WORTH_OPENING)
            .then(|| sys::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC))
            .transpose();
        open.map(|open| Place { path, open }).map_err(|errno| Reason::gone(Thing::Directory, path, errno))
    }

    /// Whether it is where the process was started, or was named from there. Its inputs are named from there, too.
    fn is_relative(&self) -> bool {
        !self.path.starts_with(b"/")
    }

    /// Status of the directory itself.
    fn status(&self) -> Result<Status, Reason> {
        let status = self.open.map_or_else(|| sys::stat(None, self.path), sys::fstat);
        status.map_err(|errno| Reason::gone(Thing::Directory, self.path, errno))
    }

    /// Status of a file in it by its path, which ends with a NUL.
    fn stat(&self, path: &'static [u8]) -> sys::Result<Status> {
        match self.open {
            Some(directory) => {
                let name = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
                sys::stat(Some(directory), &path[name..])
            }
            None => sys::stat(None, path),
        }
    }

    fn close(self) {
        if let Some(directory) = self.open {
            sys::close(directory);
        }
    }
}

const CHANGED: &str = "stale: this file has changed";
const OTHER_HERE: &str = "stale: this file is another one here than where the image was made";
