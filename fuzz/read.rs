//! The body of the fuzz target: reads bytes as launcher and command read an image, and compares what the reader let through
//! with what docs/internals/image-format.md promises. Any broken promise is a panic.
//!
//! The fuzz target of cargo-fuzz and the test of crates/image that needs no nightly toolchain both call [`read`].

use std::fmt::Write;

use image::arch::aarch64::Aarch64Registers;
use image::arch::x86_64::Registers;
use image::arch::Architecture;
use image::validate::{self, MAX_DESCRIPTORS};
use image::{
    checksum, mapping_kind, policy, reserved, settings_flag, AnswersReader, Command, CpuLeaf, Descriptor, Directory,
    Entry, Error, FileLookup, Head, HostFact, HotRange, Input, Item, MappedFile, Mapping, Platform, Process, Record,
    Section, Settings, SignalAction, Tables, Text, TouchedFileRange, TouchedRange, Trailer, TrainedStart, Variable,
    COMMAND_OFFSET, HEAD_AREA, HEAD_OFFSET, MAX_ANSWERS, MAX_TABLES, MAX_VARIANTS, NO_FILE, PAGE, RESERVED_END,
    RESERVED_START,
};
use image_writer::TablesWriter;

/// How far the bytes got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reached {
    /// The head was refused.
    Head,
    /// The directory of the tables was refused.
    Tables,
    /// A row was refused.
    Rows,
    /// Everything was accepted.
    End,
}

/// What [`read`] takes, in pieces. As bytes: the size of the file (8 bytes), the number of bytes of the area (2 bytes), these, and
/// the tables. Zeros behind the area's last byte that is not zero need not be there.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    /// Size that the file has.
    pub file_size: u64,
    /// Head and command.
    pub area: &'a [u8],
    /// The end of the file, from the tables on.
    pub tables: &'a [u8],
}

impl<'a> Pieces<'a> {
    fn parse(data: &'a [u8]) -> Option<Self> {
        let (file_size, rest) = data.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (area, tables) = rest.split_at_checked(u16::from_le_bytes(*length).into())?;
        Some(Pieces { file_size: u64::from_le_bytes(*file_size), area, tables })
    }

    /// The pieces as bytes.
    #[allow(dead_code)] // cargo-fuzz makes up the bytes itself
    pub fn join(&self) -> Vec<u8> {
        let area = &self.area[..self.area.len().min(u16::MAX.into())];
        let length = (area.len() as u16).to_le_bytes();
        [&self.file_size.to_le_bytes(), &length[..], area, self.tables].concat()
    }
}

/// Reads the bytes as they are, and then again with right checksums, so that these do not hide what lies behind them.
pub fn read(data: &[u8]) -> Reached {
    let Some(Pieces { file_size, area, tables }) = Pieces::parse(data) else { return Reached::Head };
    if area.len() < HEAD_AREA {
        assert!(matches!(Head::parse(area, file_size), Err(Error::Truncated { .. })));
    }
    let mut whole = area.to_vec();
    whole.resize(HEAD_AREA.max(area.len()), 0);
    let reached = image(&whole, tables, file_size);
    seal(&mut whole, tables);
    let reached = reached.max(image(&whole, tables, file_size));
    if reached == Reached::Head {
        // The command reads tables of the freezer, which have no head yet.
        if let Ok(parsed) = Tables::parse_unchecked_sum(tables) {
            check_tables(&parsed, tables, &Head { pages_offset: 0x6000, pages_size: 0x4000, ..Head::default() });
        }
    }
    any_record(data);
    answers(data);
    reached
}

/// The part of the file that `head` calls the tables.
fn tables_of<'a>(head: &Head, tail: &'a [u8]) -> &'a [u8] {
    usize::try_from(head.tables_size).ok().and_then(|size| tail.get(..size)).unwrap_or(tail)
}

/// Makes the checksums right.
fn seal(area: &mut [u8], tail: &[u8]) {
    let mut head = Head::decode(area);
    let size = usize::try_from(head.command_size).unwrap_or(usize::MAX);
    if let Some(command) = area[COMMAND_OFFSET..].get(..size) {
        head.command_sum = checksum(command);
    }
    head.tables_sum = checksum(tables_of(&head, tail));
    head.encode(area);
    head.head_sum = checksum(&area[..Head::SIZE - 8]);
    head.encode(area);
}

