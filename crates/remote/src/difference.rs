//! The next version of an image as its difference to the image before: a machine that has that one fetches this instead of all.
//!
//! Both images are read as they are, without the area of the heads, in which each machine has words of its own. In the new one's data pages the
//! addresses of what has moved are exchanged for those of before ([`moved`](crate::moved)); then zstd compresses it with the image before
//! as a prefix, heads, tables and answers apart from the rest, so that a reader compares inputs before it fetches that. Whether the outcome is
//! the image is for the reader to check, chunk by chunk.

use std::io::{Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;

use failure::{Failure, Result};
use image::{Head, HEAD_AREA, HEAD_OFFSET};
use image_file::ImageFile;
use serde::{Deserialize, Serialize};
use zstd::stream::raw::CParameter;

use crate::chunks::{hex, Chunked};
use crate::moved::{areas, exchange, Moved};

/// The largest image that is made from a difference (bytes). A reader holds both in memory.
const MOST_BYTES: u64 = 256 << 20;
/// How much it is compressed: above this zstd takes ten times as long, for a sixth less.
const LEVEL: i32 = 12;
/// The longest distance to which zstd refers, as a power of two (bytes): the largest image and the one before it.
const MOST_WINDOW: u32 = (2 * MOST_BYTES).ilog2();

/// What makes an image of the one before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The image before: see [`identity`].
    pub from: String,
    /// Heads, tables and answers.
    pub front: Chunked,
    /// The rest.
    pub rest: Chunked,
    /// What has moved in each variant.
    pub moved: Vec<Vec<Moved>>,
}

impl Difference {
    /// Its parts in the remote store.
    pub fn parts(&self) -> [&Chunked; 2] {
        [&self.front, &self.rest]
    }
}

/// The image before, in memory.
pub struct Before {
    bytes: Vec<u8>,
}

impl Before {
    /// Reads it. None if it is too large.
    pub fn read(image: &ImageFile) -> Result<Option<Before>> {
        let Some(mut bytes) = content(image)? else { return Ok(None) };
        bytes[HEAD_OFFSET..HEAD_OFFSET + HEAD_AREA].fill(0);
        Ok(Some(Before { bytes }))
    }
}

/// Identifies an image, whatever store it lies in.
pub fn identity(image: &ImageFile) -> String {
    let head = image.head();
    format!("{}{:016x}", hex(&head.pages_digest), head.tables_sum)
}

/// All of an image; None if it is too large.
fn content(image: &ImageFile) -> Result<Option<Vec<u8>>> {
    if image.size > MOST_BYTES {
        return Ok(None);
    }
    let mut bytes = vec![0; image.size as usize];
    image.file.read_exact_at(&mut bytes, 0).map_err(|error| Failure::io("read", &image.path, &error))?;
    Ok(Some(bytes))
}

/// The two parts of a difference as they are stored, and what has moved.
pub struct Made {
    /// Heads, tables and answers.
    pub front: Vec<u8>,
    /// The rest.
    pub rest: Vec<u8>,
    /// What has moved in each variant.
    pub moved: Vec<Vec<Moved>>,
}

/// The difference between two images. None if there is no use in it: one is too large, or they have other numbers of variants.
pub fn between(new: &ImageFile, before: &ImageFile) -> Result<Option<Made>> {
    let (Some(mut bytes), Some(Before { bytes: prefix })) = (content(new)?, Before::read(before)?) else {
        return Ok(None);
    };
    if new.variants.len() != before.variants.len() {
        return Ok(None);
    }
    let parts = Parts::find(&bytes[HEAD_OFFSET..][..HEAD_AREA], new.size)?;
    let variants = new.variants.iter().zip(&before.variants);
    let moved = variants.map(|(new, before)| areas(&new.tables(), &before.tables())).collect::<Result<Vec<_>>>()?;
    let front = packed(&parts.front, &bytes, &prefix)?;
    parts.exchange(0, &mut bytes, &moved);
    let rest = packed(&parts.rest, &bytes, &prefix)?;
    Ok(Some(Made { front, rest, moved }))
}

/// Heads, tables and answers of an image, from their stored difference: where they lie in it, and their bytes. `size`: that of the image.
pub fn unpack_front(stored: &[u8], before: &Before, size: u64) -> Result<Vec<(u64, Vec<u8>)>> {
    let bytes = unpacked(stored, before, size)?;
    let area = bytes.get(..HEAD_AREA).ok_or_else(|| wrong("it has no heads"))?;
    split(&Parts::find(area, size)?.front, bytes)
}

