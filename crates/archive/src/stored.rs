//! Payloads as they are stored, and back.

use zstd::bulk;

use crate::entry::Entry;
use crate::records::encoding;

/// How much is put into getting payloads small: beyond this level it takes longer for little.
const LEVEL: i32 = 3;

/// A payload smaller than this (bytes) is stored as it is.
const WORTH_IT: usize = 128;

/// Decodes payloads one after the other, in the same memory.
#[derive(Default)]
pub struct Decoder {
    zstd: Option<bulk::Decompressor<'static>>,
    plain: Vec<u8>,
}

impl Decoder {
    /// The payload of an entry: in the mapping where it is stored as it is, else in the decoder's memory, until the next call.
    /// `None` when it is damaged.
    pub fn decode<'a>(&'a mut self, entry: &Entry<'a>) -> Option<&'a [u8]> {
        match entry.encoding() {
            encoding::PLAIN => entry.plain(),
            encoding::ZSTD => {
                let stored = entry.stored()?;
                let zstd = match &mut self.zstd {
                    Some(zstd) => zstd,
                    none => none.insert(bulk::Decompressor::new().ok()?),
                };
                self.plain.clear();
                self.plain.reserve(entry.plain_size());
                let size = zstd.decompress_to_buffer(stored, &mut self.plain).ok()?;
                (size == entry.plain_size()).then_some(&self.plain)
            }
            _ => None,
        }
    }
}

/// Encodes payloads one after the other.
#[derive(Default)]
pub(crate) struct Encoder {
    zstd: Option<bulk::Compressor<'static>>,
}

impl Encoder {
    /// The payload in a smaller form, if there is one.
    pub fn encode(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        if payload.len() < WORTH_IT {
            return None;
        }
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            none => none.insert(bulk::Compressor::new(LEVEL).ok()?),
        };
        zstd.compress(payload).ok().filter(|smaller| smaller.len() + smaller.len() / 8 < payload.len())
    }
}