fn image(area: &[u8], tail: &[u8], file_size: u64) -> Reached {
    if let Some(command) = checked(Command::parse(area, &Head::decode(area))) {
        check_command(&command);
    }
    let Some(head) = checked(Head::parse(area, file_size)) else { return Reached::Head };
    check_head(&head, file_size);
    assert!((1..=MAX_VARIANTS).contains(&head.variants));
    for number in 1..head.variants {
        if let Some(other) = checked(Head::parse_variant(number, area, file_size)) {
            check_head(&other, file_size);
        }
    }
    let bytes = tables_of(&head, tail);
    match checked(Tables::parse(bytes, &head)) {
        Some(tables) => check_tables(&tables, bytes, &head),
        None => Reached::Tables,
    }
}

/// Says what is wrong, as the user would read it.
fn checked<T>(result: Result<T, Error>) -> Option<T> {
    result.map_err(|error| write!(String::new(), "{error}").unwrap()).ok()
}

fn check_command(command: &Command) {
    let strings: Vec<&[u8]> = std::iter::once(command.program()).chain(command.argv()).collect();
    assert!(command.argc() >= 1 && strings.len() == command.argc() + 1);
    let anchor = command.anchor();
    assert!(anchor.is_none_or(|(index, path)| index < command.argc() && path[0] == b'/'));
    for string in strings.into_iter().chain(anchor.map(|(_, path)| path)) {
        assert!(string.iter().position(|&byte| byte == 0) == Some(string.len() - 1));
    }
}

fn check_head(head: &Head, file_size: u64) {
    let wide = |number: u64| u128::from(number);
    assert!(head.file_size <= file_size);
    assert!(head.pages_offset.is_multiple_of(PAGE) && head.pages_size.is_multiple_of(PAGE));
    assert!(head.tables_offset.is_multiple_of(PAGE) && head.tables_size <= MAX_TABLES);
    assert!(head.pages_offset.min(head.tables_offset) >= (HEAD_OFFSET + HEAD_AREA) as u64);
    let (pages, tables) = (wide(head.pages_offset), wide(head.tables_offset));
    let (pages_end, tables_end) = (pages + wide(head.pages_size), tables + wide(head.tables_size));
    assert!(pages_end <= tables || tables_end <= pages);
    assert!(head.answers_size == 0 || wide(head.answers_offset) + wide(head.answers_size) <= wide(head.file_size));
    assert!(head.answers_size <= MAX_ANSWERS);
    assert!(pages_end <= wide(head.file_size) && tables_end <= wide(head.file_size));
}