/// The rest, in the same way. `area`: that of the heads.
pub fn unpack_rest(
    stored: &[u8],
    before: &Before,
    area: &[u8],
    size: u64,
    moved: &[Vec<Moved>],
) -> Result<Vec<(u64, Vec<u8>)>> {
    let parts = Parts::find(area, size)?;
    let mut pieces = split(&parts.rest, unpacked(stored, before, size)?)?;
    for (offset, bytes) in &mut pieces {
        parts.exchange(*offset, bytes, moved);
    }
    Ok(pieces)
}

/// Which bytes of an image belong to which part.
pub struct Parts {
    /// Heads, tables and answers, none of them empty, by place.
    pub front: Vec<Range<u64>>,
    rest: Vec<Range<u64>>,
    /// The data pages of each variant.
    pages: Vec<Range<u64>>,
}

impl Parts {
    /// `area`: that of the heads; `size`: of the image. Fails if the heads are damaged, or name another size.
    pub fn find(area: &[u8], size: u64) -> Result<Parts> {
        let count = Head::parse(area, size)?.variants;
        let heads = (0..count)
            .map(|number| Head::parse_variant(number, area, size))
            .collect::<std::result::Result<Vec<_>, _>>()?;
        if let Some(head) = heads.iter().find(|head| head.file_size != size) {
            return Err(Failure::failed(format!(
                "the manifest of an image should name its size, {} bytes, and names {size}.",
                head.file_size
            )));
        }
        let all = std::iter::once(HEAD_OFFSET as u64..(HEAD_OFFSET + HEAD_AREA) as u64).chain(heads.iter().flat_map(
            |head| {
                [
                    head.tables_offset..head.tables_offset + head.tables_size,
                    head.answers_offset..head.answers_offset + head.answers_size,
                ]
            },
        ));
        let mut front: Vec<Range<u64>> = all.filter(|range| !range.is_empty()).collect();
        front.sort_by_key(|range| range.start);
        let (mut rest, mut at) = (Vec::new(), 0);
        for range in &front {
            if range.start < at || range.end > size {
                return Err(wrong("its parts overlap"));
            }
            rest.push(at..range.start);
            at = range.end;
        }
        rest.push(at..size);
        rest.retain(|range| !range.is_empty());
        let pages = heads.iter().map(|head| head.pages_offset..head.pages_offset + head.pages_size).collect();
        Ok(Parts { front, rest, pages })
    }

    /// Exchanges what has moved in the data pages among these bytes. `offset`: where they lie in the image.
    fn exchange(&self, offset: u64, bytes: &mut [u8], moved: &[Vec<Moved>]) {
        let behind = offset + bytes.len() as u64;
        for (pages, moved) in self.pages.iter().zip(moved) {
            let (start, end) = (pages.start.max(offset), pages.end.min(behind));
            if start < end {
                exchange(&mut bytes[(start - offset) as usize..(end - offset) as usize], moved);
            }
        }
    }
}

fn packed(ranges: &[Range<u64>], bytes: &[u8], prefix: &[u8]) -> Result<Vec<u8>> {
    let window = ((bytes.len() + prefix.len()) as u64).next_power_of_two().ilog2().min(MOST_WINDOW);
    let parts = ranges.iter().map(|range| &bytes[range.start as usize..range.end as usize]);
    let pack = || {
        let mut encoder = zstd::stream::write::Encoder::with_ref_prefix(Vec::new(), LEVEL, prefix)?;
        encoder.set_parameter(CParameter::WindowLog(window))?;
        encoder.set_parameter(CParameter::EnableLongDistanceMatching(true))?;
        for part in parts {
            encoder.write_all(part)?;
        }
        encoder.finish()
    };
    pack().map_err(|error: std::io::Error| {
        Failure::failed(format!("cannot compress a difference: {}.", failure::reason(&error)))
    })
}

/// `most`: how many bytes there are at most.
fn unpacked(stored: &[u8], before: &Before, most: u64) -> Result<Vec<u8>> {
    let unpack = || {
        let mut decoder = zstd::stream::read::Decoder::with_ref_prefix(stored, &before.bytes)?;
        decoder.window_log_max(MOST_WINDOW)?;
        let mut bytes = Vec::new();
        decoder.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    unpack().map_err(|_: std::io::Error| wrong("it cannot be decompressed"))
}

fn split(ranges: &[Range<u64>], bytes: Vec<u8>) -> Result<Vec<(u64, Vec<u8>)>> {
    if ranges.iter().map(|range| range.end - range.start).sum::<u64>() != bytes.len() as u64 {
        return Err(wrong("it has another size"));
    }
    let mut bytes = &bytes[..];
    let split_off = |range: &Range<u64>| {
        let (piece, behind) = bytes.split_at((range.end - range.start) as usize);
        bytes = behind;
        (range.start, piece.to_vec())
    };
    Ok(ranges.iter().map(split_off).collect())
}

fn wrong(why: &str) -> Failure {
    Failure::failed(format!("the difference between two images is of no use: {why}."))
}
