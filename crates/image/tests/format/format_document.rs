//! Parses the document of a format, for the tests that compare it with the code. The archive's tests use this file,
//! too.

use std::collections::BTreeMap;

/// A table: its heading and its rows. The first row names the columns.
struct Table {
    heading: &'static str,
    rows: Vec<Vec<&'static str>>,
}

fn tables(document: &'static str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let (mut heading, mut inside) = ("", false);
    for line in document.lines() {
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

/// The fields of all records, keyed by the record's heading: "name offset size".
pub fn records(document: &'static str) -> BTreeMap<&'static str, Vec<String>> {
    let mut records = BTreeMap::new();
    for table in tables(document).into_iter().filter(|table| table.rows[0] == ["field", "offset", "size", "meaning"]) {
        let rows = table.rows[2..].iter().map(|row| row[..3].join(" ")).collect();
        assert!(records.insert(table.heading, rows).is_none(), "two tables for {}", table.heading);
    }
    records
}

/// The first two columns of all tables whose first column has this name.
pub fn rows_named(document: &'static str, column: &str) -> Vec<(&'static str, &'static str)> {
    let tables = tables(document).into_iter().filter(|table| table.rows[0][0] == column);
    tables.flat_map(|table| table.rows.into_iter().skip(2)).map(|row| (row[0], row[1])).collect()
}

/// The modules of constants in a source file: their names, and the names and values of their constants.
pub fn modules(source: &'static str) -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    let modules = source.split("\npub mod ").skip(1).map(|module| {
        let (name, body) = module.split_once(" {").unwrap();
        let constants = body.split("\n}").next().unwrap().split("pub const ").skip(1).map(|constant| {
            let (name, rest) = constant.split_once(": ").unwrap();
            (name, rest.split_once(" = ").unwrap().1.split(';').next().unwrap())
        });
        (name, constants.collect())
    });
    modules.collect()
}
