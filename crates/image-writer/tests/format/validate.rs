//! The checks of rows: each test breaks one rule.

use image::arch::aarch64::Aarch64Registers;
use image::arch::x86_64::{Registers, ADDRESS_END};
use image::arch::Architecture;
use image::validate::{rows, MAX_DESCRIPTORS};
use image::*;
use image_writer::TablesWriter;

const HEAD: Head = {
    let (magic, pages_digest) = ([0; 8], [0; 16]);
    Head {
        magic,
        version: VERSION,
        command_count: 0,
        command_size: 0,
        command_sum: 0,
        file_size: 16 * PAGE,
        pages_offset: 8 * PAGE,
        pages_size: 4 * PAGE,
        pages_digest,
        tables_offset: 12 * PAGE,
        tables_size: PAGE,
        tables_sum: 0,
        answers_offset: 0,
        answers_size: 100,
        variants: 1,
        kinds: 1,
        head_sum: 0,
    }
};

/// An address where launcher and kernel find their memory.
const PLACE: u64 = 0x10_0000;

/// A valid row of each kind.
#[derive(Clone, Copy)]
struct Rows {
    /// Mapped at [`PLACE`].
    base: Mapping,
    mapping: Mapping,
    registers: Registers,
    descriptor: Descriptor,
    signals: [SignalAction; 2],
    process: Process,
    hot: HotRange,
    touched: TouchedRange,
    touched_file: TouchedFileRange,
    trained: TrainedStart,
    settings: Settings,
    directories: [Directory; 2],
}

fn good() -> Rows {
    let (start, end) = (PLACE, PLACE + PAGE);
    let base = Mapping { start, end, offset: 0, protection: 7, kind: mapping_kind::ANONYMOUS, file: NO_FILE, flags: 0 };
    let mapping = Mapping {
        start: 0x40_0000,
        end: 0x40_0000 + 2 * PAGE,
        offset: HEAD.pages_offset,
        protection: 3,
        kind: mapping_kind::IMAGE,
        file: NO_FILE,
        flags: 0,
    };
    let descriptor = Descriptor { number: 3, kind: descriptor_kind::EVENTFD, ..Descriptor::default() };
    let signals = [2, 64].map(|number| SignalAction { number, ..SignalAction::default() });
    let process = Process {
        start_brk: PAGE,
        brk: 2 * PAGE,
        start_stack: PLACE,
        arg_start: PLACE + 64,
        env_end: PLACE + 128,
        stack_end: PLACE + PAGE,
        tid_address: PLACE + 200,
        rseq_area: PLACE + 256,
        rseq_length: 32,
        ..Process::default()
    };
    let registers = Registers { rsp: PLACE + 512, rip: PLACE + 1024, ..Registers::default() };
    let hot = HotRange { start: mapping.start, end: mapping.end };
    let directory =
        |inputs, answers_offset| Directory { inputs, answers_offset, answers_size: 50, ..Directory::default() };
    let directories = [directory(2, 0), directory(1, 50)];
    let touched = TouchedRange { offset: mapping.offset, size: PAGE };
    Rows {
        base,
        mapping,
        registers,
        descriptor,
        signals,
        process,
        hot,
        touched,
        touched_file: TouchedFileRange::default(),
        trained: TrainedStart { hot: 1, ..TrainedStart::default() },
        settings: Settings::default(),
        directories,
    }
}

fn tables(all: &Rows) -> Vec<u8> {
    let mut writer = TablesWriter::new();
    // The default `Text` is the first string: an empty one.
    assert_eq!(writer.text(b""), Text::default());
    let path = writer.text(b"/lib/a.so");
    writer.push(Section::Files, &MappedFile { path, ..MappedFile::default() });
    writer.push(Section::Mappings, &all.base);
    writer.push(Section::Mappings, &all.mapping);
    writer.push(Section::Registers, &all.registers);
    writer.push(Section::Descriptors, &all.descriptor);
    writer.push(Section::Hot, &all.hot);
    writer.push(Section::Touched, &all.touched);
    writer.push(Section::TouchedFiles, &all.touched_file);
    writer.push(Section::Trained, &all.trained);
    writer.push(Section::Settings, &all.settings);
    writer.push(Section::Cpu, &CpuLeaf::default());
    (0..3).for_each(|_| writer.push(Section::Inputs, &Input { path, ..Input::default() }));
    all.directories.iter().for_each(|directory| writer.push(Section::Directories, directory));
    all.signals.iter().for_each(|action| writer.push(Section::Signals, action));
    writer.push(Section::Process, &all.process);
    writer.finish()
}

