//! The files that command, front end and freezer exchange in the control directory: `key=value` entries, each with a
//! final NUL. A value may contain newlines and `=`, and a key may repeat. An entry with several fields has a record as
//! its value: see [`channel::fields`].

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use runtime::Main;

/// Entries in file order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entries(Vec<(String, OsString)>);

impl Entries {
    /// Parses entries. Skips what is not `key=value`, such as a truncated last entry.
    pub fn parse(bytes: &[u8]) -> Self {
        let entry = |bytes: &[u8]| {
            let equals = bytes.iter().position(|&byte| byte == b'=')?;
            let key = std::str::from_utf8(&bytes[..equals]).ok()?;
            Some((key.to_owned(), OsString::from_vec(bytes[equals + 1..].to_vec())))
        };
        let mut pieces: Vec<&[u8]> = bytes.split(|&byte| byte == 0).collect();
        // Bytes after the last NUL are incomplete.
        pieces.pop();
        Entries(pieces.into_iter().filter_map(entry).collect())
    }

    /// Reads a file. A missing file has no entries.
    pub fn read(path: &Path) -> io::Result<Self> {
        match trust::look::read(path) {
            Ok(bytes) => Ok(Entries::parse(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Entries::default()),
            Err(error) => Err(error),
        }
    }

    /// Describes the program to the front end that boots or trains it.
    pub fn of_main(main: &Main) -> Self {
        let mut entries = Entries::default();
        entries.push("main", main.kind.word());
        main.argv.iter().for_each(|argument| entries.push("argv", argument));
        entries.push("main_index", main.index.to_string());
        main.script.iter().for_each(|script| entries.push("script", script));
        entries
    }

    /// Adds an entry.
    pub fn push(&mut self, key: &str, value: impl AsRef<OsStr>) {
        self.0.push((key.to_owned(), value.as_ref().to_owned()));
    }

    /// Adds an entry with several fields.
    pub fn push_record(&mut self, key: &str, fields: &[&OsStr]) {
        self.push(key, OsString::from_vec(record(fields)));
    }

    /// The fields of each record with this key, in file order.
    pub fn records<'a>(&'a self, key: &'a str) -> impl Iterator<Item = Vec<OsString>> + 'a {
        self.all(key).map(fields)
    }

    /// The same for records with two fields.
    pub fn pairs<'a>(&'a self, key: &'a str) -> impl Iterator<Item = (OsString, OsString)> + 'a {
        self.records(key).filter_map(|fields| <[OsString; 2]>::try_from(fields).ok().map(|[one, other]| (one, other)))
    }

    /// All values of a key, in file order.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a OsStr> + 'a {
        self.0.iter().filter(move |(name, _)| name == key).map(|(_, value)| value.as_os_str())
    }

    /// All values of a key as text, for messages.
    pub fn texts<'a>(&'a self, key: &'a str) -> impl Iterator<Item = String> + 'a {
        self.all(key).map(|value| value.to_string_lossy().into_owned())
    }

    /// Keys and values, in file order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &OsStr)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_os_str()))
    }

    /// The bytes of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (key, value) in &self.0 {
            bytes.extend_from_slice(key.as_bytes());
            bytes.push(b'=');
            bytes.extend_from_slice(value.as_bytes());
            bytes.push(0);
        }
        bytes
    }
}

/// The value of an entry with several fields.
pub fn record(fields: &[&OsStr]) -> Vec<u8> {
    let mut record = Vec::new();
    for field in fields {
        let (head, size) = channel::head(field.len());
        record.extend_from_slice(&head[..size]);
        record.extend_from_slice(field.as_bytes());
    }
    record
}

/// The fields of a record.
pub fn fields(value: &OsStr) -> Vec<OsString> {
    channel::fields(value.as_bytes()).map(|field| OsString::from_vec(field.to_vec())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_newlines_and_equal_signs() {
        let mut entries = Entries::default();
        entries.push("argv", "-c");
        entries.push("argv", "a=1\nprint(a)");
        let read = Entries::parse(&entries.to_bytes());
        assert_eq!(read, entries);
        assert_eq!(read.all("argv").collect::<Vec<_>>(), ["-c", "a=1\nprint(a)"]);
    }

    #[test]
    fn an_entry_without_its_nul_was_never_finished() {
        assert_eq!(Entries::parse(b"text=whole\0text=ha").texts("text").collect::<Vec<_>>(), ["whole"]);
    }
}
