//! Room for objects before it is needed.
//!
//! A heap that grows step by step is collected at each step, and in a boot nearly all that the collector looks at is there to stay:
//! a sixth of a large boot, in vain. How many objects stay is known from an earlier boot. As soon as this one turns out to be
//! such a large boot, the heap gets as large as it will have to be, at once. A boot of which nothing is known gets room for thrice
//! what has stayed as soon as it is large itself.
//!
//! Ruby has no call for that, so objects are made that nobody needs, while the collector is off. It takes these away at its next
//! run, and the room remains: Ruby would give back what is more than two thirds empty, so one object of each page is kept until
//! the boot has got half of the way. Only in Ruby 3.0 and 3.1 are all places of the heap alike. Who sets how the collector works
//! (RUBY_GC_*) knows better.

use archive::{Kind, NewInput};
use rustix::process::{getrlimit, Resource};

use crate::ruby::{Main, Protected, Ruby, Value};
use crate::store::{Store, STORE};

/// The entry's name in the archive. Its payload is two numbers of eight bytes: files loaded, and objects that stayed.
const NAME: &[u8] = b"heap";

/// A boot that has loaded this part of the files is taken for a large one.
const PART: u64 = 16;
/// With fewer files there is little to be gained, and nothing is remembered.
const FEWEST: u64 = 512;

/// After so many files more the boot is noted once more.
const NOTED: u64 = 64;

/// More objects for each file than this are the program's data, of which the next boot need not have as much.
const MAX_FOR_A_FILE: u64 = 128;

/// Memory (bytes) that a large boot may take without a collection for its sake. Nearly all of it is code and tables, and stays.
const MAX_FORGIVEN: usize = 64 << 20;

/// What is known of the objects of a boot.
pub struct Heap {
    is_known_ruby: bool,
    scope: usize,
    /// As in the archive: files and objects.
    expected: (u64, u64),
    /// Files of this boot.
    loaded: u64,
    /// An Array of an object in each page of the room.
    pages: Value<'static>,
    /// Bytes that were not counted for the next collection.
    forgiven: usize,
    /// Objects that have stayed by the time at which the last of them was loaded, where that is worth to be known.
    stayed: Option<u64>,
}

impl Heap {
    /// `description`: of the Ruby that runs. `version`: its number.
    pub fn new(ruby: Ruby<'_>, store: &mut Store, description: &str, version: &[u8]) -> Protected<Self> {
        let is_set = std::env::vars_os().any(|(name, _)| name.as_encoded_bytes().starts_with(b"RUBY_GC_"));
        // Where memory is limited, room that is not needed after all could be what is missing later.
        let is_limited = [Resource::As, Resource::Data].into_iter().any(|of| getrlimit(of).current.is_some());
        let is_known_ruby = (version.starts_with(b"3.0.") || version.starts_with(b"3.1.")) && !is_set && !is_limited;
        let scope = store.scope(Kind::Memo, description);
        let expected = store.recall(scope, NAME).and_then(|payload| {
            let (numbers, []) = payload.as_chunks::<8>() else { return None };
            let [files, objects] = numbers else { return None };
            Some((u64::from_le_bytes(*files), u64::from_le_bytes(*objects)))
        });
        Ok(Heap {
            is_known_ruby,
            scope,
            expected: expected.unwrap_or_default(),
            loaded: 0,
            pages: ruby.keep(ruby.array()?)?,
            forgiven: 0,
            stayed: None,
        })
    }

    /// A file is about to be loaded. Answers how large the heap should be now (objects), and the Array that keeps it so large.
    pub fn count(&mut self, ruby: Main<'_>) -> Protected<Option<(usize, Value<'static>)>> {
        if !self.is_known_ruby {
            return Ok(None);
        }
        self.loaded += 1;
        let (files, objects) = self.expected;
        // A few files more than ever before do not make another boot of it.
        if self.loaded >= FEWEST.max(files + files / 8) {
            self.stayed = Some(self.old_objects(ruby)?);
            // A server that has booted may never end.
            if self.loaded.is_multiple_of(NOTED) {
                STORE.with(ruby, |store| self.note(store));
            }
        }
        let (begin, end) = if files > 0 { (files / PART, files / 2) } else { (FEWEST, 2 * FEWEST) };
        if self.loaded >= begin && (files == 0 || self.loaded < files) && self.forgiven < MAX_FORGIVEN {
            let bytes = ruby.allocated()?;
            self.forgiven += bytes;
            ruby.forgive(bytes);
        }
        // More is in use then than Ruby asks for.
        if self.loaded == end {
            ruby.clear_array(self.pages)?;
        }
        if self.loaded != begin {
            return Ok(None);
        }
        // As many again for those that do not.
        let room = if files > 0 { 2 * objects } else { 3 * self.old_objects(ruby)? };
        Ok(Some((room as usize, self.pages)))
    }

    /// Objects that have stayed so far, as far as they are not the program's data.
    fn old_objects(&self, ruby: Main<'_>) -> Protected<u64> {
        Ok((ruby.old_objects()? as u64).min(self.loaded * MAX_FOR_A_FILE))
    }

    /// Queues what this boot was like, if it was larger than what is known.
    pub fn note(&self, store: &mut Store) {
        if let Some(stayed) = self.stayed {
            let payload = [self.loaded.to_le_bytes(), stayed.to_le_bytes()].concat();
            store.add(self.scope, NAME.to_vec(), Vec::<NewInput>::new(), payload, false);
        }
    }
}