fn check_tables(tables: &Tables, all: &[u8], head: &Head) -> Reached {
    let count = u32::from_le_bytes(*all.first_chunk().unwrap());
    let entries = all[8..].chunks_exact(Entry::SIZE).take(count as usize).map(Entry::decode);
    let mut seen: Vec<u32> = entries.clone().map(|entry| entry.section).collect();
    seen.sort_unstable();
    assert!(seen.len() == count as usize && seen.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(entries
        .clone()
        .all(|entry| entry.offset.is_multiple_of(8) && entry.size % u64::from(entry.record_size) == 0));
    for section in Section::ALL {
        let (whole, part) = (all.as_ptr_range(), tables.bytes(section).as_ptr_range());
        assert!(whole.start <= part.start && part.end <= whole.end);
    }
    inspect(tables);
    extend(tables);
    match checked(validate::rows(tables, head)) {
        Some(()) => check_rows(tables, head),
        None => return Reached::Rows,
    }
    Reached::End
}

/// Reads all that `snapboot inspect` and `snapboot verify` show and the launcher compares: every row and every string.
fn inspect(tables: &Tables) {
    rows(tables, Section::Registers, |_: &Registers| []);
    rows(tables, Section::Aarch64Registers, |_: &Aarch64Registers| []);
    rows(tables, Section::Process, |_: &Process| []);
    rows(tables, Section::Platform, |_: &Platform| []);
    rows(tables, Section::Mappings, |_: &Mapping| []);
    rows(tables, Section::Files, |row: &MappedFile| [row.path]);
    rows(tables, Section::Descriptors, |row: &Descriptor| [row.path]);
    rows(tables, Section::Signals, |_: &SignalAction| []);
    rows(tables, Section::Inputs, |row: &Input| [row.path]);
    rows(tables, Section::Directories, |row: &Directory| [row.path]);
    rows(tables, Section::Variables, |row: &Variable| [row.name]);
    rows(tables, Section::Patterns, |row: &Item| [row.text]);
    rows(tables, Section::Guards, |row: &Item| [row.text]);
    rows(tables, Section::Hot, |_: &HotRange| []);
    rows(tables, Section::Touched, |_: &TouchedRange| []);
    rows(tables, Section::TouchedFiles, |_: &TouchedFileRange| []);
    rows(tables, Section::Settings, |_: &Settings| []);
    rows(tables, Section::Cpu, |_: &CpuLeaf| []);
    rows(tables, Section::Facts, |row: &HostFact| [row.value]);
    rows(tables, Section::Lookups, |row: &FileLookup| [row.text]);
    rows(tables, Section::Trained, |row: &TrainedStart| [row.argument]);
}

/// Reads the rows of a section in both ways, writes each again, and follows its strings.
fn rows<R, const TEXTS: usize>(tables: &Tables, section: Section, texts: impl Fn(&R) -> [Text; TEXTS])
where
    R: Record + Clone + PartialEq,
{
    let Some(rows) = checked(tables.rows::<R>(section)) else {
        assert!(checked(tables.one::<R>(section)).is_none());
        return;
    };
    let bytes = tables.bytes(section);
    assert!(rows.len() * R::SIZE <= bytes.len() && rows.clone().count() == rows.len());
    assert!(rows.get(rows.len()).is_none() && rows.get(usize::MAX).is_none());
    assert!(checked(tables.one::<R>(section)) == rows.get(0));
    let mut again = vec![0; R::SIZE];
    for (index, (row, raw)) in rows.clone().zip(bytes.chunks_exact(R::SIZE)).enumerate() {
        row.encode(&mut again);
        assert!(again == raw && rows.get(index).as_ref() == Some(&row));
        for text in texts(&row) {
            if let Some(with_nul) = checked(tables.text_with_nul(text)) {
                let (last, string) = with_nul.split_last().unwrap();
                assert!(*last == 0 && tables.text(text) == Ok(string) && string.len() == text.length as usize);
            }
        }
    }
}

/// Does what `snapboot freeze` does with the freezer's tables: takes them over and adds to them.
fn extend(tables: &Tables) {
    let mut writer = TablesWriter::extending(tables);
    let text = writer.text(b"added");
    let bytes = writer.finish();
    let extended = Tables::parse_unchecked_sum(&bytes).unwrap();
    assert!(extended.text(text) == Ok(b"added"));
    for section in Section::ALL.into_iter().filter(|section| *section != Section::Strings) {
        assert!(extended.bytes(section) == tables.bytes(section));
    }
}

/// The invariants of docs/internals/image-format.md, once more and in wider numbers.
fn check_rows(tables: &Tables, head: &Head) {
    let files = tables.rows::<MappedFile>(Section::Files).unwrap();
    let mappings = tables.rows::<Mapping>(Section::Mappings).unwrap();
    let process: Process = tables.one(Section::Process).unwrap();
    let architecture = Architecture::from_tables(tables).unwrap();
    let end = architecture.address_end();
    let (stack, instruction) = architecture.resume_at(tables).unwrap();
    for row in mappings.clone() {
        let size = row.end.checked_sub(row.start).unwrap();
        assert!(row.start.is_multiple_of(PAGE) && size.is_multiple_of(PAGE) && size > 0 && row.end <= end);
        assert!(row.offset.is_multiple_of(PAGE) && row.protection <= 7 && is_outside(row.start, row.end));
        assert!(row.file == NO_FILE || files.get(row.file as usize).is_some());
        match row.kind {
            mapping_kind::IMAGE | mapping_kind::COPY => assert!(is_in_pages(head, row.offset, size)),
            mapping_kind::FILE => assert!(files.get(row.file as usize).is_some()),
            mapping_kind::VDSO => {
                let place = reserved::VDSO.checked_add(row.offset).unwrap();
                assert!(place.checked_add(size).unwrap() <= reserved::LEFTOVER_END);
            }
            mapping_kind::ANONYMOUS | mapping_kind::STACK => {}
            kind => panic!("kind {kind}"),
        }
    }
    for row in tables.rows::<Descriptor>(Section::Descriptors).unwrap() {
        assert!((3..=MAX_DESCRIPTORS).contains(&row.number) && row.peer <= MAX_DESCRIPTORS);
    }
    let mut numbers: Vec<u32> =
        tables.rows::<SignalAction>(Section::Signals).unwrap().map(|action| action.number).collect();
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]) && numbers.iter().all(|number| (1..=64).contains(number)));
    assert!(tables.rows::<CpuLeaf>(Section::Cpu).unwrap().len() > 0);
    for row in tables.rows::<Settings>(Section::Settings).unwrap() {
        assert!(row.policy <= policy::TRUST && row.flags <= settings_flag::CHECK_PAGES);
    }
    for row in tables.rows::<HotRange>(Section::Hot).unwrap() {
        assert!(row.start <= row.end && row.end <= end && is_outside(row.start, row.end));
    }
    let directories = tables.rows::<Directory>(Section::Directories).unwrap();
    let inputs: u64 = directories.clone().map(|row| u64::from(row.inputs)).sum();
    assert!(inputs == tables.rows::<Input>(Section::Inputs).unwrap().len() as u64);
    assert!(directories
        .clone()
        .all(|row| { u128::from(row.answers_offset) + u128::from(row.answers_size) <= u128::from(head.answers_size) }));
    for row in tables.rows::<TouchedRange>(Section::Touched).unwrap() {
        assert!(is_in_pages(head, row.offset, row.size));
    }
    let files = tables.rows::<MappedFile>(Section::Files).unwrap().len();
    for row in tables.rows::<TouchedFileRange>(Section::TouchedFiles).unwrap() {
        assert!((row.file as usize) < files.max(1));
    }
    assert!(process.start_brk <= process.brk && process.brk <= end);
    assert!(process.arg_start <= process.env_end && process.env_end <= end);
    let last_at = |address: u64| {
        mappings.clone().filter(|row| row.kind != mapping_kind::COPY && (row.start..row.end).contains(&address)).last()
    };
    let writable = |address: u64| last_at(address).is_some_and(|row| row.protection & 2 != 0);
    assert!(writable(process.tid_address) && writable(process.tid_address + 3) && writable(stack));
    if process.arg_start < process.env_end {
        assert!(writable(process.arg_start) && writable(process.env_end - 1));
    }
    assert!(last_at(instruction).is_some_and(|row| row.protection & 4 != 0));
}

