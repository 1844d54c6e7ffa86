//! Leases: of many machines that miss the same image, one makes it. Before a machine makes an image it writes a lease for the key, unless
//! another one is in force, and it removes the lease once the image is pushed or the freeze has failed.
//!
//! `v1/leases/KEY/SLOT` holds a lease that began in the period SLOT; all periods are as long as a lease. So at most two objects count at
//! any time, a lease ends by itself, and nobody ever writes in the place of a lease that has ended, which two could do at once. A clock that
//! is wrong lets two machines make an image, and never keeps one from it.

use std::fmt;
use std::time::{Duration, SystemTime};

use failure::{Failure, Result};

use crate::chunks::hex;
use crate::{Storage, LEASES};

/// How long a lease lasts: longer than most freezes take. A freeze that takes longer may be made twice.
pub const LENGTH: Duration = store::remote::LEASE;
/// The most bytes that a lease may have.
const MOST_BYTES: usize = 256;

/// A lease of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    path: String,
    /// A random number of whoever has taken it.
    owner: String,
    /// When it ends (seconds since 1970).
    ends: u64,
}

/// Whose turn it is to make an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// That of this machine, as long as it has the lease.
    Own(Lease),
    /// That of another one.
    Other,
    /// Nobody's: this machine can give none, or the storage takes no lease.
    Nobody,
}

impl fmt::Display for Lease {
    /// As it is stored.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.owner, self.ends)
    }
}

impl Lease {
    /// Takes the lease of a key, if this machine `can_give` its image and no other one has it.
    pub fn take(storage: &Storage, key: &str, can_give: bool) -> Result<Turn> {
        Lease::take_at(storage, key, can_give, SystemTime::now())
    }

    /// Does the same as if it were then.
    fn take_at(storage: &Storage, key: &str, can_give: bool, now: SystemTime) -> Result<Turn> {
        let now = seconds(now);
        let slot = now / LENGTH.as_secs();
        let before = path(key, slot.saturating_sub(1));
        if let Some(found) = storage.get(&before, MOST_BYTES)? {
            if is_in_force(&found, slot, now) {
                return Ok(Turn::Other);
            }
            // Nothing depends on it: a prune removes it, too.
            let _ = storage.remove(&before);
        }
        let mut owner = [0; 16];
        getrandom::fill(&mut owner)
            .map_err(|error| Failure::failed(format!("cannot get random numbers from the kernel: {error}.")))?;
        let lease = Lease { path: path(key, slot), owner: hex(&owner), ends: now + LENGTH.as_secs() };
        let written = if can_give { storage.create(&lease.path, lease.to_string().into_bytes()) } else { Ok(()) };
        // Also where it was written: some storages ignore the condition.
        match storage.get(&lease.path, MOST_BYTES)? {
            Some(found) if found == lease.to_string().as_bytes() => Ok(Turn::Own(lease)),
            Some(found) if is_in_force(&found, slot + 1, now) => Ok(Turn::Other),
            _ => written.map(|()| Turn::Nobody),
        }
    }

    /// As a word of a command line.
    pub fn word(&self) -> String {
        format!("{} {self}", self.path)
    }

    /// Reads such a word.
    pub fn parse(word: &str) -> Option<Lease> {
        let [path, owner, ends] = word.split(' ').collect::<Vec<_>>()[..] else { return None };
        path.starts_with(LEASES)
            .then(|| Some(Lease { path: path.into(), owner: owner.into(), ends: ends.parse().ok()? }))?
    }

    /// Ends it.
    pub fn end(&self, storage: &Storage) -> Result<()> {
        storage.remove(&self.path)
    }
}

/// Removes the leases that have ended.
pub fn remove_ended(storage: &Storage, now: SystemTime) -> Result<()> {
    let slot = seconds(now) / LENGTH.as_secs();
    for object in storage.list(LEASES)? {
        if object.name.parse::<u64>().is_ok_and(|began| began + 1 < slot) {
            storage.remove(&object.path)?;
        }
    }
    Ok(())
}

