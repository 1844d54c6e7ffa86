//! Compares `docs/internals/archive-format.md` with the code: every record, kind and constant has its row there, and there are no other
//! rows.

use std::collections::BTreeMap;

use record::Field;
use record::Record;

use super::format_document::{self, rows_named};
use super::sources::{modules, records_declared};
use crate::*;

const DOCUMENT: &str = include_str!("../../../../docs/internals/archive-format.md");
const RECORDS: &str = include_str!("../records.rs");

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
    assert_eq!(records_declared(RECORDS).len(), records.len());
    let coded: BTreeMap<&str, Vec<String>> = records
        .iter()
        .map(|(name, fields)| {
            (*name, fields.iter().map(|it| format!("{} {} {}", it.name, it.offset, it.size)).collect())
        })
        .collect();
    assert_eq!(
        format_document::records(DOCUMENT),
        coded,
        "left: docs/internals/archive-format.md, right: crates/archive"
    );
}

/// Kinds of payloads, inputs and names are modules of constants in `records.rs`; each module is a table of the same name.
#[test]
fn every_number_has_its_row() {
    let modules = modules(RECORDS);
    assert_eq!(modules.len(), 3);
    for (name, constants) in modules {
        assert_eq!(rows_named(DOCUMENT, &name), constants, "{name}");
    }
    let kinds: Vec<(String, String)> =
        Kind::ALL.iter().map(|kind| (kind.name().to_owned(), (*kind as u8).to_string())).collect();
    assert_eq!(rows_named(DOCUMENT, "kind"), kinds);
}

#[test]
fn every_constant_has_its_value() {
    let coded = [
        ("VERSION", u64::from(VERSION)),
        ("FIRST_SEGMENT", FIRST_SEGMENT),
        ("ALIGNMENT", ALIGNMENT),
        ("MAX_SEGMENTS", MAX_SEGMENTS as u64),
        ("MAX_PAYLOAD", MAX_PAYLOAD),
        ("MAX_BLOCK", MAX_BLOCK),
        ("DEFAULT_BOUND", DEFAULT_BOUND),
        ("SETTLING", SETTLING as u64),
    ];
    let documented = rows_named(DOCUMENT, "constant");
    let documented = documented.iter().map(|(name, value)| (name.as_str(), value.parse().unwrap()));
    assert_eq!(documented.collect::<Vec<(&str, u64)>>(), coded);
}

#[test]
fn the_document_names_the_magics() {
    assert_eq!(Header::MAGIC, *b"\x89SNAPAR\n");
    assert!(DOCUMENT.contains(r"`\x89SNAPAR\n`"));
    assert!(DOCUMENT.contains(&format!("`{}`", std::str::from_utf8(&SegmentHead::MAGIC).unwrap())));
}
