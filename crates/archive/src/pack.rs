//! Compressed payloads, many of them in one block: payloads of one boot are alike, and compress better together.
//!
//! A block's plain content is its payloads in sequence, each at a multiple of 4. Compiled code has tables of ascending 32-bit numbers,
//! which hardly compress. They are stored as differences: all lowest bytes first, then all second ones, and so on.

use std::borrow::Cow;

use record::Record;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::CParameter;

use crate::checksum;
use crate::entry::Entry;
use crate::map::Mapped;
use crate::records::{encoding, BlockHead, Run};
use crate::{MAX_BLOCK, MAX_PAYLOAD};

/// The level of compression. A higher one makes a first boot slower and saves little.
const LEVEL: i32 = 3;
/// Changes to that level: shorter matches, which are frequent in code, and tables that stay in the CPU's cache. Larger ones would make an
/// archive 0.3 % smaller and take a quarter longer.
const PARAMETERS: [CParameter; 3] = [CParameter::HashLog(16), CParameter::ChainLog(16), CParameter::MinMatch(4)];

/// A table with fewer numbers than this stays as it is.
const SHORTEST_RUN: usize = 8;

/// The largest difference within a table.
const WIDEST_STEP: u32 = 0xffff;

/// How many blocks a decoder keeps.
const KEPT: usize = 4;

/// The position of a payload among the blocks of a [`Packer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the block.
    pub block: usize,
    /// The payload's offset in its plain content (bytes).
    pub offset: u32,
}

/// Makes blocks of payloads, in the order of their arrival.
#[derive(Default)]
pub(crate) struct Packer<'a> {
    zstd: Option<Compressor<'static>>,
    open: Vec<u8>,
    closed: Vec<Block<'a>>,
    /// Payloads in the open block.
    payloads: usize,
}

struct Block<'a> {
    bytes: Cow<'a, [u8]>,
    /// Number of payloads that are still wanted.
    payloads: usize,
}

impl<'a> Packer<'a> {
    /// A block is closed at this size before compression (bytes): large enough to compress well, small enough to decode for one payload.
    pub const FULL: usize = 400 << 10;

    /// The space of a payload in a block (bytes).
    pub fn room(payload_size: usize) -> usize {
        payload_size.next_multiple_of(4)
    }

    /// Adds a payload. `None` if it is too large for a block.
    pub fn add(&mut self, payload: &[u8]) -> Option<Place> {
        if payload.len() as u64 > MAX_BLOCK / 2 {
            return None;
        }
        let place = Place { block: self.closed.len(), offset: self.open.len() as u32 };
        self.payloads += 1;
        self.open.extend_from_slice(payload);
        self.open.resize(place.offset as usize + Self::room(payload.len()), 0);
        if self.open.len() >= Self::FULL {
            self.close()?;
        }
        Some(place)
    }

    /// Adds a block of another archive as it is. Returns its number.
    pub fn keep(&mut self, block: &'a [u8]) -> Option<usize> {
        self.close()?;
        self.closed.push(Block { bytes: block.into(), payloads: usize::MAX });
        Some(self.closed.len() - 1)
    }

    /// Drops a payload. A closed block is dropped with its last payload.
    pub fn forget(&mut self, place: Place) {
        let Some(block) = self.closed.get_mut(place.block) else { return };
        block.payloads -= 1;
        if block.payloads == 0 {
            block.bytes = Cow::Borrowed(b"");
        }
    }

    /// All blocks, each with its head.
    pub fn finish(&mut self) -> Option<Vec<Cow<'a, [u8]>>> {
        self.close()?;
        Some(self.closed.drain(..).map(|block| block.bytes).collect())
    }

    fn close(&mut self) -> Option<()> {
        if self.open.is_empty() {
            return Some(());
        }
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            none => none.insert(compressor()?),
        };
        let plain_size = self.open.len() as u32;
        let runs = split(&mut self.open);
        let start = self.open.len();
        self.open.resize(start + runs.len() * Run::SIZE, 0);
        runs.iter().zip(self.open[start..].chunks_exact_mut(Run::SIZE)).for_each(|(run, room)| run.encode(room));
        let frame = zstd.compress(&self.open).ok()?;
        self.open.clear();
        let head = BlockHead { block_sum: 0, size: frame.len() as u32, plain_size, runs: runs.len() as u32 };
        let mut block = vec![0; BlockHead::SIZE];
        head.encode(&mut block);
        block.extend_from_slice(&frame);
        BlockHead { block_sum: checksum(&block[4..]), ..head }.encode(&mut block);
        self.closed.push(Block { bytes: block.into(), payloads: std::mem::take(&mut self.payloads) });
        Some(())
    }
}

