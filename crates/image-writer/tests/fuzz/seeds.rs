//! Valid heads and tables for the fuzzer to damage.

use image::arch::aarch64::Aarch64Registers;
use image::arch::x86_64::Registers;
use image::{
    descriptor_kind, lookup_kind, mapping_kind, process_flag, Alternative, Capabilities, CpuLeaf, Descriptor,
    Directory, FileLookup, Head, HostFact, HotRange, Input, Item, MappedFile, Mapping, Platform, Process, Record,
    Section, Settings, SignalAction, Tables, TouchedFileRange, TouchedRange, TrainedStart, Variable, HEAD_AREA,
    NO_FILE, PAGE, VARIANTS_OFFSET,
};
use image_writer::TablesWriter;

use crate::read::Pieces;

/// Offset and size of the data pages. There is space for tables on either side.
const PAGES: (u64, u64) = (16 * PAGE, 8 * PAGE);

/// Offset and size of the answers.
const ANSWERS: (u64, u64) = (PAGES.0 + 4 * PAGES.1, 64);

/// A kind of fact: LIMIT of `fact_kind` in the crate `inputs`, which is above this one.
const LIMIT: u32 = 6;

/// A head and tables to change, with the places of their fields.
#[derive(Clone)]
pub struct Seed {
    /// Size of the file.
    pub file_size: u64,
    /// Head and command, without trailing zeros.
    pub area: Vec<u8>,
    /// The tables.
    pub tables: Vec<u8>,
    /// Fields of the head: offset and size.
    pub head_fields: Vec<(usize, usize)>,
    /// Fields of directory and rows: offset in the tables and size.
    pub table_fields: Vec<(usize, usize)>,
}

impl Seed {
    fn new(command: &[&[u8]], tables_offset: u64, tables: Vec<u8>) -> Seed {
        let head = Head {
            pages_offset: PAGES.0,
            pages_size: PAGES.1,
            tables_offset,
            tables_size: tables.len() as u64,
            tables_sum: image::checksum(&tables),
            answers_offset: ANSWERS.0,
            answers_size: ANSWERS.1,
            file_size: (ANSWERS.0 + ANSWERS.1).max(tables_offset + tables.len() as u64),
            ..Head::default()
        };
        let mut area = vec![0; HEAD_AREA];
        let variants = if command.len() == 3 { 3 } else { 1 };
        Head::write(&vec![head; variants], command.iter().copied(), &[], &mut area).unwrap();
        area.truncate(area.iter().rposition(|&byte| byte != 0).unwrap() + 1);
        let heads = [0].into_iter().chain((1..variants).map(|number| VARIANTS_OFFSET + (number - 1) * Head::SIZE));
        let head_fields = heads.flat_map(|at| Head::FIELDS.iter().map(move |field| (at + field.offset, field.size)));
        let head_fields = head_fields.collect();
        let table_fields = fields(&tables);
        Seed { file_size: head.file_size, area, tables, head_fields, table_fields }
    }

    /// The input of the fuzz target.
    pub fn bytes(&self) -> Vec<u8> {
        Pieces { file_size: self.file_size, area: &self.area, tables: &self.tables }.join()
    }
}

