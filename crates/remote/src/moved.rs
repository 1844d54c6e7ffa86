//! Where the memory of two boots lies, and by how much one is moved against the other. The kernel draws new places for the program, the heap, the
//! libraries and the stack at each start, so an address in one image means what another one means in the next.

use std::collections::BTreeMap;
use std::ops::Range;

use failure::Result;
use image::{mapping_kind, MappedFile, Mapping, Section, Tables, NO_FILE};
use serde::{Deserialize, Serialize};

/// Mappings that are further apart belong to areas that move by themselves (bytes).
const GAP: u64 = 1 << 20;
/// What lies closer below an area with files moves with it, since the kernel has placed both from there downwards (bytes).
const NEAR: u64 = 1 << 40;

/// Addresses of an image, and how far they lie above those of the image before that mean the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The addresses.
    pub area: Range<u64>,
    /// The distance; negative if they lie below.
    pub by: i64,
}

impl Moved {
    /// The addresses of the image before.
    fn before(&self) -> Range<u64> {
        self.area.start.wrapping_add_signed(-self.by)..self.area.end.wrapping_add_signed(-self.by)
    }
}

/// Exchanges the addresses of moved areas in these words with those of the image before. Doing it twice changes nothing, if no moved area
/// lies where another one was before: see [`areas`].
pub fn exchange(words: &mut [u8], moved: &[Moved]) {
    let ranges: Vec<_> = moved.iter().map(|moved| (moved.area.clone(), moved.before(), moved.by)).collect();
    for word in words.chunks_exact_mut(8) {
        let value = u64::from_le_bytes(word.try_into().unwrap_or_default());
        for (area, before, by) in &ranges {
            if area.contains(&value) {
                word.copy_from_slice(&value.wrapping_add_signed(-by).to_le_bytes());
                break;
            }
            if before.contains(&value) {
                word.copy_from_slice(&value.wrapping_add_signed(*by).to_le_bytes());
                break;
            }
        }
    }
}

/// The areas of an image that have moved against another image, lowest first. No address is in two of them, be it now or before.
pub fn areas(new: &Tables<'_>, before: &Tables<'_>) -> Result<Vec<Moved>> {
    let (new, before) = (Area::all(new)?, Area::all(before)?);
    let places: BTreeMap<_, u64> =
        before.iter().flat_map(|area| &area.files).map(|(file, start)| (file, *start)).collect();
    let by_files = |area: &Area| {
        let shared = area.files.iter().find_map(|(file, start)| Some((start, places.get(file)?)));
        shared.map(|(start, before)| start.wrapping_sub(*before) as i64)
    };
    let mut found: Vec<(usize, i64)> = Vec::new();
    let mut alone = Vec::new();
    // From above, so that what lies below an area knows how far that has moved.
    for (number, area) in new.iter().enumerate().rev() {
        let above = found.last().filter(|(above, _)| new[*above].range.start - area.range.end < NEAR);
        match by_files(area).or(above.filter(|_| !area.is_stack).map(|(_, by)| *by)) {
            Some(by) => found.push((number, by)),
            None => alone.push(area),
        }
    }
    let mut moved: Vec<Moved> =
        found.iter().map(|(number, by)| Moved { area: new[*number].range.clone(), by: *by }).collect();
    // The heap and the stack: what holds no file and lies near none.
    for is_stack in [true, false] {
        let is_like = |area: &&Area| area.is_stack == is_stack && area.files.is_empty();
        let lone = before.iter().find(|area| is_like(area) && !near_files(&before, area));
        if let (Some(area), Some(before)) = (alone.iter().find(|area| area.is_stack == is_stack), lone) {
            // A stack grows downwards.
            let (now, then) =
                if is_stack { (area.range.end, before.range.end) } else { (area.range.start, before.range.start) };
            moved.push(Moved { area: area.range.clone(), by: now.wrapping_sub(then) as i64 });
        }
    }
    moved.retain(|moved| moved.by != 0);
    moved.sort_by_key(|moved| moved.area.start);
    Ok(without_overlaps(joined(moved)))
}

/// Whether an area without files lies below one that has some, and not far.
fn near_files(areas: &[Area], area: &Area) -> bool {
    areas.iter().any(|other| {
        !other.files.is_empty() && other.range.start >= area.range.end && other.range.start - area.range.end < NEAR
    })
}

