//! One segment of the file: the entries that one writer appended together.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use record::Record;

use crate::checksum;
use crate::entry::Entry;
use crate::index::Index;
use crate::key::Scope;
use crate::records::{SegmentHead, Slot};
use crate::{ALIGNMENT, FIRST_SEGMENT};

/// A segment with a correct head, without its file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Its head.
    pub head: SegmentHead,
    /// Whether the index is correct, too. Otherwise look-ups find nothing in the segment.
    pub is_whole: bool,
    /// Where it starts in the file (bytes).
    start: usize,
    /// Where its index starts in the file (bytes).
    index: usize,
    /// Where it ends in the file (bytes).
    end: usize,
}

/// Some bytes have a wrong checksum.
#[derive(Debug)]
pub(crate) struct Damaged;

impl Segment {
    /// Parses the segment that starts there.
    pub fn parse(file: &[u8], start: usize) -> Option<Self> {
        let head = whole_head(file.get(start..)?.first_chunk()?)?;
        let end = start.checked_add(usize::try_from(head.size).ok()?)?;
        let index = start.checked_add(usize::try_from(head.index_offset).ok()?)?;
        if end > file.len() {
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

    /// All entries in the order of the file, with `Err` for each damaged one.
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

/// The head in these bytes, if it is valid.
fn whole_head(fields: &[u8; SegmentHead::SIZE]) -> Option<SegmentHead> {
    let head = SegmentHead::decode(fields);
    let is_whole = head.magic == SegmentHead::MAGIC && head.head_sum == checksum(&fields[8..]);
    let is_possible = (SegmentHead::SIZE as u64..=head.size).contains(&head.index_offset);
    (is_whole && is_possible && head.size.is_multiple_of(ALIGNMENT)).then_some(head)
}

/// The end of a file's last segment (bytes). If the file ends before the place of the first segment, that is the end.
pub(crate) fn end_of_segments(file: &File) -> io::Result<u64> {
    let (mut end, size) = (FIRST_SEGMENT, file.metadata()?.len());
    let mut fields = [0; SegmentHead::SIZE];
    while read_at(file, end, &mut fields)? {
        match whole_head(&fields).and_then(|head| end.checked_add(head.size)) {
            Some(next) if next <= size => end = next,
            _ => break,
        }
    }
    Ok(end)
}

/// The segments of a file, oldest first.
pub(crate) fn segments(file: &[u8]) -> Vec<Segment> {
    let (mut found, mut end) = (Vec::new(), FIRST_SEGMENT as usize);
    while let Some(segment) = Segment::parse(file, end) {
        end = segment.end;
        found.push(segment);
    }
    found
}

/// The entries of a segment that has not been written yet.
pub(crate) fn alone(segment: &[u8]) -> Vec<Entry<'_>> {
    Segment::parse(segment, 0).iter().flat_map(|parsed| parsed.entries(segment)).filter_map(Result::ok).collect()
}

/// Whether there are that many bytes from `offset` on: they are then in `room`.
pub(crate) fn read_at(file: &File, offset: u64, room: &mut [u8]) -> io::Result<bool> {
    match file.read_exact_at(room, offset) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