/// The fields of directory and rows: offset and size.
fn fields(bytes: &[u8]) -> Vec<(usize, usize)> {
    let tables = Tables::parse_unchecked_sum(bytes).unwrap();
    let mut found = vec![(0, 4), (4, 4)];
    let mut add = |range: std::ops::Range<usize>, fields: &[image::Field], size: usize| {
        for row in range.step_by(size) {
            found.extend(fields.iter().map(|field| (row + field.offset, field.size)));
        }
    };
    let sections = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    add(8..8 + sections * image::Entry::SIZE, image::Entry::FIELDS, image::Entry::SIZE);
    for section in Section::ALL {
        let (fields, size) = match section {
            Section::Registers => (Registers::FIELDS, Registers::SIZE),
            Section::Aarch64Registers => (Aarch64Registers::FIELDS, Aarch64Registers::SIZE),
            Section::Process => (Process::FIELDS, Process::SIZE),
            Section::Platform => (Platform::FIELDS, Platform::SIZE),
            Section::Mappings => (Mapping::FIELDS, Mapping::SIZE),
            Section::Files => (MappedFile::FIELDS, MappedFile::SIZE),
            Section::Descriptors => (Descriptor::FIELDS, Descriptor::SIZE),
            Section::Signals => (SignalAction::FIELDS, SignalAction::SIZE),
            Section::Inputs => (Input::FIELDS, Input::SIZE),
            Section::Variables => (Variable::FIELDS, Variable::SIZE),
            Section::Patterns | Section::Guards => (Item::FIELDS, Item::SIZE),
            Section::Hot => (HotRange::FIELDS, HotRange::SIZE),
            Section::Touched => (TouchedRange::FIELDS, TouchedRange::SIZE),
            Section::TouchedFiles => (TouchedFileRange::FIELDS, TouchedFileRange::SIZE),
            Section::Cpu => (CpuLeaf::FIELDS, CpuLeaf::SIZE),
            Section::Directories => (Directory::FIELDS, Directory::SIZE),
            Section::Settings => (Settings::FIELDS, Settings::SIZE),
            Section::Facts => (HostFact::FIELDS, HostFact::SIZE),
            Section::Lookups => (FileLookup::FIELDS, FileLookup::SIZE),
            Section::Trained => (TrainedStart::FIELDS, TrainedStart::SIZE),
            Section::Alternatives => (Alternative::FIELDS, Alternative::SIZE),
            Section::Capabilities => (Capabilities::FIELDS, Capabilities::SIZE),
            Section::Strings | Section::Info | Section::Auxv => continue,
        };
        let part = tables.bytes(section);
        let start = part.as_ptr() as usize - bytes.as_ptr() as usize;
        add(start..start + part.len(), fields, size);
    }
    // The reader sees a text as two numbers, the record as one field.
    let halves: Vec<_> = found.iter().filter(|field| field.1 == 8).flat_map(|at| [(at.0, 4), (at.0 + 4, 4)]).collect();
    found.extend(halves);
    found
}

/// The seeds, from the smallest to the largest.
pub fn all() -> Vec<Seed> {
    let long = vec![b'x'; 2000];
    let (before, behind) = ((image::HEAD_OFFSET + image::HEAD_AREA) as u64, PAGES.0 + PAGES.1);
    vec![
        Seed::new(&[b"/bin/a", b"", b"a"], behind, rows(0)),
        Seed::new(&[b"/usr/bin/python3", b"1=/a.py", b"python3", b"a.py", b""], before, rows(1)),
        Seed::new(&[b"/usr/bin/ruby", b"", b"ruby", &long], behind, rows(2)),
        Seed::new(&[b"/usr/bin/ruby", b"", b"ruby"], before, rows(8)),
    ]
}

