//! Compares `docs/internals/image-format.md` with the code: every record, section and constant has its row there, and
//! there are no other rows.

use std::collections::BTreeMap;

use crate::format_document::{self, rows_named};
use crate::sources::{modules, records_declared};
use image::*;
use record::{Field, Record};

const DOCUMENT: &str = include_str!("../../../../docs/internals/image-format.md");

/// The sources that declare records, kinds and flags.
const SOURCES: [&str; 10] = [
    include_str!("../../src/head.rs"),
    include_str!("../../src/records.rs"),
    include_str!("../../src/descriptor_records.rs"),
    include_str!("../../src/input_records.rs"),
    include_str!("../../src/tables.rs"),
    include_str!("../../src/arch/x86_64.rs"),
    include_str!("../../src/sidecar.rs"),
    include_str!("../../src/answers.rs"),
    include_str!("../../../inputs/src/facts.rs"),
    include_str!("../../src/arch/aarch64.rs"),
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
        row::<FileLookup>(),
        row::<HotRange>(),
        row::<TouchedFileRange>(),
        row::<TouchedRange>(),
        row::<TrainedStart>(),
        row::<Directory>(),
        row::<Settings>(),
        row::<SeenHead>(),
        row::<SeenFile>(),
        row::<ThawsHead>(),
        row::<StartsHead>(),
        row::<Variable>(),
        row::<Alternative>(),
        row::<Capabilities>(),
        row::<HostFact>(),
        row::<Item>(),
        row::<arch::x86_64::Registers>(),
        row::<arch::aarch64::Aarch64Registers>(),
    ])
}

#[test]
fn every_record_has_its_table() {
    let mut coded: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (name, size, fields) in records() {
        coded.insert(name, fields.iter().map(|it| format!("{} {} {}", it.name, it.offset, it.size)).collect());
        assert_eq!(fields.iter().map(|field| field.size).sum::<usize>(), size, "{name} has padding");
    }
    assert_eq!(format_document::records(DOCUMENT), coded, "left: docs/internals/image-format.md, right: crates/image");
}

#[test]
fn every_declared_record_is_compared() {
    let mut declared: Vec<String> = SOURCES.into_iter().flat_map(records_declared).collect();
    declared.sort_unstable();
    let mut compared: Vec<&str> = records().into_iter().map(|(name, ..)| name).collect();
    compared.sort_unstable();
    assert_eq!(declared, compared);
}

#[test]
fn every_section_has_its_row() {
    let coded: Vec<(String, String)> =
        Section::ALL.iter().map(|section| ((*section as u32).to_string(), section.name().to_owned())).collect();
    assert_eq!(rows_named(DOCUMENT, "section"), coded);
}

#[test]
fn every_constant_has_its_value() {
    let value = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    let documented = ["constant", "constant of validate"].map(|column| rows_named(DOCUMENT, column)).concat();
    let documented: Vec<(&str, u64)> = documented.iter().map(|(name, number)| (name.as_str(), value(number))).collect();
    let coded = [
        ("VERSION", u64::from(VERSION)),
        ("PAGE", PAGE),
        ("HEAD_OFFSET", HEAD_OFFSET as u64),
        ("HEAD_AREA", HEAD_AREA as u64),
        ("COMMAND_OFFSET", COMMAND_OFFSET as u64),
        ("MAX_VARIANTS", MAX_VARIANTS.into()),
        ("VARIANTS_OFFSET", VARIANTS_OFFSET as u64),
        ("MAX_TABLES", MAX_TABLES),
        ("MAX_ANSWERS", MAX_ANSWERS),
        ("RESERVED_START", RESERVED_START),
        ("RESERVED_END", RESERVED_END),
        ("ADDRESS_END", arch::x86_64::ADDRESS_END),
        ("MAX_DESCRIPTORS", validate::MAX_DESCRIPTORS.into()),
    ];
    assert_eq!(documented, coded);
}

/// Kinds and flags are modules of constants in `records.rs`, `descriptor_records.rs`, `input_records.rs`,
/// `answers.rs` and the facts of the crate `inputs`. Each module is a table of the same name.
#[test]
fn every_kind_and_flag_has_its_row() {
    let modules = [1, 2, 3, 7, 8].map(|number: usize| modules(SOURCES[number])).concat();
    assert_eq!(modules.len(), 13);
    for (name, coded) in modules {
        assert_eq!(
            rows_named(DOCUMENT, &name),
            coded,
            "{name}: left: docs/internals/image-format.md, right: crates/image"
        );
    }
}

#[test]
fn the_document_names_the_magics() {
    let mut area = [0; HEAD_AREA];
    Head::write(&[Head::default()], [&b"/p"[..], b"p"].into_iter(), &[], &mut area).unwrap();
    assert_eq!(area[..8], *b"\x89SNAPBT\n");
    assert!(DOCUMENT.contains(r"`\x89SNAPBT\n`"));
    assert!(DOCUMENT.contains(core::str::from_utf8(&Trailer::MAGIC).unwrap()));
}
