//! The tables: a round trip works; nothing outside of them is reached.

use image::*;
use image_writer::TablesWriter;

/// Tables with a string, two guards and some bytes.
fn example() -> Vec<u8> {
    let mut writer = TablesWriter::new();
    for guard in [&b"-e"[..], b"test*"] {
        let text = writer.text(guard);
        writer.push(Section::Guards, &Item { text });
    }
    writer.push(Section::Platform, &Platform { vdso_size: 7, ..Platform::default() });
    writer.set_bytes(Section::Info, b"{}");
    writer.finish()
}

/// Tables with this directory, and room behind it.
fn with_directory(count: u64, entries: &[Entry]) -> Vec<u8> {
    let mut bytes = count.to_le_bytes().to_vec();
    for entry in entries {
        let start = bytes.len();
        bytes.resize(start + Entry::SIZE, 0);
        entry.encode(&mut bytes[start..]);
    }
    bytes.resize(bytes.len() + 64, 0);
    bytes
}

fn error_of(entries: &[Entry]) -> &'static str {
    match Tables::parse_unchecked_sum(&with_directory(entries.len() as u64, entries)) {
        Err(Error::OutOfRange { what, .. } | Error::Truncated { what, .. }) => what,
        other => panic!("{other:?}"),
    }
}

fn entry(section: u32, record_size: u32, offset: u64, size: u64) -> Entry {
    Entry { section, record_size, offset, size }
}

#[test]
fn what_is_written_is_read_back() {
    let bytes = example();
    let tables = Tables::parse_unchecked_sum(&bytes).unwrap();
    let guards = tables.rows::<Item>(Section::Guards).unwrap();
    assert_eq!(guards.len(), 2);
    assert_eq!(guards.get(1).map(|guard| tables.text(guard.text).unwrap()), Some(&b"test*"[..]));
    assert_eq!((guards.get(2), guards.get(usize::MAX)), (None, None));
    assert_eq!(tables.one::<Platform>(Section::Platform).unwrap().vdso_size, 7);
    assert_eq!(tables.bytes(Section::Info), b"{}");
    assert_eq!(tables.bytes(Section::Auxv), b"");
    assert_eq!(tables.rows::<Mapping>(Section::Mappings).unwrap().count(), 0);
}

#[test]
fn what_was_read_can_be_extended() {
    let bytes = example();
    let mut writer = TablesWriter::extending(&Tables::parse_unchecked_sum(&bytes).unwrap());
    let text = writer.text(b"third");
    writer.push(Section::Guards, &Item { text });
    writer.set_bytes(Section::Info, b"[]");
    let bytes = writer.finish();
    let tables = Tables::parse_unchecked_sum(&bytes).unwrap();
    let guards: Vec<&[u8]> =
        tables.rows::<Item>(Section::Guards).unwrap().map(|guard| tables.text(guard.text).unwrap()).collect();
    assert_eq!(guards, [&b"-e"[..], b"test*", b"third"]);
    assert_eq!(tables.bytes(Section::Info), b"[]");
}

#[test]
fn size_and_checksum_are_compared_with_the_head() {
    let bytes = example();
    let head = Head { tables_size: bytes.len() as u64, tables_sum: checksum(&bytes), ..Head::default() };
    assert!(Tables::parse(&bytes, &head).is_ok());
    assert!(matches!(Tables::parse(&bytes[1..], &head), Err(Error::Truncated { what: "the tables", .. })));
    for position in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[position] ^= 0x40;
        assert_eq!(Tables::parse(&bytes, &head).unwrap_err(), Error::Damaged { what: "tables" });
    }
}

#[test]
fn cut_off_tables_are_refused() {
    let bytes = example();
    let directory = 8 + 4 * Entry::SIZE;
    for length in 0..bytes.len() {
        let parsed = Tables::parse_unchecked_sum(&bytes[..length]);
        assert!(parsed.is_err(), "{length} of {} bytes", bytes.len());
        assert_eq!(matches!(parsed, Err(Error::Truncated { .. })), length < directory, "{length}");
    }
}

#[test]
fn the_directory_is_not_believed() {
    let place = "the place of a section";
    let size = "the size of a section";
    let inside = 8 + Entry::SIZE as u64;
    assert_eq!(error_of(&[entry(0, 1, inside, 8)]), "a section number");
    assert_eq!(error_of(&[entry(Section::ALL.len() as u32 + 1, 1, inside, 8)]), "a section number");
    assert_eq!(error_of(&[entry(1, 1, 0, 8)]), place, "inside the directory");
    assert_eq!(error_of(&[entry(1, 1, inside + 4, 8)]), place, "not aligned");
    assert_eq!(error_of(&[entry(1, 1, inside, 65)]), place, "past the end");
    assert_eq!(error_of(&[entry(1, 1, inside + 72, 0)]), place, "behind the end");
    assert_eq!(error_of(&[entry(1, 1, inside, u64::MAX)]), place, "an overflow");
    assert_eq!(error_of(&[entry(1, 1, u64::MAX - 7, 8)]), place, "an overflow");
    assert_eq!(error_of(&[entry(1, 0, inside, 8)]), size, "records of no size");
    assert_eq!(error_of(&[entry(1, 3, inside, 8)]), size, "a part of a record");
    let twice = [entry(1, 1, inside + 24, 8), entry(1, 1, inside + 24, 8)];
    assert_eq!(error_of(&twice), size, "a section twice");
    assert!(matches!(
        Tables::parse_unchecked_sum(&with_directory(99, &[])),
        Err(Error::OutOfRange { what: "the number of sections", value: 99 })
    ));
}

#[test]
fn rows_of_another_size_are_refused() {
    let bytes = with_directory(1, &[entry(Section::Guards as u32, 16, 8 + Entry::SIZE as u64, 32)]);
    let tables = Tables::parse_unchecked_sum(&bytes).unwrap();
    let error = tables.rows::<Item>(Section::Guards).unwrap_err();
    assert_eq!(error, Error::OutOfRange { what: "the record size of a section", value: 16 });
    assert_eq!(tables.one::<Process>(Section::Process).unwrap_err(), Error::Missing { what: "process" });
}

#[test]
fn strings_lie_inside_their_section_and_end_with_a_nul() {
    let mut writer = TablesWriter::new();
    let (first, last) = (writer.text(b"first"), writer.text(b"last"));
    let bytes = writer.finish();
    let tables = Tables::parse_unchecked_sum(&bytes).unwrap();
    assert_eq!(tables.text(first), Ok(&b"first"[..]));
    assert_eq!(tables.text_with_nul(last), Ok(&b"last\0"[..]));
    let wrong = [
        Text { length: first.length - 1, ..first },
        Text { length: last.length + 1, ..last },
        Text { offset: last.offset + last.length + 1, length: 0 },
        Text { offset: u32::MAX, length: u32::MAX },
        Text { offset: 0, length: u32::MAX },
    ];
    for text in wrong {
        assert!(matches!(tables.text(text), Err(Error::OutOfRange { what: "the place of a string", .. })), "{text:?}");
    }
}