/// Tables with `count` rows of each kind that may repeat.
fn rows(count: u64) -> Vec<u8> {
    const STACK: u64 = 0x7ffd_0000_0000;
    let mut tables = TablesWriter::new();
    let process = Process {
        tid_address: STACK + 16,
        robust_list: STACK + 32,
        robust_length: 24,
        rseq_area: STACK + 64,
        rseq_length: 32,
        rseq_signature: 0x5305_3053,
        altstack_size: 8192,
        flags: process_flag::ENVIRONMENT_MOVED,
        start_brk: 0x5560_0000_0000,
        brk: 0x5560_0002_1000,
        start_stack: STACK + 0x3000,
        arg_start: STACK + 0x3100,
        env_end: STACK + 0x3ff8,
        stack_end: STACK + 0x4000,
        stack_limit: 8 << 20,
        comm: *b"python3\0\0\0\0\0\0\0\0\0",
        ..Process::default()
    };
    tables.push(Section::Process, &process);
    let registers = Registers { rsp: STACK + 0x2000, rip: 0x40_1234, fs_base: 0x7000, gs_base: 0 };
    tables.push(Section::Registers, &registers);
    tables.push(Section::Platform, &Platform { vdso: [2; 16], vdso_size: 2 * PAGE });
    tables.push(Section::Cpu, &CpuLeaf { leaf: 1, ecx_mask: !0, ecx: 1 << 28, ..CpuLeaf::default() });
    let mapping = Mapping { start: STACK, end: STACK + 4 * PAGE, protection: 3, file: NO_FILE, ..Mapping::default() };
    tables.push(Section::Mappings, &Mapping { kind: mapping_kind::STACK, ..mapping });
    tables.push(Section::Mappings, &Mapping { kind: mapping_kind::COPY, offset: PAGES.0, ..mapping });
    let code = Mapping { start: 0x40_0000, end: 0x40_2000, protection: 5, offset: PAGES.0, ..mapping };
    tables.push(Section::Mappings, &Mapping { kind: mapping_kind::IMAGE, ..code });
    for index in 0..count {
        let number = index as u32;
        let path = tables.text(format!("/usr/lib/library-{index}.so").as_bytes());
        let name = tables.text(format!("NAME_{index}:LANG").as_bytes());
        let file = MappedFile { path, size: 4 * PAGE, mtime: -1, ctime: 1, digest: [3; 16] };
        tables.push(Section::Files, &file);
        let start = 0x7f00_0000_0000 + index * 8 * PAGE;
        let row = Mapping { start, end: start + 2 * PAGE, protection: 1, offset: 0, ..mapping };
        tables.push(Section::Mappings, &Mapping { kind: mapping_kind::FILE, file: number, ..row });
        tables.push(Section::Mappings, &Mapping { kind: mapping_kind::ANONYMOUS, flags: 1 << (index % 8), ..row });
        tables.push(Section::Mappings, &Mapping { kind: mapping_kind::VDSO, offset: 2 * PAGE, ..row });
        let descriptor = Descriptor { number: 3 + 2 * number, path, ..Descriptor::default() };
        tables.push(Section::Descriptors, &Descriptor { kind: descriptor_kind::PIPE_READ, peer: 4, ..descriptor });
        tables.push(Section::Descriptors, &Descriptor { kind: descriptor_kind::FILE, value: 7, ..descriptor });
        let action = SignalAction { handler: 0x40_1000, number: 1 + number, ..SignalAction::default() };
        tables.push(Section::Signals, &action);
        tables.push(Section::Inputs, &Input { path, size: 99, mtime: 1, ctime: i64::MAX, digest: [4; 16] });
        let directory =
            Directory { path, inputs: 1, answers_offset: 8 * index, answers_size: 8, ..Directory::default() };
        tables.push(Section::Directories, &directory);
        tables.push(Section::Variables, &Variable { name, value: [7; 16], present: 1, reserved: 0 });
        tables.push(Section::Patterns, &Item { text: name });
        tables.push(Section::Facts, &HostFact { kind: LIMIT, of: number, value: name });
        let question = FileLookup { input: number, kind: lookup_kind::LIBRARY, text: name, answer: [8; 16] };
        tables.push(Section::Lookups, &question);
        tables.push(Section::Guards, &Item { text: path });
        tables.push(Section::Hot, &HotRange { start: STACK, end: STACK + PAGE });
        tables.push(Section::Touched, &TouchedRange { offset: PAGES.0 + PAGE, size: PAGE });
        tables.push(Section::TouchedFiles, &TouchedFileRange { offset: PAGE, size: PAGE, file: 0, reserved: 0 });
        tables.push(Section::Trained, &TrainedStart { argument: name, kind: number % 3, hot: 1 });
        tables.push(Section::Alternatives, &Alternative { name, value: [9; 16], kind: number % 3, boots: 1 });
        let words = Capabilities { words: STACK + 512 + index * 64, size: 40, function: 0x40_1000, always: 1024 };
        tables.push(Section::Capabilities, &words);
    }
    if count > 0 {
        tables.push(
            Section::Settings,
            &Settings {
                policy: image::policy::CONTENT,
                made: 1,
                max_age: 2,
                max_thaws: 3,
                flags: image::settings_flag::CHECK_PAGES,
            },
        );
        tables.set_bytes(Section::Info, br#"{"runtime":"python"}"#);
        tables.set_bytes(Section::Auxv, &[6; 320]);
    }
    tables.finish()
}
