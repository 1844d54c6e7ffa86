//! Segments in the making.

use std::borrow::Cow;
use std::collections::HashMap;

use image::Record;

use crate::entry::Entry;
use crate::index;
use crate::records::{EntryHead, Header, SegmentHead};
use crate::{checksum, ALIGNMENT, FIRST_SEGMENT, VERSION};

/// An entry in the parts that are written.
#[derive(Clone, Debug)]
pub(crate) struct Raw<'a> {
    pub key: Cow<'a, [u8]>,
    /// Number of inputs.
    pub inputs: u32,
    /// Their rows and names.
    pub inputs_bytes: Cow<'a, [u8]>,
    pub encoding: u32,
    pub plain_size: u32,
    pub payload: Cow<'a, [u8]>,
    pub payload_sum: u32,
}

impl<'a> Raw<'a> {
    /// A whole entry, as it is. `None` when its payload is damaged.
    pub fn of(entry: &Entry<'a>) -> Option<Self> {
        let payload = entry.stored()?.into();
        let head = entry.head();
        Some(Raw {
            key: entry.key_bytes().into(),
            inputs: head.inputs,
            inputs_bytes: entry.inputs_bytes().into(),
            encoding: head.encoding,
            plain_size: head.plain_size,
            payload,
            payload_sum: head.payload_sum,
        })
    }

    /// Bytes that it takes in a file, index included.
    pub fn size(&self) -> u64 {
        let payload = aligned(EntryHead::SIZE + self.key.len() + self.inputs_bytes.len());
        // Two to four slots.
        (aligned(payload + self.payload.len()) + 32) as u64
    }
}

/// The first page of an archive.
pub(crate) fn first_page() -> Vec<u8> {
    let mut page = vec![0; FIRST_SEGMENT as usize];
    let header = Header { magic: Header::MAGIC, version: VERSION, header_sum: 0 };
    header.encode(&mut page);
    let header_sum = checksum(&page[..Header::SIZE - 4]);
    Header { header_sum, ..header }.encode(&mut page);
    page
}

/// A whole segment with these entries; of two with one key the later. `None` when it would be larger than a segment can be.
pub(crate) fn segment(raws: &[Raw<'_>], written: i64) -> Option<Vec<u8>> {
    let latest: HashMap<&[u8], usize> = raws.iter().enumerate().map(|(at, raw)| (&*raw.key, at)).collect();
    let mut bytes = vec![0; SegmentHead::SIZE];
    let mut things = Vec::with_capacity(latest.len());
    for (at, raw) in raws.iter().enumerate() {
        if latest[&*raw.key] != at {
            continue;
        }
        things.push((checksum(&raw.key), u32::try_from(bytes.len() as u64 / ALIGNMENT).ok()?));
        append(&mut bytes, raw)?;
    }
    let index_offset = bytes.len() as u64;
    let index = index::build(&things);
    bytes.extend_from_slice(&index);
    bytes.resize(aligned(bytes.len()), 0);
    let head = SegmentHead {
        magic: SegmentHead::MAGIC,
        head_sum: 0,
        size: bytes.len() as u64,
        index_offset,
        slots: u32::try_from(index::slots_for(things.len())).ok()?,
        index_sum: checksum(&index),
        entries: u32::try_from(things.len()).ok()?,
        reserved: 0,
        written,
    };
    head.encode(&mut bytes);
    let head_sum = checksum(&bytes[8..SegmentHead::SIZE]);
    SegmentHead { head_sum, ..head }.encode(&mut bytes);
    Some(bytes)
}

fn append(bytes: &mut Vec<u8>, raw: &Raw<'_>) -> Option<()> {
    let start = bytes.len();
    let head = EntryHead {
        head_sum: 0,
        payload_sum: raw.payload_sum,
        key_size: u32::try_from(raw.key.len()).ok()?,
        inputs: raw.inputs,
        inputs_size: u32::try_from(raw.inputs_bytes.len()).ok()?,
        encoding: raw.encoding,
        payload_offset: u32::try_from(aligned(EntryHead::SIZE + raw.key.len() + raw.inputs_bytes.len())).ok()?,
        payload_size: u32::try_from(raw.payload.len()).ok()?,
        plain_size: raw.plain_size,
    };
    bytes.resize(start + EntryHead::SIZE, 0);
    head.encode(&mut bytes[start..]);
    bytes.extend_from_slice(&raw.key);
    bytes.extend_from_slice(&raw.inputs_bytes);
    let head_sum = checksum(&bytes[start + 4..]);
    EntryHead { head_sum, ..head }.encode(&mut bytes[start..]);
    bytes.resize(start + head.payload_offset as usize, 0);
    bytes.extend_from_slice(&raw.payload);
    bytes.resize(aligned(bytes.len()), 0);
    Some(())
}

fn aligned(size: usize) -> usize {
    size.next_multiple_of(ALIGNMENT as usize)
}