/// Areas that follow each other and have moved alike become one.
fn joined(moved: Vec<Moved>) -> Vec<Moved> {
    let mut joined: Vec<Moved> = Vec::new();
    for next in moved {
        match joined.last_mut() {
            Some(last) if last.by == next.by => last.area.end = next.area.end,
            _ => joined.push(next),
        }
    }
    joined
}

/// Without those that lie where another one, or they themselves, lay before.
fn without_overlaps(moved: Vec<Moved>) -> Vec<Moved> {
    let mut kept: Vec<Moved> = Vec::new();
    for next in moved {
        let taken = kept.iter().flat_map(|kept| [kept.area.clone(), kept.before()]);
        let own = [next.area.clone(), next.before()];
        let meets = |one: &Range<u64>, other: &Range<u64>| one.start < other.end && other.start < one.end;
        if !meets(&own[0], &own[1]) && !taken.into_iter().any(|taken| own.iter().any(|own| meets(own, &taken))) {
            kept.push(next);
        }
    }
    kept
}

/// Mappings that lie close together.
struct Area {
    range: Range<u64>,
    /// The mapped parts of files, path and offset, and their addresses.
    files: BTreeMap<(Vec<u8>, u64), u64>,
    is_stack: bool,
}

impl Area {
    /// Those of a frozen process, lowest first.
    fn all(tables: &Tables<'_>) -> Result<Vec<Area>> {
        let files: Vec<MappedFile> = tables.rows(Section::Files)?.collect();
        let mut rows: Vec<Mapping> = tables.rows(Section::Mappings)?.collect();
        rows.sort_by_key(|row| row.start);
        let mut areas: Vec<Area> = Vec::new();
        for row in rows {
            let is_stack = row.kind == mapping_kind::STACK;
            if areas.last().is_none_or(|last| row.start > last.range.end.saturating_add(GAP) || is_stack) {
                areas.push(Area { range: row.start..row.end, files: BTreeMap::new(), is_stack });
            }
            if let Some(area) = areas.last_mut() {
                area.range.end = area.range.end.max(row.end);
                if row.file != NO_FILE && row.kind == mapping_kind::FILE {
                    if let Some(file) = files.get(row.file as usize) {
                        area.files.insert((tables.text(file.path)?.to_vec(), row.offset), row.start);
                    }
                }
            }
        }
        Ok(areas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(start: u64, end: u64, by: i64) -> Moved {
        Moved { area: start..end, by }
    }

    #[test]
    fn exchanging_twice_changes_nothing() {
        let areas = [moved(0x5000, 0x6000, 0x1000_0000), moved(0x7000_0000, 0x7000_9000, -0x100_0000)];
        let areas = without_overlaps(areas.to_vec());
        assert_eq!(areas.len(), 2);
        let before: Vec<u64> = areas.iter().map(|area| area.before().start).collect();
        let words = [0, 0x5000, 0x5fff, 0x6000, before[0], before[1] + 7, 0x7000_8fff, u64::MAX];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).chain([9, 9]).collect();
        let mut exchanged = bytes.clone();
        exchange(&mut exchanged, &areas);
        assert_eq!(exchanged[8..16], before[0].to_le_bytes());
        assert_eq!(exchanged[24..32], words[3].to_le_bytes());
        assert_eq!(exchanged[32..40], words[1].to_le_bytes());
        exchange(&mut exchanged, &areas);
        assert_eq!(exchanged, bytes);
    }

    #[test]
    fn no_address_is_in_two_areas() {
        let one = moved(0x10000, 0x20000, 0x40000);
        for other in
            [moved(0x1f000, 0x21000, 0x800000), moved(0x90000, 0xa0000, 0x80000), moved(0x50000, 0x51000, 0x3f000)]
        {
            assert_eq!(without_overlaps(vec![one.clone(), other]), std::slice::from_ref(&one));
        }
        assert_eq!(without_overlaps(vec![moved(0x10000, 0x20000, 0x8000)]), []);
    }

    #[test]
    fn neighbours_that_moved_alike_are_one_area() {
        let one = joined(vec![moved(0x1000, 0x2000, 9), moved(0x5000, 0x6000, 9), moved(0x7000, 0x8000, 7)]);
        assert_eq!(one, [moved(0x1000, 0x6000, 9), moved(0x7000, 0x8000, 7)]);
    }
}