#[test]
fn lookups_follow_the_order_of_their_inputs() {
    let with = |inputs: &[u32]| {
        let mut writer = TablesWriter::extending(&Tables::parse_unchecked_sum(&tables(&good())).unwrap());
        inputs.iter().for_each(|&input| writer.push(Section::Lookups, &FileLookup { input, ..FileLookup::default() }));
        rows(&Tables::parse_unchecked_sum(&writer.finish()).unwrap(), &HEAD).map_err(|error| match error {
            Error::OutOfRange { what, .. } => what,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(with(&[0, 0, 2]), Ok(()));
    assert_eq!(with(&[1, 0]), Err("the input of a look-up"));
    assert_eq!(with(&[3]), Err("the input of a look-up"));
}

fn checked(change: impl FnOnce(&mut Rows)) -> Result<(), Error> {
    let mut all = good();
    change(&mut all);
    rows(&Tables::parse_unchecked_sum(&tables(&all)).unwrap(), &HEAD)
}

/// The value that is out of range after `change`.
fn wrong(change: impl FnOnce(&mut Rows)) -> &'static str {
    match checked(change) {
        Err(Error::OutOfRange { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn good_rows_pass() {
    assert_eq!(checked(|_| ()), Ok(()));
    assert_eq!(checked(|all| all.mapping.kind = mapping_kind::COPY), Ok(()));
    assert_eq!(checked(|all| all.mapping.file = 0), Ok(()));
    assert_eq!(checked(|all| (all.mapping.kind, all.mapping.file) = (mapping_kind::FILE, 0)), Ok(()));
    for kind in [mapping_kind::ANONYMOUS, mapping_kind::STACK, mapping_kind::VDSO] {
        assert_eq!(checked(|all| all.mapping.kind = kind), Ok(()));
    }
    assert_eq!(checked(|all| all.process.rseq_area = 0), Ok(()));
    assert_eq!(checked(|all| all.process.env_end = all.process.arg_start), Ok(()));
}

/// The tables of a good image of aarch64, with a mapping that ends here.
fn of_aarch64(end: u64) -> Vec<u8> {
    let all = good();
    let mut writer = TablesWriter::new();
    writer.push(Section::Process, &all.process);
    writer.push(Section::Aarch64Registers, &Aarch64Registers { sp: PLACE + 512, pc: PLACE + 1024, tpidr: PLACE });
    writer.push(Section::Mappings, &all.base);
    writer.push(Section::Mappings, &Mapping { start: end - PAGE, end, ..all.base });
    writer.push(Section::Cpu, &CpuLeaf::default());
    writer.finish()
}

#[test]
fn an_image_of_another_architecture_can_be_read() {
    let bytes = of_aarch64(1 << 48);
    let read = Tables::parse_unchecked_sum(&bytes).unwrap();
    assert_eq!(rows(&read, &HEAD), Ok(()));
    assert_eq!(Architecture::from_tables(&read), Ok(Architecture::Aarch64));
    let bytes = of_aarch64((1 << 48) + PAGE);
    let error = rows(&Tables::parse_unchecked_sum(&bytes).unwrap(), &HEAD).unwrap_err();
    assert_eq!(error, Error::OutOfRange { what: "the end of a mapping", value: (1 << 48) + PAGE });
    let bytes = tables(&good());
    assert_eq!(Architecture::from_tables(&Tables::parse_unchecked_sum(&bytes).unwrap()), Ok(Architecture::X86_64));
    let none = TablesWriter::new().finish();
    let missing = Architecture::from_tables(&Tables::parse_unchecked_sum(&none).unwrap());
    assert_eq!(missing, Err(Error::Missing { what: "registers" }));
}

#[test]
fn mappings_are_whole_pages_of_a_processs_addresses() {
    let edge = "the start or end of a mapping";
    assert_eq!(wrong(|all| all.mapping.start += 1), edge);
    assert_eq!(wrong(|all| all.mapping.end += 1), edge);
    assert_eq!(wrong(|all| all.mapping.offset += 1), edge);
    assert_eq!(wrong(|all| all.mapping.end = all.mapping.start), edge);
    assert_eq!(wrong(|all| all.mapping.end = all.mapping.start - PAGE), edge);
    assert_eq!(wrong(|all| all.mapping.end = ADDRESS_END + PAGE), "the end of a mapping");
    assert_eq!(wrong(|all| all.mapping.protection = 8), "the protection of a mapping");
    for kind in [0, mapping_kind::VDSO_COPY + 1, u32::MAX] {
        assert_eq!(wrong(|all| all.mapping.kind = kind), "the kind of a mapping");
    }
}

#[test]
fn mappings_keep_off_the_launchers_range() {
    let put = |start: u64, end: u64| {
        move |all: &mut Rows| {
            all.mapping = Mapping { start, end, offset: 0, kind: mapping_kind::ANONYMOUS, ..all.mapping };
        }
    };
    assert_eq!(checked(put(RESERVED_START - PAGE, RESERVED_START)), Ok(()));
    assert_eq!(checked(put(RESERVED_END, RESERVED_END + PAGE)), Ok(()));
    for (start, end) in [
        (RESERVED_START - PAGE, RESERVED_START + PAGE),
        (RESERVED_END - PAGE, RESERVED_END),
        (RESERVED_START - PAGE, RESERVED_END + PAGE),
    ] {
        assert_eq!(wrong(put(start, end)), "the start of a mapping");
    }
}

#[test]
fn pages_come_from_the_data_pages_and_files_from_the_files() {
    for kind in [mapping_kind::IMAGE, mapping_kind::COPY, mapping_kind::VDSO_COPY] {
        for offset in [0, HEAD.pages_offset - PAGE, HEAD.pages_offset + 3 * PAGE, u64::MAX - PAGE + 1] {
            assert_eq!(wrong(|all| (all.mapping.kind, all.mapping.offset) = (kind, offset)), "the offset of a mapping");
        }
    }
    assert_eq!(wrong(|all| all.mapping.file = 1), "the file of a mapping");
    assert_eq!(wrong(|all| all.mapping.kind = mapping_kind::FILE), "the file of a mapping");
}

/// Regression: the number of rows wrapped below zero, so every row counted as inside.
#[test]
fn no_mapping_has_a_file_where_there_are_no_files() {
    let all = good();
    for file in [0, 1, NO_FILE] {
        let mut writer = TablesWriter::new();
        writer.push(Section::Process, &all.process);
        writer.push(Section::Registers, &all.registers);
        writer.push(Section::Mappings, &Mapping { kind: mapping_kind::FILE, offset: 0, file, ..all.mapping });
        let bytes = writer.finish();
        let error = rows(&Tables::parse_unchecked_sum(&bytes).unwrap(), &HEAD).unwrap_err();
        assert_eq!(error, Error::OutOfRange { what: "the file of a mapping", value: file.into() });
    }
}

/// Regression: a part at another address replaced memory of the launcher.
#[test]
fn parts_of_the_vdso_stay_inside_the_room_where_they_wait() {
    let put = |offset| move |all: &mut Rows| (all.mapping.kind, all.mapping.offset) = (mapping_kind::VDSO, offset);
    let room = reserved::LEFTOVER_END - reserved::VDSO;
    assert_eq!(checked(put(room - 2 * PAGE)), Ok(()));
    for offset in [room - PAGE, room, RESERVED_START.wrapping_sub(reserved::VDSO), u64::MAX - PAGE + 1] {
        assert_eq!(wrong(put(offset)), "the offset of a part of the vdso");
    }
}

/// Regression: the launcher crashed instead of falling back.
#[test]
fn what_launcher_and_kernel_write_to_is_writable_memory() {
    assert_eq!(wrong(|all| all.process.arg_start = PLACE - 1), "the argv area");
    assert_eq!(wrong(|all| all.process.env_end = PLACE + PAGE + 1), "the argv area");
    assert_eq!(wrong(|all| all.process.start_stack = PLACE - 8), "the argv area");
    for address in [0, PLACE - 1, PLACE + PAGE - 3, PLACE + PAGE] {
        assert_eq!(wrong(|all| all.process.tid_address = address), "the place of the thread id");
    }
    for address in [32, PLACE - 32, PLACE + PAGE - 16, u64::MAX] {
        assert_eq!(wrong(|all| all.process.rseq_area = address), "the rseq area");
    }
    assert_eq!(wrong(|all| all.registers.rsp = PLACE + PAGE), "the stack pointer");
    assert_eq!(wrong(|all| all.registers.rip = PLACE + PAGE), "the next instruction");
    assert_eq!(wrong(|all| all.base.protection = 3), "the next instruction");
    assert_eq!(wrong(|all| all.base.protection = 5), "the argv area");
    assert_eq!(wrong(|all| (all.base.kind, all.base.file) = (mapping_kind::FILE, 0)), "the argv area");
}

#[test]
fn a_later_mapping_replaces_an_earlier_one() {
    let over = |kind, protection| {
        move |all: &mut Rows| {
            let (start, end) = (PLACE, PLACE + PAGE);
            all.mapping = Mapping { start, end, kind, protection, ..all.mapping };
        }
    };
    assert_eq!(checked(over(mapping_kind::IMAGE, 7)), Ok(()));
    assert_eq!(checked(over(mapping_kind::COPY, 0)), Ok(()), "a copy fills what is there");
    assert_eq!(wrong(over(mapping_kind::IMAGE, 5)), "the argv area");
    assert_eq!(wrong(over(mapping_kind::IMAGE, 3)), "the next instruction");
}

#[test]
fn descriptors_are_the_frozen_processs_own() {
    assert_eq!(wrong(|all| all.descriptor.number = 2), "a descriptor number");
    assert_eq!(wrong(|all| all.descriptor.number = MAX_DESCRIPTORS + 1), "a descriptor number");
    assert_eq!(wrong(|all| all.descriptor.peer = MAX_DESCRIPTORS + 1), "the number of a pipe's other end");
    assert_eq!(wrong(|all| all.descriptor.path.length = 99), "the place of a string");
}

#[test]
fn signals_exist_and_appear_once() {
    assert_eq!(wrong(|all| all.signals[0].number = 0), "a signal number");
    assert_eq!(wrong(|all| all.signals[0].number = 65), "a signal number");
    assert_eq!(wrong(|all| all.signals[0].number = 64), "the number of a second action for a signal");
}

#[test]
fn heap_and_argv_area_are_ranges() {
    assert_eq!(wrong(|all| all.process.brk = 0), "the heap");
    assert_eq!(wrong(|all| all.process.brk = ADDRESS_END + 1), "the heap");
    assert_eq!(wrong(|all| all.process.env_end = 0), "the argv area");
    assert_eq!(wrong(|all| all.process.env_end = RESERVED_END), "the argv area");
    let address = "an address of the process";
    assert_eq!(wrong(|all| all.process.tid_address = u64::MAX), address);
    assert_eq!(wrong(|all| all.process.robust_list = u64::MAX), address);
    assert_eq!(wrong(|all| all.process.stack_end = u64::MAX), address);
}

#[test]
fn a_rehearsal_has_shown_addresses_and_data_pages() {
    assert_eq!(wrong(|rows| rows.hot.end = 0), "a hot range");
    assert_eq!(wrong(|rows| rows.hot.end = RESERVED_END), "a hot range");
    assert_eq!(wrong(|rows| rows.trained.kind = 3), "the kind of a trained start");
    assert_eq!(wrong(|rows| rows.trained.hot = 2), "the number of hot ranges of trained starts");
    assert_eq!(wrong(|rows| rows.settings.policy = 3), "the policy");
    assert_eq!(wrong(|rows| rows.settings.flags = 2), "the flags of the settings");
    assert_eq!(wrong(|rows| rows.touched.offset = 0), "the offset of a touched range");
    assert_eq!(wrong(|rows| rows.touched.size = 5 * PAGE), "the offset of a touched range");
    assert_eq!(wrong(|rows| rows.touched.size = u64::MAX), "the offset of a touched range");
    assert_eq!(wrong(|rows| rows.touched_file.file = 1), "the file of a touched range");
}

#[test]
fn an_image_without_a_process_is_refused() {
    let bytes = TablesWriter::new().finish();
    let tables = Tables::parse_unchecked_sum(&bytes).unwrap();
    assert_eq!(rows(&tables, &HEAD), Err(Error::Missing { what: "process" }));
}

#[test]
fn directories_have_all_inputs_and_their_answers() {
    assert_eq!(checked(|all| (all.directories[0].inputs, all.directories[1].inputs) = (0, 3)), Ok(()));
    for inputs in [2, u32::MAX] {
        assert_eq!(wrong(|all| all.directories[1].inputs = inputs), "the number of inputs of a directory");
    }
    assert_eq!(wrong(|all| all.directories[1].inputs = 0), "the number of inputs without a directory");
    assert_eq!(wrong(|all| all.directories[1].answers_size = 51), "the end of a directory's answers");
    assert_eq!(wrong(|all| all.directories[1].answers_offset = u64::MAX), "the end of a directory's answers");
}
