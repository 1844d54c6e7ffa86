//! Checks rows after reading, so that their addresses, offsets and indices may be used.

use crate::arch::Architecture;
use crate::{
    directory_flag, mapping_kind, policy, reserved, settings_flag, trained_kind, Capabilities, CpuLeaf, Descriptor,
    Directory, Error, FileLookup, Head, HotRange, Input, Mapping, Process, Section, Settings, SignalAction, Tables,
    TouchedFileRange, TouchedRange, TrainedStart, NO_FILE, PAGE, RESERVED_END, RESERVED_START,
};

pub use crate::arch::ADDRESS_END;

/// The kernel's default maximum of open descriptors, unless an administrator raised it.
pub const MAX_DESCRIPTORS: u32 = 1 << 20;

/// Space that the launcher has for the vvar and vdso group (bytes).
const VDSO_ROOM: u64 = reserved::LEFTOVER_END - reserved::VDSO;

/// PROT_WRITE and PROT_EXEC of the kernel.
const WRITE: u32 = 2;
const EXECUTE: u32 = 4;

/// Checks every mapping, descriptor and signal row, the process row and the registers.
pub fn rows(tables: &Tables<'_>, head: &Head) -> Result<(), Error> {
    let process: Process = tables.one(Section::Process)?;
    let architecture = Architecture::from_tables(tables)?;
    let end = architecture.address_end();
    range("the argv area", process.arg_start, process.env_end, end)?;
    range("the heap", process.start_brk, process.brk, end)?;
    for address in [process.tid_address, process.robust_list, process.stack_end] {
        at_most("an address of the process", address, end)?;
    }
    let mut needed = Needed::ranges(&process, architecture.resume_at(tables)?);
    let files = tables.rows::<crate::MappedFile>(Section::Files)?.len();
    for mapping in tables.rows::<Mapping>(Section::Mappings)? {
        check_mapping(&mapping, head, files, end)?;
        needed.iter_mut().for_each(|place| place.look_at(&mapping));
    }
    for place in needed {
        place.check()?;
    }
    for row in tables.rows::<Capabilities>(Section::Capabilities)? {
        check_capabilities(&row, tables)?;
    }
    for descriptor in tables.rows::<Descriptor>(Section::Descriptors)? {
        // 0 to 2 belong to the new process.
        within("a descriptor number", descriptor.number, 3, MAX_DESCRIPTORS)?;
        within("the number of a pipe's other end", descriptor.peer, 0, MAX_DESCRIPTORS)?;
        tables.text(descriptor.path)?;
    }
    let hot = tables.rows::<HotRange>(Section::Hot)?;
    let count = hot.len() as u64;
    for hot in hot {
        range("a hot range", hot.start, hot.end, end)?;
    }
    let mut trained = 0;
    for start in tables.rows::<TrainedStart>(Section::Trained)? {
        at_most("the kind of a trained start", start.kind.into(), trained_kind::OTHER.into())?;
        tables.text(start.argument)?;
        trained += u64::from(start.hot);
        at_most("the number of hot ranges of trained starts", trained, count)?;
    }
    // Without a row, an image would thaw on any CPU.
    tables.one::<CpuLeaf>(Section::Cpu)?;
    for settings in tables.rows::<Settings>(Section::Settings)? {
        at_most("the policy", settings.policy.into(), policy::TRUST.into())?;
        at_most("the flags of the settings", settings.flags.into(), settings_flag::CHECK_PAGES.into())?;
    }
    let inputs = tables.rows::<Input>(Section::Inputs)?.len();
    let mut before = 0;
    for lookup in tables.rows::<FileLookup>(Section::Lookups)? {
        within("the input of a look-up", lookup.input, before, (inputs as u32).saturating_sub(1))?;
        before = lookup.input;
    }
    let mut left = inputs;
    for directory in tables.rows::<Directory>(Section::Directories)? {
        left = left
            .checked_sub(directory.inputs as usize)
            .ok_or(Error::OutOfRange { what: "the number of inputs of a directory", value: directory.inputs.into() })?;
        at_most(
            "the flags of a directory",
            directory.flags.into(),
            (directory_flag::MAY_BE_ABSENT | directory_flag::DEEP).into(),
        )?;
        if directory.flags & directory_flag::MAY_BE_ABSENT != 0 && directory.inputs != 0 {
            return Err(Error::OutOfRange {
                what: "the number of inputs of a directory that may be absent",
                value: directory.inputs.into(),
            });
        }
        let end = directory.answers_offset.saturating_add(directory.answers_size);
        at_most("the end of a directory's answers", end, head.answers_size)?;
    }
    if left != 0 {
        return Err(Error::OutOfRange { what: "the number of inputs without a directory", value: left as u64 });
    }
    for touched in tables.rows::<TouchedRange>(Section::Touched)? {
        in_data_pages("the offset of a touched range", touched.offset, touched.size, head)?;
    }
    for touched in tables.rows::<TouchedFileRange>(Section::TouchedFiles)? {
        within("the file of a touched range", touched.file, 0, files.saturating_sub(1) as u32)?;
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
    Ok(())
}

fn check_capabilities(row: &Capabilities, tables: &Tables<'_>) -> Result<(), Error> {
    let (least, most) = Capabilities::SIZES;
    if row.size < least || row.size > most || !row.size.is_multiple_of(4) {
        return Err(Error::OutOfRange { what: "the size of the words about the CPU", value: row.size });
    }
    let mut needed = [
        Needed::range("the words about the CPU", row.words, row.size, WRITE),
        Needed::range("the function for the words about the CPU", row.function, 1, EXECUTE),
    ];
    for mapping in tables.rows::<Mapping>(Section::Mappings)? {
        needed.iter_mut().for_each(|place| place.look_at(&mapping));
    }
    needed.into_iter().try_for_each(Needed::check)
}

/// A range of memory that the launcher or the kernel uses before the frozen process does. If it were unmapped, the
/// launcher would crash instead of falling back.
struct Needed {
    what: &'static str,
    start: u64,
    end: u64,
    protection: u32,
    found: bool,
}

impl Needed {
    fn range(what: &'static str, start: u64, size: u64, protection: u32) -> Needed {
        // Nothing replaces an empty range.
        let end = if size == 0 { 0 } else { start.saturating_add(size) };
        Needed { what, start, end, protection, found: size == 0 }
    }

    fn ranges(process: &Process, (stack, instruction): (u64, u64)) -> [Needed; 5] {
        let place = Needed::range;
        // The launcher rewrites argv where the kernel put it: before the strings, unless these were moved.
        let strings = process.arg_start..process.env_end;
        let argv = process.start_stack..process.stack_end;
        let start = if argv.contains(&strings.start) { argv.start } else { strings.start };
        let rseq_size = if process.rseq_area == 0 { 0 } else { process.rseq_length };
        [
            place("the argv area", start, strings.end - start, WRITE),
            place("the place of the thread id", process.tid_address, 4, WRITE),
            place("the rseq area", process.rseq_area, rseq_size.into(), WRITE),
            place("the stack pointer", stack, 8, WRITE),
            place("the next instruction", instruction, 1, EXECUTE),
        ]
    }

    /// Later mappings replace earlier ones.
    fn look_at(&mut self, mapping: &Mapping) {
        let replaces = !matches!(mapping.kind, mapping_kind::COPY | mapping_kind::VDSO_COPY)
            && mapping.start < self.end
            && mapping.end > self.start;
        if replaces {
            let inside = mapping.start <= self.start && mapping.end >= self.end;
            // A file may be shorter than its mapping.
            let own = matches!(mapping.kind, mapping_kind::IMAGE | mapping_kind::ANONYMOUS | mapping_kind::STACK);
            self.found = inside && mapping.protection & self.protection != 0 && (own || self.protection != WRITE);
        }
    }

    fn check(self) -> Result<(), Error> {
        if self.found {
            return Ok(());
        }
        Err(Error::OutOfRange { what: self.what, value: self.start })
    }
}

fn check_mapping(mapping: &Mapping, head: &Head, files: usize, address_end: u64) -> Result<(), Error> {
    let size = mapping.end.wrapping_sub(mapping.start);
    if !mapping.start.is_multiple_of(PAGE)
        || !mapping.end.is_multiple_of(PAGE)
        || !mapping.offset.is_multiple_of(PAGE)
        || mapping.start >= mapping.end
    {
        return Err(Error::OutOfRange { what: "the start or end of a mapping", value: mapping.start });
    }
    at_most("the end of a mapping", mapping.end, address_end)?;
    if mapping.start < RESERVED_END && mapping.end > RESERVED_START {
        return Err(Error::OutOfRange { what: "the start of a mapping", value: mapping.start });
    }
    at_most("the protection of a mapping", mapping.protection.into(), 7)?;
    match mapping.kind {
        mapping_kind::IMAGE | mapping_kind::COPY | mapping_kind::VDSO_COPY => {
            in_data_pages("the offset of a mapping", mapping.offset, size, head)?;
        }
        // Moved to that distance from the group's temporary address.
        mapping_kind::VDSO => {
            at_most("the offset of a part of the vdso", mapping.offset.saturating_add(size), VDSO_ROOM)?;
        }
        mapping_kind::FILE | mapping_kind::ANONYMOUS | mapping_kind::STACK => {}
        kind => return Err(Error::OutOfRange { what: "the kind of a mapping", value: kind.into() }),
    }
    if (mapping.file != NO_FILE || mapping.kind == mapping_kind::FILE) && mapping.file as usize >= files {
        return Err(Error::OutOfRange { what: "the file of a mapping", value: mapping.file.into() });
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

fn range(what: &'static str, start: u64, end: u64, address_end: u64) -> Result<(), Error> {
    if start > end || end > address_end || (start < RESERVED_END && end > RESERVED_START) {
        return Err(Error::OutOfRange { what, value: start });
    }
    Ok(())
}
