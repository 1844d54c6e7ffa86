//! Building segments.

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use record::Record;

use crate::entry::Entry;
use crate::index;
use crate::pack::{self, Decoder, Packer, Place};
use crate::records::{encoding, EntryHead, Header, Packed, SegmentHead};
use crate::{checksum, ALIGNMENT, FIRST_SEGMENT, VERSION};

/// Entries of a new segment, oldest first.
#[derive(Default)]
pub(crate) struct Draft<'a> {
    pub entries: Vec<Raw<'a>>,
    pub packer: Packer<'a>,
    pub decoder: Decoder<'a>,
}

/// An entry in its written parts.
#[derive(Clone, Debug)]
pub(crate) struct Raw<'a> {
    pub key: Cow<'a, [u8]>,
    /// Number of inputs.
    pub inputs: u32,
    /// Their rows and names.
    pub inputs_bytes: Cow<'a, [u8]>,
    pub payload: Payload<'a>,
}

/// A payload in the form in which it is stored.
#[derive(Clone, Debug)]
pub(crate) enum Payload<'a> {
    Plain(Cow<'a, [u8]>),
    Packed { place: Place, plain_sum: u32, plain_size: u32 },
}

impl Packer<'_> {
    /// Stores a payload, packed if that is wanted and possible.
    pub fn payload<'p>(&mut self, payload: Cow<'p, [u8]>, pack: bool) -> Payload<'p> {
        match if pack { self.add(&payload) } else { None } {
            Some(place) => Payload::Packed { place, plain_sum: checksum(&payload), plain_size: payload.len() as u32 },
            None => Payload::Plain(payload),
        }
    }
}

impl<'a> Draft<'a> {
    /// Adds entries of an archive, except damaged ones.
    pub fn copy(&mut self, entries: &[Entry<'a>]) {
        let blocks = self.keep_blocks(entries);
        for entry in entries {
            let Some(payload) = self.payload(entry, &blocks) else { continue };
            self.entries.push(Raw {
                key: entry.key_bytes().into(),
                inputs: entry.inputs_count(),
                inputs_bytes: entry.inputs_bytes().into(),
                payload,
            });
        }
    }

    /// Copies the blocks that these entries nearly fill, which saves compressing them again. Returns their numbers by address.
    fn keep_blocks(&mut self, entries: &[Entry<'a>]) -> HashMap<*const u8, usize> {
        let mut used: HashMap<*const u8, (&'a [u8], usize)> = HashMap::new();
        for (entry, (block, _)) in entries.iter().filter_map(|entry| Some((entry, entry.packed()?))) {
            used.entry(block.as_ptr()).or_insert((block, 0)).1 += Packer::room(entry.plain_size());
        }
        let full = used.into_values().filter(|(block, used)| pack::is_nearly_full(block, *used));
        full.filter_map(|(block, _)| Some((block.as_ptr(), self.packer.keep(block)?))).collect()
    }

    /// The payload of an entry: as it is, in a copied block, or packed again.
    fn payload(&mut self, entry: &Entry<'a>, blocks: &HashMap<*const u8, usize>) -> Option<Payload<'a>> {
        if let Some(payload) = entry.plain() {
            return Some(Payload::Plain(payload.into()));
        }
        let (block, Packed { offset, plain_sum, .. }) = entry.packed()?;
        if let Some(number) = blocks.get(&block.as_ptr()) {
            let place = Place { block: *number, offset };
            return Some(Payload::Packed { place, plain_sum, plain_size: entry.plain_size() as u32 });
        }
        let payload = self.decoder.decode(entry)?;
        Some(match self.packer.payload(Cow::Borrowed(payload), true) {
            Payload::Plain(payload) => Payload::Plain(payload.into_owned().into()),
            Payload::Packed { place, plain_sum, plain_size } => Payload::Packed { place, plain_sum, plain_size },
        })
    }

    /// The whole segment; of entries with the same key, only the last one. `None` if it would exceed the maximum size.
    pub fn segment(mut self, written: i64) -> Option<Vec<u8>> {
        let latest: HashMap<&[u8], usize> = self.entries.iter().enumerate().map(|(at, raw)| (&*raw.key, at)).collect();
        let mut bytes = vec![0; SegmentHead::SIZE];
        let blocks = self.packer.finish()?;
        let mut places: Vec<Option<u32>> = vec![None; blocks.len()];
        let mut things = Vec::with_capacity(latest.len());
        for (_, raw) in self.entries.iter().enumerate().filter(|(at, raw)| latest[&*raw.key] == *at) {
            if let Payload::Packed { place, .. } = raw.payload {
                // A block precedes the first entry that needs it.
                if places[place.block].is_none() {
                    places[place.block] = Some(u32::try_from(bytes.len() as u64 / ALIGNMENT).ok()?);
                    bytes.extend_from_slice(&blocks[place.block]);
                    bytes.resize(aligned(bytes.len()), 0);
                }
            }
            things.push((checksum(&raw.key), u32::try_from(bytes.len() as u64 / ALIGNMENT).ok()?));
            append(&mut bytes, raw, &places)?;
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
}

fn append(bytes: &mut Vec<u8>, raw: &Raw<'_>, blocks: &[Option<u32>]) -> Option<()> {
    let mut packed = [0; Packed::SIZE];
    let (encoding, plain_size, payload) = match &raw.payload {
        Payload::Plain(payload) => (encoding::PLAIN, u32::try_from(payload.len()).ok()?, &**payload),
        Payload::Packed { place, plain_sum, plain_size } => {
            let block = blocks[place.block]?;
            Packed { block, offset: place.offset, plain_sum: *plain_sum }.encode(&mut packed);
            (encoding::PACKED, *plain_size, &packed[..])
        }
    };
    let start = bytes.len();
    let head = EntryHead {
        head_sum: 0,
        payload_sum: checksum(payload),
        key_size: u32::try_from(raw.key.len()).ok()?,
        inputs: raw.inputs,
        inputs_size: u32::try_from(raw.inputs_bytes.len()).ok()?,
        encoding,
        payload_offset: u32::try_from(aligned(EntryHead::SIZE + raw.key.len() + raw.inputs_bytes.len())).ok()?,
        payload_size: payload.len() as u32,
        plain_size,
    };
    bytes.resize(start + EntryHead::SIZE, 0);
    head.encode(&mut bytes[start..]);
    bytes.extend_from_slice(&raw.key);
    bytes.extend_from_slice(&raw.inputs_bytes);
    let head_sum = checksum(&bytes[start + 4..]);
    EntryHead { head_sum, ..head }.encode(&mut bytes[start..]);
    bytes.resize(start + head.payload_offset as usize, 0);
    bytes.extend_from_slice(payload);
    bytes.resize(aligned(bytes.len()), 0);
    Some(())
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

fn aligned(size: usize) -> usize {
    size.next_multiple_of(ALIGNMENT as usize)
}

/// Seconds since 1970.
pub(crate) fn seconds() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
