//! An entry in the mapping.

use record::Record;

use crate::checksum;
use crate::key::{Key, Kind};
use crate::records::{encoding, input_kind, BlockHead, EntryHead, Input, Packed, Slot};
use crate::{ALIGNMENT, MAX_PAYLOAD};

/// An entry whose head, key and inputs have the right checksum. Its payload is checked when it is read.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    head: EntryHead,
    /// The segment up to its index.
    segment: &'a [u8],
    bytes: &'a [u8],
    key: Key<'a>,
}

impl<'a> Entry<'a> {
    /// Parses the entry that starts there in the bytes of a segment up to its index.
    pub(crate) fn parse(segment: &'a [u8], start: usize) -> Option<Self> {
        let bytes = segment.get(start..)?;
        let head = EntryHead::decode(bytes.get(..EntryHead::SIZE)?);
        let key_end = EntryHead::SIZE.checked_add(head.key_size as usize)?;
        let inputs_end = key_end.checked_add(head.inputs_size as usize)?;
        let payload = head.payload_offset as usize;
        let end = payload.checked_add(head.payload_size as usize)?;
        if inputs_end > payload
            || !payload.is_multiple_of(ALIGNMENT as usize)
            || u64::from(head.plain_size) > MAX_PAYLOAD
        {
            return None;
        }
        let bytes = bytes.get(..end)?;
        if checksum(&bytes[4..inputs_end]) != head.head_sum {
            return None;
        }
        let key = Key::parse(&bytes[EntryHead::SIZE..key_end])?;
        let names = (head.inputs_size as usize).checked_sub((head.inputs as usize).checked_mul(Input::SIZE)?)?;
        let entry = Entry { head, segment, bytes, key };
        let mut sizes = 0u64;
        for row in entry.rows().iter() {
            sizes += u64::from(Input::decode(row).name_size);
        }
        (sizes == names as u64).then_some(entry)
    }

    /// Its key.
    pub fn key(&self) -> Key<'a> {
        self.key
    }

    /// The kind of its payload.
    pub fn kind(&self) -> Kind {
        self.key.kind
    }

    /// The encoding of its payload: see [`encoding`].
    pub fn encoding(&self) -> u32 {
        self.head.encoding
    }

    /// The payload's size in the file (bytes); for a packed one, roughly its part of the block.
    pub fn stored_size(&self) -> usize {
        match self.block_head() {
            Some((_, _, head)) if self.head.encoding == encoding::PACKED => {
                (self.plain_size() as u64 * u64::from(head.size) / u64::from(head.plain_size.max(1))) as usize
            }
            _ => self.head.payload_size as usize,
        }
    }

    /// The payload's size after decoding (bytes).
    pub fn plain_size(&self) -> usize {
        self.head.plain_size as usize
    }

    /// The entry's size in the file with its part of the index (bytes); for a packed one, roughly.
    pub fn size(&self) -> usize {
        let payload = if self.head.encoding == encoding::PACKED { self.stored_size() } else { 0 };
        (self.bytes.len() + 2 * Slot::SIZE).next_multiple_of(ALIGNMENT as usize) + payload
    }

    /// The payload directly in the mapping, if it needs no decoding; `None` if it is damaged or encoded.
    pub fn plain(&self) -> Option<&'a [u8]> {
        (self.head.encoding == encoding::PLAIN && self.head.plain_size == self.head.payload_size)
            .then(|| self.payload())
            .flatten()
    }

    /// The block of a packed payload, and the payload's position in it. `None` if it is damaged, or not packed.
    pub(crate) fn packed(&self) -> Option<(&'a [u8], Packed)> {
        if self.head.encoding != encoding::PACKED {
            return None;
        }
        let (start, packed, head) = self.block_head()?;
        let block = self.segment.get(start..)?.get(..BlockHead::SIZE.checked_add(head.size as usize)?)?;
        Some((block, packed))
    }

    /// The checksum of a packed payload after decoding.
    pub(crate) fn plain_sum(&self) -> Option<u32> {
        Some(Packed::decode(self.payload()?.get(..Packed::SIZE)?).plain_sum)
    }

    fn block_head(&self) -> Option<(usize, Packed, BlockHead)> {
        let packed = Packed::decode(self.payload()?.get(..Packed::SIZE)?);
        let start = usize::try_from(u64::from(packed.block) * ALIGNMENT).ok()?;
        let head = BlockHead::decode(self.segment.get(start..)?.get(..BlockHead::SIZE)?);
        Some((start, packed, head))
    }

    /// The payload in the entry, if its checksum is right.
    fn payload(&self) -> Option<&'a [u8]> {
        let payload = &self.bytes[self.head.payload_offset as usize..];
        (checksum(payload) == self.head.payload_sum).then_some(payload)
    }

    /// Its inputs.
    pub fn inputs(&self) -> Inputs<'a> {
        let names = self.inputs_start() + self.head.inputs as usize * Input::SIZE;
        Inputs { rows: self.rows().iter(), names: &self.bytes[names..] }
    }

    /// The name of one of its inputs: its own, or the path in the key.
    pub fn name_of(&self, input: &Row<'a>) -> &'a [u8] {
        if input.name.is_empty() {
            self.key.name
        } else {
            input.name
        }
    }

    pub(crate) fn inputs_count(&self) -> u32 {
        self.head.inputs
    }

    pub(crate) fn key_bytes(&self) -> &'a [u8] {
        &self.bytes[EntryHead::SIZE..self.inputs_start()]
    }

    /// Rows and names of the inputs, as they lie in the file.
    pub(crate) fn inputs_bytes(&self) -> &'a [u8] {
        &self.bytes[self.inputs_start()..][..self.head.inputs_size as usize]
    }

    fn inputs_start(&self) -> usize {
        EntryHead::SIZE + self.head.key_size as usize
    }

    fn rows(&self) -> &'a [[u8; Input::SIZE]] {
        self.inputs_bytes()[..self.head.inputs as usize * Input::SIZE].as_chunks().0
    }
}

/// An input with its name.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The recorded state.
    pub input: Input,
    /// Its path or the variable's name; empty for the path in the key.
    pub name: &'a [u8],
}

impl Row<'_> {
    /// The kind, in a word.
    pub fn kind_name(&self) -> &'static str {
        match self.input.kind {
            input_kind::FILE => "file",
            input_kind::DIRECTORY => "directory",
            input_kind::ABSENT => "absent",
            input_kind::VARIABLE => "variable",
            input_kind::UNSET => "unset variable",
            _ => "unknown",
        }
    }
}

/// The inputs of an entry, one after the other.
#[derive(Clone, Debug)]
pub struct Inputs<'a> {
    rows: std::slice::Iter<'a, [u8; Input::SIZE]>,
    names: &'a [u8],
}

impl<'a> Iterator for Inputs<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        let input = Input::decode(self.rows.next()?);
        // The checksum of all names was checked when the entry was parsed.
        let (name, rest) = self.names.split_at_checked(input.name_size as usize)?;
        self.names = rest;
        Some(Row { input, name })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl ExactSizeIterator for Inputs<'_> {}
