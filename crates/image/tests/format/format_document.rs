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
pub fn rows_named(document: &'static str, column: &str) -> Vec<(String, String)> {
    let tables = tables(document).into_iter().filter(|table| table.rows[0][0] == column);
    let rows = tables.flat_map(|table| table.rows.into_iter().skip(2));
    rows.map(|row| (row[0].to_owned(), row[1].to_owned())).collect()
}