fn compressor() -> Option<Compressor<'static>> {
    let mut compressor = Compressor::new(LEVEL).ok()?;
    PARAMETERS.into_iter().try_for_each(|parameter| compressor.set_parameter(parameter)).ok()?;
    Some(compressor)
}

/// Decodes payloads of archives one after the other. It keeps the most recently decoded blocks.
#[derive(Default)]
pub struct Decoder<'a> {
    zstd: Option<Decompressor<'static>>,
    /// A mapping whose blocks are not read again once they are decoded.
    mapped: Option<&'a Mapped>,
    /// Most recently used first.
    kept: Vec<Decoded<'a>>,
}

struct Decoded<'a> {
    block: &'a [u8],
    plain: Vec<u8>,
}

impl<'a> Decoder<'a> {
    /// A decoder that returns the mapped memory to the kernel after decoding.
    pub(crate) fn releasing(mapped: &'a Mapped) -> Self {
        Decoder { mapped: Some(mapped), ..Decoder::default() }
    }

    /// The payload of an entry: in the mapping if it is stored plain, else in the decoder's memory, until the next call. `None` if it is
    /// damaged.
    pub fn decode(&mut self, entry: &Entry<'a>) -> Option<&[u8]> {
        match entry.encoding() {
            encoding::PLAIN => entry.plain(),
            encoding::PACKED => {
                let (block, packed) = entry.packed()?;
                let offset = packed.offset as usize;
                let plain = self.block(block)?.get(offset..offset.checked_add(entry.plain_size())?)?;
                (checksum(plain) == packed.plain_sum).then_some(plain)
            }
            _ => None,
        }
    }

    fn block(&mut self, block: &'a [u8]) -> Option<&[u8]> {
        match self.kept.iter().position(|kept| std::ptr::eq(kept.block, block)) {
            Some(at) => self.kept[..=at].rotate_right(1),
            None => {
                let mut plain = if self.kept.len() < KEPT { Vec::new() } else { self.kept.pop()?.plain };
                unpack(&mut self.zstd, block, &mut plain)?;
                if let Some(mapped) = self.mapped {
                    mapped.release(block);
                }
                self.kept.insert(0, Decoded { block, plain });
            }
        }
        Some(&self.kept.first()?.plain)
    }
}

/// Whether a block is undamaged, and worth copying if this many bytes of its plain content are still wanted.
pub(crate) fn is_nearly_full(block: &[u8], used: usize) -> bool {
    let Some(head) = head_of(block) else { return false };
    let size = head.plain_size as usize;
    size >= Packer::FULL / 2 && used >= size - size / 10
}

/// The head of a block with a correct checksum.
fn head_of(block: &[u8]) -> Option<BlockHead> {
    let head = BlockHead::decode(block.get(..BlockHead::SIZE)?);
    (checksum(&block[4..]) == head.block_sum).then_some(head)
}

/// Decodes a block into `plain`.
fn unpack(zstd: &mut Option<Decompressor<'static>>, block: &[u8], plain: &mut Vec<u8>) -> Option<()> {
    let head = head_of(block)?;
    let zstd = match zstd {
        Some(zstd) => zstd,
        none => none.insert(Decompressor::new().ok()?),
    };
    let size = (head.runs as usize).checked_mul(Run::SIZE)?.checked_add(head.plain_size as usize)?;
    if size as u64 > MAX_PAYLOAD {
        return None;
    }
    plain.clear();
    plain.reserve(size);
    zstd.decompress_to_buffer(&block[BlockHead::SIZE..], plain).ok()?;
    let (content, runs) = plain.split_at_mut_checked(head.plain_size as usize)?;
    if runs.len() != head.runs as usize * Run::SIZE {
        return None;
    }
    for run in runs.chunks_exact(Run::SIZE).map(Run::decode) {
        let start = run.offset as usize;
        let end = start.checked_add((run.count as usize).checked_mul(4)?)?;
        join_run(content.get_mut(start..end)?);
    }
    plain.truncate(head.plain_size as usize);
    Some(())
}

