//! The contents of a thawed process' pages: a library, the heap, the interpreter's objects, the stack, new memory.

use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use image::{mapping_kind, MappedFile, Mapping, Process, Section, NO_FILE, RESERVED_END, RESERVED_START};
use image_file::Variant;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::LittleEndian;

use super::pages::{Region, PAGE};

/// The beginning of a file that holds its program headers (bytes).
const HEADERS: usize = 4096;
/// PROT_WRITE.
const WRITE: u32 = 2;

/// The names of ranges of addresses.
pub struct Holders {
    /// In order, by first address.
    ranges: Vec<(Range<u64>, String)>,
    heap: Range<u64>,
}

impl Holders {
    /// The ranges of a frozen process, from the tables of its image.
    pub fn from_tables(variant: &Variant) -> Result<Holders, image::Error> {
        let tables = variant.tables();
        let files: Vec<String> = tables
            .rows::<MappedFile>(Section::Files)?
            .map(|file| Ok(String::from_utf8_lossy(tables.text(file.path)?).into_owned()))
            .collect::<Result<_, image::Error>>()?;
        let process: Process = tables.one(Section::Process)?;
        let heap = process.start_brk..process.brk.next_multiple_of(PAGE);
        let (mut zeroed, mut seen) = (Vec::new(), BTreeSet::new());
        for row in tables.rows::<Mapping>(Section::Mappings)?.filter(|row| row.kind == mapping_kind::FILE) {
            if let Some(path) = files.get(row.file as usize) {
                if seen.insert(row.file) {
                    let zeros = zeros_of(Path::new(path), &row).unwrap_or_default();
                    zeroed.extend(zeros.into_iter().map(|zeros| (zeros, path.clone())));
                }
            }
        }
        let name = |row: &Mapping| match files.get(row.file as usize).filter(|_| row.file != NO_FILE) {
            Some(path) => path.clone(),
            None if heap.contains(&row.start) => "heap".to_owned(),
            None if row.kind == mapping_kind::STACK => "stack".to_owned(),
            None if row.protection & WRITE == 0 => "code and constants of no file".to_owned(),
            None => "objects, arenas".to_owned(),
        };
        let mut ranges: Vec<_> = tables
            .rows::<Mapping>(Section::Mappings)?
            // A copy overwrites memory of an earlier row; pages of the vdso cause no faults.
            .filter(|row| !matches!(row.kind, mapping_kind::COPY | mapping_kind::VDSO | mapping_kind::VDSO_COPY))
            .map(|row| (row.start..row.end, name(&row)))
            .collect();
        ranges.sort_by_key(|(range, _)| range.start);
        Ok(Holders { ranges: zeroed.into_iter().fold(ranges, replace), heap })
    }

    /// The name of a page's contents. `region`: the mapping that it is in now.
    pub fn name(&self, address: u64, region: &Region) -> String {
        let after = self.ranges.partition_point(|(range, _)| range.start <= address);
        let known = after.checked_sub(1).map(|index| &self.ranges[index]).filter(|(range, _)| range.contains(&address));
        let text = match (known, region.name.as_str()) {
            (Some((_, name)), _) => name,
            (None, "[heap]") => "heap",
            (None, "[stack]") => "stack",
            _ if self.heap.contains(&address) => "heap",
            _ if (RESERVED_START..RESERVED_END).contains(&address) => "arguments and environment",
            (None, file) if file.starts_with('/') => file,
            _ => "new memory",
        };
        text.to_owned()
    }
}

/// Gives a range inside others a name of its own.
fn replace(ranges: Vec<(Range<u64>, String)>, (zeros, name): (Range<u64>, String)) -> Vec<(Range<u64>, String)> {
    let mut all = Vec::with_capacity(ranges.len());
    for (range, old) in ranges {
        let (start, end) = (zeros.start.clamp(range.start, range.end), zeros.end.clamp(range.start, range.end));
        let parts = [(range.start..start, old.clone()), (start..end, name.clone()), (end..range.end, old)];
        all.extend(parts.into_iter().filter(|(part, _)| !part.is_empty()));
    }
    all
}

/// The zero pages of a library that are not in its file, which is mapped as `row` says. None if it is no library.
fn zeros_of(path: &Path, row: &Mapping) -> Option<Vec<Range<u64>>> {
    let mut start = vec![0; HEADERS];
    let size = trust::look::open(path).ok()?.read_at(&mut start, 0).ok()?;
    zeros_in(&start[..size], row)
}

/// `file`: its beginning.
fn zeros_in(file: &[u8], row: &Mapping) -> Option<Vec<Range<u64>>> {
    let headers = FileHeader64::<LittleEndian>::parse(file).ok()?.program_headers(LittleEndian, file).ok()?;
    let of = |header: &object::elf::ProgramHeader64<LittleEndian>| {
        (header.p_offset(LittleEndian), header.p_vaddr(LittleEndian), header.p_filesz(LittleEndian))
    };
    let loaded = || headers.iter().filter(|header| header.p_type(LittleEndian) == PT_LOAD);
    let mapped = loaded()
        .map(of)
        .find(|(offset, _, size)| (offset / PAGE * PAGE..offset.saturating_add(*size)).contains(&row.offset))?;
    let base = row.start.wrapping_sub(row.offset).wrapping_sub(mapped.1.wrapping_sub(mapped.0));
    let zeros = |header: &object::elf::ProgramHeader64<LittleEndian>| {
        let ((_, address, size), all) = (of(header), header.p_memsz(LittleEndian));
        let page = |size| base.wrapping_add(address).checked_add(size)?.checked_next_multiple_of(PAGE);
        Some(page(size)?..page(all)?).filter(|range: &Range<u64>| !range.is_empty())
    };
    Some(loaded().filter_map(zeros).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::*;

    #[test]
    fn a_range_in_others_has_a_name_of_its_own() {
        let ranges = vec![(0..10, "a".to_owned()), (10..20, "b".to_owned()), (30..40, "c".to_owned())];
        let replaced = replace(ranges, (8..15, "x".to_owned()));
        let names: Vec<_> = replaced.iter().map(|(range, name)| (range.clone(), name.as_str())).collect();
        assert_eq!(names, [(0..8, "a"), (8..10, "x"), (10..15, "x"), (15..20, "b"), (30..40, "c")]);
    }

    #[test]
    fn zeros_of_this_program_are_where_the_kernel_has_mapped_it() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let start = u64::from_str_radix(maps.split('-').next().unwrap(), 16).unwrap();
        let row = Mapping { start, end: start + PAGE, ..Mapping::default() };
        static ZEROS: [AtomicU8; 64 * PAGE as usize] = [const { AtomicU8::new(0) }; 64 * PAGE as usize];
        ZEROS[0].store(0, Ordering::Relaxed);
        let inside = ZEROS.as_ptr() as u64 + 32 * PAGE;
        let zeros = zeros_in(&own[..HEADERS], &row).unwrap();
        assert!(zeros.iter().any(|zeros| zeros.contains(&inside)), "{zeros:x?} {inside:x}");
    }
}
