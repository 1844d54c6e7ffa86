//! One segment of the file: what somebody appended at once.

use image::Record;

use crate::checksum;
use crate::entry::Entry;
use crate::index::Index;
use crate::key::Scope;
use crate::records::{SegmentHead, Slot};
use crate::ALIGNMENT;

/// A segment whose head is right, without the file that it lies in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Its head.
    pub head: SegmentHead,
    /// Whether the index is right, too. Otherwise nothing is found in the segment.
    pub is_whole: bool,
    /// Where it starts in the file (bytes).
    start: usize,
    /// Where its index starts in the file (bytes).
    index: usize,
    /// Where it ends in the file (bytes).
    end: usize,
}

/// There are bytes whose checksum is wrong.
#[derive(Debug)]
pub(crate) struct Damaged;

impl Segment {
    /// The segment that starts there.
    pub fn parse(file: &[u8], start: usize) -> Option<Self> {
        let fields = file.get(start..start.checked_add(SegmentHead::SIZE)?)?;
        let head = SegmentHead::decode(fields);
        if head.magic != SegmentHead::MAGIC || head.head_sum != checksum(&fields[8..]) {
            return None;
        }
        let end = start.checked_add(usize::try_from(head.size).ok()?)?;
        let index = start.checked_add(usize::try_from(head.index_offset).ok()?)?;
        let is_possible = (SegmentHead::SIZE as u64..=head.size).contains(&head.index_offset);
        if end > file.len() || !is_possible || !head.size.is_multiple_of(ALIGNMENT) {
            return None;
        }
        let size = (head.slots as usize).checked_mul(Slot::SIZE)?;
        let is_whole = file[index..end].get(..size).is_some_and(|bytes| checksum(bytes) == head.index_sum);
        Some(Segment { head, is_whole, start, index, end })
    }

    /// The entry with this key. `Err`: there may be one, but it is damaged.
    pub fn find<'a>(
        &self,
        file: &'a [u8],
        key_sum: u32,
        scope: &Scope,
        name: &[&[u8]],
    ) -> Result<Option<Entry<'a>>, Damaged> {
        let index = self.index(file).ok_or(Damaged)?;
        for place in index.places(key_sum) {
            let entry = self.entry(file, place).ok_or(Damaged)?;
            if scope.is_key(entry.key_bytes(), name) {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }

    /// All entries in the order in which they lie, with `Err` for each damaged one.
    pub fn entries<'a>(&self, file: &'a [u8]) -> impl Iterator<Item = Result<Entry<'a>, Damaged>> {
        let mut places: Vec<u32> = self.index(file).iter().flat_map(|index| index.all()).collect();
        places.sort_unstable();
        let segment = *self;
        places.into_iter().map(move |place| segment.entry(file, place).ok_or(Damaged))
    }

    fn index<'a>(&self, file: &'a [u8]) -> Option<Index<'a>> {
        self.is_whole.then(|| Index::parse(&file[self.index..self.end], self.head.slots)).flatten()
    }

    fn entry<'a>(&self, file: &'a [u8], place: u32) -> Option<Entry<'a>> {
        let start = usize::try_from(u64::from(place) * ALIGNMENT).ok()?;
        Entry::parse(file.get(self.start..self.index)?, start)
    }
}

/// The segments of a file, oldest first, and where the last one ends (bytes).
pub(crate) fn segments(file: &[u8]) -> (Vec<Segment>, usize) {
    let (mut found, mut end) = (Vec::new(), crate::FIRST_SEGMENT as usize);
    while let Some(segment) = Segment::parse(file, end) {
        end = segment.end;
        found.push(segment);
    }
    (found, end)
}

/// The entries of a segment that is in no file yet.
pub(crate) fn alone(segment: &[u8]) -> Vec<Entry<'_>> {
    Segment::parse(segment, 0).iter().flat_map(|parsed| parsed.entries(segment)).filter_map(Result::ok).collect()
}