/// Turns every table of ascending numbers into differences, and returns their positions.
fn split(content: &mut [u8]) -> Vec<Run> {
    let (words, _) = content.as_chunks::<4>();
    let (mut runs, mut start) = (Vec::new(), 0);
    for at in 1..=words.len() {
        let goes_on = words.get(at).is_some_and(|word| {
            let step = u32::from_le_bytes(*word).wrapping_sub(u32::from_le_bytes(words[at - 1]));
            (1..=WIDEST_STEP).contains(&step)
        });
        if !goes_on {
            if at - start >= SHORTEST_RUN {
                runs.push(Run { offset: start as u32 * 4, count: (at - start) as u32 });
            }
            start = at;
        }
    }
    for run in &runs {
        split_run(&mut content[run.offset as usize..][..run.count as usize * 4]);
    }
    runs
}

/// Numbers to differences, their lowest bytes first.
fn split_run(bytes: &mut [u8]) {
    let (numbers, count) = (bytes.to_vec(), bytes.len() / 4);
    let mut last = 0;
    for (at, number) in numbers.as_chunks::<4>().0.iter().enumerate() {
        let number = u32::from_le_bytes(*number);
        for (plane, byte) in number.wrapping_sub(last).to_le_bytes().into_iter().enumerate() {
            bytes[plane * count + at] = byte;
        }
        last = number;
    }
}

/// Differences to numbers.
fn join_run(bytes: &mut [u8]) {
    let (planes, count) = (bytes.to_vec(), bytes.len() / 4);
    let mut last = 0u32;
    for (at, number) in bytes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let step = [planes[at], planes[count + at], planes[2 * count + at], planes[3 * count + at]];
        last = last.wrapping_add(u32::from_le_bytes(step));
        *number = last.to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(blocks: &[Cow<'_, [u8]>], place: Place, size: usize) -> Vec<u8> {
        let mut plain = Vec::new();
        unpack(&mut None, &blocks[place.block], &mut plain).unwrap();
        plain[place.offset as usize..][..size].to_vec()
    }

    #[test]
    fn payloads_come_out_as_they_went_in() {
        let mut packer = Packer::default();
        let mut random = fastrand::Rng::with_seed(1);
        let payloads: Vec<Vec<u8>> = (0..300)
            .map(|number| {
                let table = (0..number * 10).map(|at: u32| at * at / 5 + number);
                let noise = (0..random.usize(..3000)).map(|_| random.u8(..)).collect::<Vec<_>>();
                [table.flat_map(u32::to_le_bytes).collect(), noise].concat()
            })
            .collect();
        let places: Vec<Place> = payloads.iter().map(|payload| packer.add(payload).unwrap()).collect();
        let blocks = packer.finish().unwrap();
        assert!(blocks.len() > 3, "{}", blocks.len());
        for (payload, place) in payloads.iter().zip(places) {
            assert_eq!(decoded(&blocks, place, payload.len()), *payload);
        }
    }

    #[test]
    fn tables_of_ascending_numbers_get_small() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut last = 0;
        let table = std::iter::repeat_with(|| {
            last += random.u32(1..16);
            last
        });
        let payload: Vec<u8> = table.take(10_000).flat_map(u32::to_le_bytes).collect();
        let mut packer = Packer::default();
        let place = packer.add(&payload).unwrap();
        let blocks = packer.finish().unwrap();
        assert!(blocks[0].len() < payload.len() / 7, "{}", blocks[0].len());
        assert_eq!(decoded(&blocks, place, payload.len()), payload);
    }

    #[test]
    fn runs_of_any_shape_are_put_back() {
        let mut random = fastrand::Rng::with_seed(2);
        for _ in 0..2000 {
            let mut word = 0u32;
            let words = std::iter::repeat_with(|| {
                word = match random.u8(..8) {
                    0 => random.u32(..),
                    1 => word.wrapping_add(0xffff),
                    2 => word.wrapping_add(0x1_0000),
                    _ => word.wrapping_add(1),
                };
                word
            });
            let original: Vec<u8> = words.take(50).flat_map(u32::to_le_bytes).collect();
            let mut content = original.clone();
            for run in split(&mut content) {
                join_run(&mut content[run.offset as usize..][..run.count as usize * 4]);
            }
            assert_eq!(content, original);
        }
    }
}
