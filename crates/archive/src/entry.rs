//! An entry where it lies in the mapping.

use image::Record;

use crate::checksum;
use crate::key::{Key, Kind};
use crate::records::{encoding, input_kind, EntryHead, Input};
use crate::{ALIGNMENT, MOST_PAYLOAD};

/// An entry whose head, key and inputs have the right checksum. Its payload is checked when it is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    head: EntryHead,
    bytes: &'a [u8],
    key: Key<'a>,
}

impl<'a> Entry<'a> {
    /// The entry at the start of `bytes`.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let head = EntryHead::decode(bytes.get(..EntryHead::SIZE)?);
        let key_end = EntryHead::SIZE.checked_add(head.key_size as usize)?;
        let inputs_end = key_end.checked_add(head.inputs_size as usize)?;
        let payload = head.payload_offset as usize;
        let end = payload.checked_add(head.payload_size as usize)?;
        if inputs_end > payload
            || !payload.is_multiple_of(ALIGNMENT as usize)
            || u64::from(head.plain_size) > MOST_PAYLOAD
        {
            return None;
        }
        let bytes = bytes.get(..end)?;
        if checksum(&bytes[4..inputs_end]) != head.head_sum {
            return None;
        }
        let key = Key::parse(&bytes[EntryHead::SIZE..key_end])?;
        let names = (head.inputs_size as usize).checked_sub((head.inputs as usize).checked_mul(Input::SIZE)?)?;
        let entry = Entry { head, bytes, key };
        let mut sizes = 0u64;
        for row in entry.rows().iter() {
            sizes += u64::from(Input::decode(row).name_size);
        }
        (sizes == names as u64).then_some(entry)
    }

    /// What it is found by.
    pub fn key(&self) -> Key<'a> {
        self.key
    }

    /// What it holds.
    pub fn kind(&self) -> Kind {
        self.key.kind
    }

    /// How its payload is stored: see [`encoding`].
    pub fn encoding(&self) -> u32 {
        self.head.encoding
    }

    /// Bytes that the payload takes in the file.
    pub fn stored_size(&self) -> usize {
        self.head.payload_size as usize
    }

    /// Bytes of the payload after decoding.
    pub fn plain_size(&self) -> usize {
        self.head.plain_size as usize
    }

    /// Bytes that the entry takes in the file.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The payload as it is stored, right in the mapping; `None` when it is damaged. Each call computes the checksum.
    pub fn stored(&self) -> Option<&'a [u8]> {
        let payload = &self.bytes[self.head.payload_offset as usize..];
        (checksum(payload) == self.head.payload_sum).then_some(payload)
    }

    /// The payload right in the mapping, where it needs no decoding; `None` when it is damaged or encoded.
    pub fn plain(&self) -> Option<&'a [u8]> {
        (self.head.encoding == encoding::PLAIN && self.head.plain_size == self.head.payload_size)
            .then(|| self.stored())
            .flatten()
    }

    /// What it depends on.
    pub fn inputs(&self) -> Inputs<'a> {
        let names = self.inputs_start() + self.head.inputs as usize * Input::SIZE;
        Inputs { rows: self.rows().iter(), names: &self.bytes[names..] }
    }

    pub(crate) fn head(&self) -> &EntryHead {
        &self.head
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
    /// What was recorded of it.
    pub input: Input,
    /// Its path or the variable's name; empty: the path in the key.
    pub name: &'a [u8],
}

impl Row<'_> {
    /// What it is, in a word.
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
        // The sum of all names was compared when the entry was parsed.
        let (name, rest) = self.names.split_at_checked(input.name_size as usize)?;
        self.names = rest;
        Some(Row { input, name })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl ExactSizeIterator for Inputs<'_> {}