fn path(key: &str, slot: u64) -> String {
    format!("{LEASES}{key}/{slot}")
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Whether what was found is a lease that has not ended. `latest`: the period by whose end it ends in any case, also one that cannot be read
/// because its machine is just writing it.
fn is_in_force(found: &[u8], latest: u64, now: u64) -> bool {
    let text = String::from_utf8_lossy(found);
    let said = text.split(' ').nth(1).and_then(|ends| ends.parse::<u64>().ok());
    let last = (latest + 1) * LENGTH.as_secs();
    now < said.map_or(last.saturating_sub(LENGTH.as_secs()), |ends| ends.min(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn storage() -> (tempfile::TempDir, Storage) {
        let top = tempfile::tempdir().unwrap();
        let storage = Storage::open(&format!("file://{}", top.path().display()), LENGTH).unwrap();
        (top, storage)
    }

    /// So many seconds after the begin of a period.
    fn moment_after(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + LENGTH * 1000 + Duration::from_secs(seconds)
    }

    fn take(storage: &Storage, seconds: u64) -> Turn {
        Lease::take_at(storage, "k", true, moment_after(seconds)).unwrap()
    }

    #[test]
    fn one_machine_has_it_until_it_ends_or_is_given_back() {
        let (_top, storage) = storage();
        let length = LENGTH.as_secs();
        let Turn::Own(first) = take(&storage, length / 2) else { panic!("nobody else has it") };
        assert_eq!(Lease::parse(&first.word()), Some(first.clone()));
        for seconds in [length / 2, length - 1, length, length + length / 2 - 1] {
            assert_eq!(take(&storage, seconds), Turn::Other, "{seconds}");
        }
        assert!(matches!(Lease::take_at(&storage, "other", true, moment_after(length)), Ok(Turn::Own(_))));
        // It ends by itself, and then the next one has it.
        let Turn::Own(second) = take(&storage, length + length / 2) else { panic!("the lease has ended") };
        assert_eq!(take(&storage, 2 * length), Turn::Other);
        second.end(&storage).unwrap();
        assert!(matches!(take(&storage, 2 * length), Turn::Own(_)));
        remove_ended(&storage, moment_after(5 * length)).unwrap();
        assert!(storage.list(LEASES).unwrap().is_empty());
    }

    #[test]
    fn who_can_give_no_image_waits_for_others_and_takes_no_lease() {
        let (_top, storage) = storage();
        let looks = |seconds| Lease::take_at(&storage, "k", false, moment_after(seconds)).unwrap();
        assert_eq!(looks(0), Turn::Nobody);
        assert!(matches!(take(&storage, 0), Turn::Own(_)));
        assert_eq!(looks(1), Turn::Other);
        assert_eq!(looks(LENGTH.as_secs()), Turn::Nobody);
    }

    #[test]
    fn what_is_no_lease_and_clocks_that_are_wrong_are_in_nobodys_way_for_long() {
        let (_top, storage) = storage();
        let length = LENGTH.as_secs();
        for content in [&b""[..], b"\xff\xff", b"x", b"x y", b"x 99999999999999999999999", b"x 18446744073709551615"] {
            storage.put("v1/leases/k/1000", content.to_vec()).unwrap();
            assert_eq!(take(&storage, length - 1), Turn::Other, "it may be one that is being written");
            assert!(matches!(take(&storage, 2 * length), Turn::Own(_)), "{content:?}");
            storage.remove("v1/leases/k/1002").unwrap();
        }
    }

    #[test]
    fn of_many_at_once_one_has_it() {
        let (top, _) = storage();
        let url = format!("file://{}", top.path().display());
        let takers: Vec<_> = (0..16)
            .map(|_| {
                let url = url.clone();
                std::thread::spawn(move || take(&Storage::open(&url, LENGTH).unwrap(), 0))
            })
            .collect();
        let turns: Vec<Turn> = takers.into_iter().map(|taker| taker.join().unwrap()).collect();
        assert_eq!(turns.iter().filter(|turn| matches!(turn, Turn::Own(_))).count(), 1);
        assert_eq!(turns.iter().filter(|turn| **turn == Turn::Other).count(), 15);
    }
}
