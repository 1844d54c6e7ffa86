//! An image that was put off: why (the machine is busy, has too little memory for it, or another machine makes it), and until when nobody
//! tries again.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::builder_memory::Room;
use crate::put_off_reason::Delay;
use crate::{clock, Folder};

/// Its file in the folder of the command.
const FILE: &str = "put-off.json";
/// The wait, at first and at most (seconds); doubles with each further time.
const FIRST: u64 = 10;
const LONGEST: u64 = 600;
/// How long a machine may keep others from making the same image.
pub const LEASE: Duration = Duration::from_secs(120);

/// A postponed image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutOff {
    /// Why.
    pub why: Delay,
    /// When (seconds since 1970).
    at: u64,
    /// Since when, for the same reason.
    since: u64,
    /// How often in a row.
    times: u32,
    /// Memory that it needs (bytes); 0 if that was not the reason.
    needed: u64,
}

impl PutOff {
    /// Reads the state of this folder, if its image was postponed.
    pub fn load(folder: &Folder) -> Option<PutOff> {
        folder.read(FILE)
    }

    /// Postpones the image once more. An error while writing is ignored: then it is tried again.
    pub(crate) fn record(folder: &Folder, why: Delay, needed: u64) {
        let before = PutOff::load(folder);
        let times = before.as_ref().map_or(0, |before| before.times);
        let at = clock::unix_now();
        let since = before.filter(|before| before.why == why).map_or(at, |before| before.since);
        let _ = folder.write(FILE, &PutOff { why, at, since, times: times + 1, needed });
    }

    /// Whether this folder's image may be left to another machine: it was not for as long as one may make it.
    pub(crate) fn may_wait_for_others(folder: &Folder) -> bool {
        let waits = PutOff::load(folder).filter(|put_off| put_off.why == Delay::MadeElsewhere);
        waits.is_none_or(|waits| clock::seconds_since(waits.since) < LEASE.as_secs())
    }

    /// An image was made, or cannot be for another reason.
    pub(crate) fn forget(folder: &Folder) {
        let _ = std::fs::remove_file(folder.path().join(FILE));
    }

    /// Whether it is too early to try again.
    pub(crate) fn waits(&self) -> bool {
        let wait = (FIRST << self.times.saturating_sub(1).min(20)).min(LONGEST);
        clock::seconds_since(self.at) < wait && !self.has_room(Room::now().as_ref())
    }

    /// Whether the missing memory is available now.
    fn has_room(&self, room: Option<&Room>) -> bool {
        self.needed > 0 && room.is_none_or(|room| room.lacks(self.needed).is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_tried_again_later_or_when_there_is_room() {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::new(top.path().to_owned());
        assert_eq!(PutOff::load(&folder), None);
        PutOff::record(&folder, Delay::Battery, 0);
        let once = PutOff::load(&folder).unwrap();
        assert!(once.waits());
        assert!(!PutOff { at: once.at - FIRST, ..once.clone() }.waits());
        assert!(!PutOff { at: once.at + 1000, ..once.clone() }.waits(), "the clock was set back");
        PutOff::record(&folder, Delay::Pressure, u64::MAX);
        let twice = PutOff::load(&folder).unwrap();
        assert!(PutOff { at: twice.at - FIRST, ..twice.clone() }.waits());
        assert!(!twice.has_room(Room::now().as_ref()) && PutOff { needed: 1, ..twice }.has_room(None));
        PutOff::forget(&folder);
        assert_eq!(PutOff::load(&folder), None);
    }

    #[test]
    fn other_machines_are_waited_for_as_long_as_one_may_take() {
        let top = tempfile::tempdir().unwrap();
        let folder = Folder::new(top.path().to_owned());
        let wait_since = |age: u64, why: Delay| {
            PutOff::record(&folder, why, 0);
            let put_off = PutOff::load(&folder).unwrap();
            folder.write(FILE, &PutOff { since: put_off.at - age, ..put_off }).unwrap();
            PutOff::may_wait_for_others(&folder)
        };
        assert!(PutOff::may_wait_for_others(&folder));
        assert!(
            wait_since(LEASE.as_secs() - 30, Delay::MadeElsewhere)
                && !wait_since(LEASE.as_secs(), Delay::MadeElsewhere)
        );
        PutOff::record(&folder, Delay::MadeElsewhere, 0);
        assert!(!PutOff::may_wait_for_others(&folder), "another look does not begin it anew");
        assert!(wait_since(LEASE.as_secs(), Delay::Battery));
    }
}
