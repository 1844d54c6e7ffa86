//! Standard output, and tables for people: columns under a header and a line, nothing else.

use std::ffi::OsStr;
use std::io::{IsTerminal, Write};

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};
use failure::{reason, Failure, Result};
use serde::Serialize;

use crate::human;

/// Prints to standard output, without control characters of a terminal. Ends quietly, as other tools do, when nobody reads it any more
/// (`snapboot check | head`).
pub fn print(text: &str) -> Result<()> {
    print_as_it_is(&human::harmless_lines(text))
}

/// Prints to standard output what the caller has already made harmless, such as text with colours.
pub fn print_as_it_is(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {
            // It returns only if the signal could not be raised.
            let _ = signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGPIPE);
            std::process::exit(0)
        }
        Err(error) => Err(Failure::failed(format!("cannot write to standard output: {}.", reason(&error)))),
        Ok(()) => Ok(()),
    }
}

/// Prints a line to standard error, without what a terminal would obey. Nothing hangs on whether anybody reads it.
pub fn message(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", human::harmless_lines(line));
}

/// Tells what is done, and why, where SNAPBOOT_LOG asks for it.
pub fn log(text: &str) {
    let asks = |value: &OsStr| !value.is_empty() && value != "0";
    if std::env::var_os("SNAPBOOT_LOG").is_some_and(|value| asks(&value)) {
        message(&format!("snapboot: {text}"));
    }
}

/// Prints a value as JSON.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    let json = serde_json::to_string_pretty(value);
    let json = json.map_err(|error| Failure::failed(format!("cannot write JSON: {error}.")))? + "\n";
    print_as_it_is(&human::escaped_in_json(&json))
}

/// Whether a stream is a terminal on which the cursor can be moved.
pub fn can_draw(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && std::env::var_os("TERM").is_some_and(|terminal| !terminal.is_empty() && terminal != "dumb")
}

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

/// Breaks a text into indented lines as wide as the terminal of standard output; into one line without a terminal.
pub fn wrapped(text: &str, indent: &str) -> Vec<String> {
    let columns = rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| usize::from(size.ws_col));
    in_columns(text, indent, columns.filter(|&columns| columns > 0).unwrap_or(usize::MAX))
}

/// Breaks a text into indented lines of at most so many characters, unless a word is longer.
pub fn in_columns(text: &str, indent: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count().saturating_add(1 + word.chars().count()) <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{indent}{word}")),
        }
    }
    lines
}

/// Names and their values, in two columns.
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
    fn nothing_of_a_text_is_cut_off() {
        let text = "a file has changed: /very/long/name it is";
        assert_eq!(in_columns(text, "  ", usize::MAX), ["  a file has changed: /very/long/name it is"]);
        let lines = ["  a file has", "  changed:", "  /very/long/name", "  it is"];
        assert_eq!(in_columns(text, "  ", 13), lines);
    }

    #[test]
    fn numbers_are_aligned_to_the_right_and_lines_end_where_their_text_does() {
        let rows = [["libc.so.6", "5", "a b"], ["x", "12", "c"]].map(|row| row.map(str::to_owned).to_vec());
        let page = numbers(&["library", "mappings", "note"], 1, rows);
        let expected = " library    mappings  note\n───────────────────────────\n libc.so.6         5  a b\n x                12  c\n";
        assert_eq!(page, expected);
    }
}
