//! Growing Ruby's heap early.
//!
//! A heap that grows step by step is collected at each step. In a boot nearly all objects survive, so a sixth of a large boot goes into
//! collections that free little. An earlier boot has recorded how many objects survive: as soon as this boot turns out to be as large, the
//! heap grows to its final size at once. Without such a record it grows to three times the survivors so far.
//!
//! Ruby has no call for that, so garbage objects are created while the collector is off. The next collection frees them, and the slots
//! remain. Ruby would give back a heap that is more than two thirds empty, so one object of each page is kept until half of the boot is
//! done. From Ruby 3.2 on there are heaps for objects of several sizes, and the one that is full first causes a collection of all. So each gets
//! its share of the objects that the earlier boot has made. Does nothing if RUBY_GC_* variables are set.

use archive::session::Session;
use archive::{Kind, NewInput};
use rustix::process::{getrlimit, Resource};

use crate::ruby::{Main, Protected, Ruby, Value};
use crate::session::SESSION;

/// The entry's name in the archive. Its payload consists of numbers of eight bytes: files loaded, surviving objects, and the objects made in
/// each heap.
const NAME: &[u8] = b"objects of heaps";

/// A boot that has loaded one file in this many is expected to load the rest, too.
const PART: u64 = 16;
/// With fewer files there is little to gain, and nothing is recorded.
const FEWEST: u64 = 512;

/// The record is updated after this many files.
const NOTED: u64 = 64;

/// Beyond this many objects per file, they are the program's data, which may be fewer in the next boot.
const MAX_FOR_A_FILE: u64 = 128;

/// Memory (bytes) that a large boot may allocate without causing a collection. Nearly all of it is code and tables, which survive.
const MAX_FORGIVEN: usize = 64 << 20;

/// The objects of this boot, and of an earlier one.
pub struct Heap {
    /// How many heaps this Ruby has; 0: its heap is left alone.
    heaps: usize,
    scope: usize,
    /// Files and objects of an earlier boot. 0: unknown.
    expected: (u64, u64),
    /// Objects made in each heap: in that boot, or until this one's last look.
    made: Vec<usize>,
    /// Those of each heap that this boot has made as room.
    room: Vec<usize>,
    /// Files of this boot.
    loaded: u64,
    /// An Array with an object in each page of the room.
    pages: Value<'static>,
    /// Bytes that do not count towards the next collection.
    forgiven: usize,
    /// Objects that have survived so far, if worth recording.
    stayed: Option<u64>,
}

impl Heap {
    /// `description`: of the running Ruby. `version`: its number.
    pub fn new(ruby: Ruby<'_>, session: &mut Session, description: &str, version: &[u8]) -> Protected<Self> {
        let is_set = std::env::vars_os().any(|(name, _)| name.as_encoded_bytes().starts_with(b"RUBY_GC_"));
        // If memory is limited, unneeded slots might be missing elsewhere.
        let is_limited = [Resource::As, Resource::Data].into_iter().any(|of| getrlimit(of).current.is_some());
        let heaps = match version.get(..4) {
            _ if is_set || is_limited => 0,
            Some(b"3.0." | b"3.1.") => 1,
            Some(b"3.2." | b"3.3." | b"3.4.") => 5,
            _ => 0,
        };
        let scope = session.scope(Kind::Memo, description);
        let expected = session.recall(scope, NAME).and_then(|payload| {
            let (numbers, []) = payload.as_chunks::<8>() else { return None };
            let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_le_bytes(*number)).collect();
            let [files, objects, made @ ..] = &numbers[..] else { return None };
            let made: Vec<usize> = made.iter().map(|&number| number as usize).collect();
            (made.len() == heaps).then_some(((*files, *objects), made))
        });
        let (expected, made) = expected.unwrap_or_default();
        Ok(Heap {
            heaps,
            scope,
            expected,
            made,
            room: vec![0; heaps],
            loaded: 0,
            pages: ruby.keep(ruby.array()?)?,
            forgiven: 0,
            stayed: None,
        })
    }

    /// Counts a file that is about to be loaded. Returns the current target size of each heap (slots), and the Array that keeps it.
    pub fn count(&mut self, ruby: Main<'_>) -> Protected<Option<(Vec<usize>, Value<'static>)>> {
        if self.heaps == 0 {
            return Ok(None);
        }
        self.loaded += 1;
        let (files, objects) = self.expected;
        // A few more files do not justify a new record.
        if self.loaded >= FEWEST.max(files + files / 8) {
            self.stayed = Some(self.old_objects(ruby)?);
            // A server that has booted may never end.
            if self.loaded.is_multiple_of(NOTED) {
                self.made = self.made_so_far(ruby)?;
                SESSION.with(ruby, |session| self.record(session));
            }
        }
        let (begin, end) = if files > 0 { (files / PART, files / 2) } else { (FEWEST, 2 * FEWEST) };
        if self.loaded >= begin && (files == 0 || self.loaded < files) && self.forgiven < MAX_FORGIVEN {
            let bytes = ruby.allocated()?;
            self.forgiven += bytes;
            ruby.forgive(bytes);
        }
        // From here on the heap is full enough that Ruby gives nothing back.
        if self.loaded == end {
            ruby.clear_array(self.pages)?;
        }
        if self.loaded != begin {
            return Ok(None);
        }
        // The other half is for objects that do not survive.
        let room = if files > 0 { 2 * objects } else { 3 * self.old_objects(ruby)? };
        let all = self.made.iter().sum::<usize>().max(1) as u64;
        let parts: Vec<_> = self.made.iter().map(|&number| (room * number as u64 / all) as usize).collect();
        let slots = ruby.slots_of_heaps(self.heaps)?;
        self.room = parts.iter().zip(slots).map(|(part, slots)| part.saturating_sub(slots)).collect();
        Ok(Some((parts, self.pages)))
    }

    /// Objects made in each heap so far, without those made as room.
    fn made_so_far(&self, ruby: Main<'_>) -> Protected<Vec<usize>> {
        let made = ruby.objects_of_heaps(self.heaps)?;
        Ok(made.iter().zip(&self.room).map(|(made, room)| made.saturating_sub(*room)).collect())
    }

    /// Objects that have survived so far, without the program's data.
    fn old_objects(&self, ruby: Main<'_>) -> Protected<u64> {
        Ok((ruby.old_objects()? as u64).min(self.loaded * MAX_FOR_A_FILE))
    }

    /// Queues the record of this boot, if it was larger than the earlier one.
    pub fn record(&self, session: &mut Session) {
        if let Some(stayed) = self.stayed {
            let made = self.made.iter().map(|&number| number as u64);
            let payload: Vec<u8> = [self.loaded, stayed].into_iter().chain(made).flat_map(u64::to_le_bytes).collect();
            session.add(self.scope, NAME.to_vec(), Vec::<NewInput>::new(), payload, false);
        }
    }
}
