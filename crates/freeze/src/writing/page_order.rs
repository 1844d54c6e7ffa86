//! Orders the data pages: those that every start needs come first.
//!
//! The freezer writes pages in address order. The kernel reads ahead when it executes a file, so an image that is not
//! in memory starts faster if the launcher is followed by the tables, and then by the mappings that a start touches
//! most.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use image::{Mapping, TouchedFileRange, TouchedRange, PAGE};

/// Parts of the file closer than this are read at once (bytes).
const GAP: u64 = 32 * 1024;

/// The place of each mapping's pages.
pub struct PageOrder {
    /// All mappings, in the order of the dump, with their new offsets.
    pub mappings: Vec<Mapping>,
    /// The parts that a start touches.
    pub touched: Vec<TouchedRange>,
    /// Old offset, new offset and size of each part, in the new order.
    moves: Vec<(u64, u64, u64)>,
}

impl PageOrder {
    /// `touched` are the old offsets of the pages that a start touches; `start` is the first new offset.
    pub fn new(mappings: Vec<Mapping>, touched: &[u64], start: u64) -> Self {
        let mut touched = touched.to_vec();
        touched.sort_unstable();
        touched.dedup();
        let count = |offset: u64, size: u64| {
            let until = |end| touched.partition_point(|page| *page < end);
            (until(offset + size) - until(offset)) as u64
        };
        let mut parts: Vec<(u64, u64)> =
            mappings.iter().filter(|row| row.has_pages()).map(|row| (row.offset, row.end - row.start)).collect();
        parts.sort_unstable();
        parts.dedup();
        // Thousandths: parts without any touched page come last, and equal ones keep their order.
        parts.sort_by_key(|(offset, size)| Reverse(count(*offset, *size) * PAGE * 1000 / size));
        let mut next = start;
        let mut moves = Vec::with_capacity(parts.len());
        for (offset, size) in parts {
            moves.push((offset, next, size));
            next += size;
        }
        let mut order = PageOrder { mappings, touched: Vec::new(), moves };
        let moved: Vec<u64> = touched.iter().filter_map(|page| order.moved(*page)).collect();
        order.touched = joined(moved);
        for index in 0..order.mappings.len() {
            let row = order.mappings[index];
            if row.has_pages() {
                order.mappings[index].offset = order.moved(row.offset).unwrap_or(row.offset);
            }
        }
        order
    }

    /// Copies the pages from one file to their new offsets in another, which is positioned at the first of them.
    pub fn copy(&self, mut from: &File, mut to: &File) -> io::Result<()> {
        for (old, new, size) in &self.moves {
            from.seek(SeekFrom::Start(*old))?;
            to.seek(SeekFrom::Start(*new))?;
            let copied = io::copy(&mut from.take(*size), &mut to)?;
            if copied != *size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// Size of all pages together (bytes).
    pub fn size(&self) -> u64 {
        self.moves.iter().map(|(_, _, size)| size).sum()
    }

    fn moved(&self, old: u64) -> Option<u64> {
        let inside = |(start, _, size): &&(u64, u64, u64)| (*start..start + size).contains(&old);
        self.moves.iter().find(inside).map(|(start, new, _)| old - start + new)
    }
}

/// Joins pages to ranges.
fn joined(mut pages: Vec<u64>) -> Vec<TouchedRange> {
    pages.sort_unstable();
    let mut ranges: Vec<TouchedRange> = Vec::new();
    for offset in pages {
        match ranges.last_mut() {
            Some(last) if offset - (last.offset + last.size) <= GAP => last.size = offset + PAGE - last.offset,
            _ => ranges.push(TouchedRange { offset, size: PAGE }),
        }
    }
    ranges
}

/// Joins pages of files, given by row of the files section and offset, to ranges.
pub fn ranges_of_files(pages: &BTreeSet<(u32, u64)>) -> Vec<TouchedFileRange> {
    let pages: Vec<_> = pages.iter().copied().collect();
    let ranges_of_one = |pages: &[(u32, u64)]| {
        let file = pages[0].0;
        joined(pages.iter().map(|(_, offset)| *offset).collect()).into_iter().map(move |range| TouchedFileRange {
            offset: range.offset,
            size: range.size,
            file,
            reserved: 0,
        })
    };
    pages.chunk_by(|one, next| one.0 == next.0).flat_map(ranges_of_one).collect()
}

#[cfg(test)]
mod tests {
    use image::mapping_kind;

    use super::*;
    use std::os::unix::fs::FileExt;

    fn row(kind: u32, offset: u64, pages: u64) -> Mapping {
        Mapping { start: 0x10000, end: 0x10000 + pages * PAGE, offset, kind, ..Mapping::default() }
    }

    #[test]
    fn touched_mappings_come_first_and_keep_their_bytes() {
        let rows = vec![
            row(mapping_kind::IMAGE, 0, 4),
            row(mapping_kind::FILE, 0, 1),
            row(mapping_kind::COPY, 4 * PAGE, 1),
            row(mapping_kind::IMAGE, 5 * PAGE, 2),
        ];
        let order = PageOrder::new(rows, &[5 * PAGE, 0, 6 * PAGE], 3 * PAGE);
        let offsets: Vec<u64> = order.mappings.iter().map(|row| row.offset / PAGE).collect();
        assert_eq!(offsets, [5, 0, 9, 3]);
        assert_eq!(order.size(), 7 * PAGE);
        assert_eq!(
            order.touched.iter().map(|range| (range.offset / PAGE, range.size / PAGE)).collect::<Vec<_>>(),
            [(3, 3)]
        );
        let (from, to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        for page in 0..7 {
            from.write_all_at(&[page as u8 + 1; PAGE as usize], page * PAGE).unwrap();
        }
        order.copy(&from, &to).unwrap();
        let mut all = [0; 10 * PAGE as usize];
        to.read_exact_at(&mut all, 0).unwrap();
        assert_eq!(all.chunks(PAGE as usize).map(|page| page[7]).collect::<Vec<_>>(), [0, 0, 0, 6, 7, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn pages_near_each_other_are_read_together() {
        let pages = vec![0, 3 * GAP, GAP / 2];
        let joined: Vec<_> = joined(pages).iter().map(|range| (range.offset, range.size)).collect();
        assert_eq!(joined, [(0, GAP / 2 + PAGE), (3 * GAP, PAGE)]);
    }

    #[test]
    fn near_pages_of_a_file_are_one_range() {
        let pages = [(0, 0), (0, PAGE), (0, 3 * PAGE), (0, 64 * PAGE), (2, 65 * PAGE)];
        let ranges = ranges_of_files(&pages.into());
        let seen: Vec<_> = ranges.iter().map(|range| (range.file, range.offset / PAGE, range.size / PAGE)).collect();
        assert_eq!(seen, [(0, 0, 4), (0, 64, 1), (2, 65, 1)]);
    }
}
