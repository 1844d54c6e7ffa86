//! Holds `docs/image-format.md` to the code: every record, section and constant has its row there, and no row is left over.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::record::{Field, Record};
use crate::*;

const DOCUMENT: &str = include_str!("../../../../docs/image-format.md");

/// The sources in which records are declared.
const SOURCES: [&str; 4] = [
    include_str!("../head.rs"),
    include_str!("../records.rs"),
    include_str!("../tables.rs"),
    include_str!("../x86_64.rs"),
];

/// Name, size and fields of every record of the format.
fn records() -> Vec<(&'static str, usize, &'static [Field])> {
    fn row<R: Record>() -> (&'static str, usize, &'static [Field]) {
        (R::NAME, R::SIZE, R::FIELDS)
    }
    Vec::from([
        row::<Head>(),
        row::<Entry>(),
        row::<Trailer>(),
        row::<Mapping>(),
        row::<MappedFile>(),
        row::<Descriptor>(),
        row::<SignalAction>(),
        row::<Process>(),
        row::<Platform>(),
        row::<CpuLeaf>(),
        row::<Input>(),
        row::<HotRange>(),
        row::<TouchedRange>(),
        row::<Directory>(),
        row::<Settings>(),
        row::<SeenHead>(),
        row::<SeenFile>(),
        row::<ThawsHead>(),
        row::<Variable>(),
        row::<Fact>(),
        row::<Item>(),
        row::<x86_64::Registers>(),
    ])
}

/// A table of the document: the heading that it stands under, and its rows, the first of which names the columns.
struct Table {
    heading: &'static str,
    rows: Vec<Vec<&'static str>>,
}

fn tables() -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let (mut heading, mut inside) = ("", false);
    for line in DOCUMENT.lines() {
        let is_row = line.starts_with('|');
        if let Some(title) = line.strip_prefix('#') {
            heading = title.trim_start_matches('#').trim();
        } else if is_row {
            if !inside {
                tables.push(Table { heading, rows: Vec::new() });
            }
            let row = line.trim_matches('|').split('|').map(str::trim).collect();
            tables.last_mut().unwrap().rows.push(row);
        }
        inside = is_row;
    }
    tables
}

/// The rows of all tables whose first column has this name, without the first two lines, as "first second".
fn rows_named(column: &str) -> Vec<String> {
    let tables = tables().into_iter().filter(|table| table.rows[0][0] == column);
    tables.flat_map(|table| table.rows.into_iter().skip(2)).map(|row| format!("{} {}", row[0], row[1])).collect()
}

#[test]
fn every_record_has_its_table() {
    let mut documented: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for table in tables().into_iter().filter(|table| table.rows[0] == ["field", "offset", "size", "meaning"]) {
        let rows = table.rows[2..].iter().map(|row| row[..3].join(" ")).collect();
        assert!(documented.insert(table.heading, rows).is_none(), "two tables for {}", table.heading);
    }
    let mut coded: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, size, fields) in records() {
        coded.insert(name, fields.iter().map(|it| format!("{} {} {}", it.name, it.offset, it.size)).collect());
        assert_eq!(fields.iter().map(|field| field.size).sum::<usize>(), size, "{name} has padding");
    }
    assert_eq!(documented, coded, "left: docs/image-format.md, right: crates/image");
}

#[test]
fn every_declared_record_is_compared() {
    let mut declared: Vec<&str> = Vec::new();
    for source in SOURCES {
        for declaration in source.split("record! {").skip(1) {
            let name = declaration.split("pub struct ").nth(1).unwrap();
            declared.push(name.split(' ').next().unwrap());
        }
    }
    declared.sort_unstable();
    let mut compared: Vec<&str> = records().into_iter().map(|(name, ..)| name).collect();
    compared.sort_unstable();
    assert_eq!(declared, compared);
}

#[test]
fn every_section_has_its_row() {
    let coded: Vec<String> =
        Section::ALL.iter().map(|section| format!("{} {}", *section as u32, section.name())).collect();
    assert_eq!(rows_named("section"), coded);
}

#[test]
fn every_constant_has_its_value() {
    let value = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    let documented: Vec<(String, u64)> = rows_named("constant")
        .into_iter()
        .chain(rows_named("constant of validate"))
        .map(|row| row.split_once(' ').map(|(name, number)| (name.to_string(), value(number))).unwrap())
        .collect();
    let coded = [
        ("VERSION", u64::from(VERSION)),
        ("PAGE", PAGE),
        ("HEAD_OFFSET", HEAD_OFFSET as u64),
        ("HEAD_ROOM", HEAD_ROOM as u64),
        ("COMMAND_OFFSET", COMMAND_OFFSET as u64),
        ("MOST_VARIANTS", MOST_VARIANTS.into()),
        ("VARIANTS_OFFSET", VARIANTS_OFFSET as u64),
        ("MOST_TABLES", MOST_TABLES),
        ("MOST_ANSWERS", MOST_ANSWERS),
        ("RESERVED_START", RESERVED_START),
        ("RESERVED_END", RESERVED_END),
        ("ADDRESS_END", validate::ADDRESS_END),
        ("MOST_DESCRIPTORS", validate::MOST_DESCRIPTORS.into()),
    ];
    assert_eq!(documented, coded.map(|(name, number)| (name.to_string(), number)));
}

/// Kinds and flags are modules of constants in `records.rs`; each module is a table of the same name.
#[test]
fn every_kind_and_flag_has_its_row() {
    let source = SOURCES[1];
    let mut modules = 0;
    for module in source.split("\npub mod ").skip(1) {
        let (name, body) = module.split_once(" {").unwrap();
        let body = body.split("\n}").next().unwrap();
        let coded: Vec<String> = body
            .split("pub const ")
            .skip(1)
            .map(|constant| {
                let (name, rest) = constant.split_once(": u32 = ").unwrap();
                format!("{name} {}", rest.split(';').next().unwrap())
            })
            .collect();
        assert_eq!(rows_named(name), coded, "{name}: left: docs/image-format.md, right: crates/image");
        modules += 1;
    }
    assert_eq!(modules, 9);
}

#[test]
fn the_document_names_the_magics() {
    let mut room = [0; HEAD_ROOM];
    Head::write(&[Head::default()], [&b"/p"[..], b"p"].into_iter(), &mut room).unwrap();
    assert_eq!(room[..8], *b"\x89SNAPBT\n");
    assert!(DOCUMENT.contains(r"`\x89SNAPBT\n`"));
    assert!(DOCUMENT.contains(core::str::from_utf8(&Trailer::MAGIC).unwrap()));
}
