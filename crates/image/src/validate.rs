//! Checks of rows that were read: after them, a row's addresses, offsets and indices may be used.

use crate::{
    mapping_kind, Descriptor, Error, Head, HotRange, Mapping, Process, Record, Section, SignalAction, Tables,
    TouchedRange, NO_FILE, PAGE, RESERVED_END, RESERVED_START,
};

/// End of the addresses that a process has on x86-64 with four-level page tables.
pub const ADDRESS_END: u64 = 0x7fff_ffff_f000;

/// More than a process can have open unless an administrator raised the limit.
pub const MOST_DESCRIPTORS: u32 = 1 << 20;

/// Checks every mapping, descriptor and signal row, and the process row.
pub fn rows(tables: &Tables<'_>, head: &Head) -> Result<(), Error> {
    let files = tables.bytes(Section::Files).len() / crate::MappedFile::SIZE;
    for mapping in tables.rows::<Mapping>(Section::Mappings)? {
        check_mapping(&mapping, head, files)?;
    }
    for descriptor in tables.rows::<Descriptor>(Section::Descriptors)? {
        // 0 to 2 are the new process' own.
        within("a descriptor number", descriptor.number, 3, MOST_DESCRIPTORS)?;
        within("the number of a pipe's other end", descriptor.peer, 0, MOST_DESCRIPTORS)?;
        tables.text(descriptor.path)?;
    }
    for hot in tables.rows::<HotRange>(Section::Hot)? {
        range("a hot range", hot.start, hot.end)?;
    }
    for touched in tables.rows::<TouchedRange>(Section::Touched)? {
        in_data_pages("the offset of a touched range", touched.offset, touched.size, head)?;
    }
    let mut seen = 0u64;
    for action in tables.rows::<SignalAction>(Section::Signals)? {
        within("a signal number", action.number, 1, 64)?;
        let bit = 1 << (action.number - 1);
        if seen & bit != 0 {
            return Err(Error::OutOfRange {
                what: "the number of a second action for a signal",
                value: action.number.into(),
            });
        }
        seen |= bit;
    }
    let process: Process = tables.one(Section::Process)?;
    range("the argv area", process.arg_start, process.env_end)?;
    range("the heap", process.start_brk, process.brk)?;
    for address in [process.tid_address, process.robust_list, process.stack_end] {
        at_most("an address of the process", address, ADDRESS_END)?;
    }
    Ok(())
}

fn check_mapping(mapping: &Mapping, head: &Head, files: usize) -> Result<(), Error> {
    let size = mapping.end.wrapping_sub(mapping.start);
    if !mapping.start.is_multiple_of(PAGE)
        || !mapping.end.is_multiple_of(PAGE)
        || !mapping.offset.is_multiple_of(PAGE)
        || mapping.start >= mapping.end
    {
        return Err(Error::OutOfRange { what: "the start or end of a mapping", value: mapping.start });
    }
    at_most("the end of a mapping", mapping.end, ADDRESS_END)?;
    if mapping.start < RESERVED_END && mapping.end > RESERVED_START {
        return Err(Error::OutOfRange { what: "the start of a mapping", value: mapping.start });
    }
    at_most("the protection of a mapping", mapping.protection.into(), 7)?;
    match mapping.kind {
        mapping_kind::IMAGE | mapping_kind::COPY => {
            in_data_pages("the offset of a mapping", mapping.offset, size, head)?;
        }
        mapping_kind::FILE => at_most("the file of a mapping", mapping.file.into(), (files as u64).wrapping_sub(1))?,
        mapping_kind::ANONYMOUS | mapping_kind::STACK | mapping_kind::VDSO => {}
        kind => return Err(Error::OutOfRange { what: "the kind of a mapping", value: kind.into() }),
    }
    if mapping.file != NO_FILE {
        at_most("the file of a mapping", mapping.file.into(), (files as u64).wrapping_sub(1))?;
    }
    Ok(())
}

fn in_data_pages(what: &'static str, offset: u64, size: u64, head: &Head) -> Result<(), Error> {
    if offset < head.pages_offset || offset.saturating_add(size) > head.pages_offset + head.pages_size {
        return Err(Error::OutOfRange { what, value: offset });
    }
    Ok(())
}

fn within(what: &'static str, value: u32, least: u32, limit: u32) -> Result<(), Error> {
    if value < least || value > limit {
        return Err(Error::OutOfRange { what, value: value.into() });
    }
    Ok(())
}

fn at_most(what: &'static str, value: u64, limit: u64) -> Result<(), Error> {
    if value > limit {
        return Err(Error::OutOfRange { what, value });
    }
    Ok(())
}

fn range(what: &'static str, start: u64, end: u64) -> Result<(), Error> {
    if start > end || end > ADDRESS_END || (start < RESERVED_END && end > RESERVED_START) {
        return Err(Error::OutOfRange { what, value: start });
    }
    Ok(())
}
