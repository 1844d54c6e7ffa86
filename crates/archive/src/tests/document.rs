//! Holds `docs/archive-format.md` to the code: every record, kind and constant has its row there, and no row is left over.

use std::collections::BTreeMap;

use image::record::Field;
use image::Record;

use crate::*;

const DOCUMENT: &str = include_str!("../../../../docs/archive-format.md");
const RECORDS: &str = include_str!("../records.rs");

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
            tables.last_mut().unwrap().rows.push(line.trim_matches('|').split('|').map(str::trim).collect());
        }
        inside = is_row;
    }
    tables
}

/// The first two columns of all tables whose first column has this name.
fn rows_named(column: &str) -> Vec<(&'static str, &'static str)> {
    let tables = tables().into_iter().filter(|table| table.rows[0][0] == column);
    tables.flat_map(|table| table.rows.into_iter().skip(2)).map(|row| (row[0], row[1])).collect()
}

#[test]
fn every_record_has_its_table() {
    fn row<R: Record>() -> (&'static str, &'static [Field]) {
        assert_eq!(R::FIELDS.iter().map(|field| field.size).sum::<usize>(), R::SIZE, "{} has padding", R::NAME);
        (R::NAME, R::FIELDS)
    }
    let records = [
        row::<Header>(),
        row::<SegmentHead>(),
        row::<Slot>(),
        row::<EntryHead>(),
        row::<Input>(),
        row::<DirectoryHead>(),
        row::<Packed>(),
        row::<BlockHead>(),
        row::<Run>(),
    ];
    assert_eq!(RECORDS.matches("record! {").count(), records.len());
    let mut documented: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for table in tables().into_iter().filter(|table| table.rows[0] == ["field", "offset", "size", "meaning"]) {
        let rows = table.rows[2..].iter().map(|row| row[..3].join(" ")).collect();
        assert!(documented.insert(table.heading, rows).is_none(), "two tables for {}", table.heading);
    }
    let coded: BTreeMap<&str, Vec<String>> = records
        .iter()
        .map(|(name, fields)| {
            (*name, fields.iter().map(|it| format!("{} {} {}", it.name, it.offset, it.size)).collect())
        })
        .collect();
    assert_eq!(documented, coded, "left: docs/archive-format.md, right: crates/archive");
}

/// Kinds of payloads, inputs and names are modules of constants in `records.rs`; each module is a table of the same name.
#[test]
fn every_number_has_its_row() {
    let mut modules = 0;
    for module in RECORDS.split("\npub mod ").skip(1) {
        let (name, body) = module.split_once(" {").unwrap();
        let body = body.split("\n}").next().unwrap();
        let constants = body.split("pub const ").skip(1).map(|constant| {
            let (name, rest) = constant.split_once(": ").unwrap();
            (name, rest.split_once(" = ").unwrap().1.split(';').next().unwrap())
        });
        assert_eq!(rows_named(name), constants.collect::<Vec<_>>(), "{name}");
        modules += 1;
    }
    assert_eq!(modules, 3);
    let kinds: Vec<(String, String)> =
        Kind::ALL.iter().map(|kind| (kind.name().to_owned(), (*kind as u8).to_string())).collect();
    let documented: Vec<(String, String)> =
        rows_named("kind").into_iter().map(|(name, number)| (name.to_owned(), number.to_owned())).collect();
    assert_eq!(documented, kinds);
}

#[test]
fn every_constant_has_its_value() {
    let coded = [
        ("VERSION", u64::from(VERSION)),
        ("FIRST_SEGMENT", FIRST_SEGMENT),
        ("ALIGNMENT", ALIGNMENT),
        ("MOST_SEGMENTS", MOST_SEGMENTS as u64),
        ("MOST_PAYLOAD", MOST_PAYLOAD),
        ("MOST_BLOCK", MOST_BLOCK),
        ("DEFAULT_BOUND", DEFAULT_BOUND),
        ("SETTLING", SETTLING as u64),
    ];
    let documented = rows_named("constant").into_iter().map(|(name, value)| (name, value.parse().unwrap()));
    assert_eq!(documented.collect::<Vec<(&str, u64)>>(), coded);
}

#[test]
fn the_document_names_the_magics() {
    assert_eq!(Header::MAGIC, *b"\x89SNAPAR\n");
    assert!(DOCUMENT.contains(r"`\x89SNAPAR\n`"));
    assert!(DOCUMENT.contains(&format!("`{}`", std::str::from_utf8(&SegmentHead::MAGIC).unwrap())));
}
