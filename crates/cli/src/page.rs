//! Tables for people: columns under a header and a line, nothing else.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

const UNDER_HEADER: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─'));

/// A table of numbers: the columns after the first, up to `numbers` of them, are aligned to the right.
pub fn numbers(header: &[&str], numbers: usize, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(UNDER_HEADER).set_content_arrangement(ContentArrangement::Disabled).set_header(header.to_vec());
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(1).take(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    trimmed(&table)
}

/// Names and what belongs to them, in two columns.
pub fn facts(rows: impl IntoIterator<Item = (&'static str, String)>) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new()).set_content_arrangement(ContentArrangement::Disabled);
    table.add_rows(rows.into_iter().map(|(name, value)| [name.to_owned(), value]));
    trimmed(&table)
}

/// Without the blanks that fill the last column.
fn trimmed(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_aligned_to_the_right_and_lines_end_where_their_text_does() {
        let rows = [["libc.so.6", "5", "a b"], ["x", "12", "c"]].map(|row| row.map(str::to_owned).to_vec());
        let page = numbers(&["library", "mappings", "note"], 1, rows);
        let expected = " library    mappings  note\n───────────────────────────\n libc.so.6         5  a b\n x                12  c\n";
        assert_eq!(page, expected);
    }
}