/// Whether a range keeps off what belongs to launcher and freezer.
fn is_outside(start: u64, end: u64) -> bool {
    end <= RESERVED_START || start >= RESERVED_END
}

fn is_in_pages(head: &Head, offset: u64, size: u64) -> bool {
    let end = u128::from(offset) + u128::from(size);
    offset >= head.pages_offset && end <= u128::from(head.pages_offset) + u128::from(head.pages_size)
}

/// Any bytes as the answers of a directory, with a checksum that is right: each name is whole and has its NUL.
fn answers(data: &[u8]) {
    let Some(mut answers) = checked(AnswersReader::parse(data, checksum(data))) else { return };
    while let Some(Some(answer)) = checked(answers.next()) {
        let (last, name) = answer.name.split_last().unwrap();
        assert!(*last == 0 && name == answer.bare_name() && !name.contains(&0) && !answer.value.contains(&0));
    }
}

/// Records that are read outside of sections, from any bytes.
fn any_record(data: &[u8]) {
    fn same<R: Record>(data: &[u8]) {
        let Some(bytes) = data.get(..R::SIZE) else { return };
        let mut again = vec![0; R::SIZE];
        R::decode(bytes).encode(&mut again);
        assert!(again == bytes);
    }
    same::<Head>(data);
    same::<Entry>(data);
    same::<Trailer>(data);
}
