//! Writes the tables of an image: strings, sections of rows, sections of bytes.

use alloc::vec::Vec;

use image::{Entry, Record, Section, Tables, Text};

/// Builds tables. [`TablesWriter::extending`] starts from those that the freezer wrote.
#[derive(Clone, Debug, Default)]
pub struct TablesWriter {
    strings: Vec<u8>,
    sections: Vec<(Section, usize, Vec<u8>)>,
}

impl TablesWriter {
    /// Empty tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts from tables that were read; [`Text`]s in their rows stay valid.
    pub fn extending(tables: &Tables<'_>) -> Self {
        let mut writer = TablesWriter { strings: tables.bytes(Section::Strings).to_vec(), sections: Vec::new() };
        for section in Section::ALL.into_iter().skip(1) {
            let content = tables.bytes(section);
            if !content.is_empty() {
                writer.sections.push((section, tables.record_size(section), content.to_vec()));
            }
        }
        writer
    }

    /// Adds a string (which must not contain NUL) and returns its place.
    pub fn text(&mut self, string: &[u8]) -> Text {
        let text = Text { offset: self.strings.len() as u32, length: string.len() as u32 };
        self.strings.extend_from_slice(string);
        self.strings.push(0);
        text
    }

    /// Adds a row to a section.
    pub fn push<R: Record>(&mut self, section: Section, row: &R) {
        let bytes = self.section(section, R::SIZE);
        let start = bytes.len();
        bytes.resize(start + R::SIZE, 0);
        row.encode(&mut bytes[start..]);
    }

    /// Makes a row the only one of its section.
    pub fn replace<R: Record>(&mut self, section: Section, row: &R) {
        self.replace_all(section, core::slice::from_ref(row));
    }

    /// Makes these rows the only ones of their section.
    pub fn replace_all<R: Record>(&mut self, section: Section, rows: &[R]) {
        self.section(section, R::SIZE).clear();
        rows.iter().for_each(|row| self.push(section, row));
    }

    /// Sets the bytes of a section that has no rows.
    pub fn set_bytes(&mut self, section: Section, content: &[u8]) {
        let bytes = self.section(section, 1);
        bytes.clear();
        bytes.extend_from_slice(content);
    }

    fn section(&mut self, section: Section, record_size: usize) -> &mut Vec<u8> {
        let index = self.sections.iter().position(|(existing, ..)| *existing == section).unwrap_or_else(|| {
            self.sections.push((section, record_size, Vec::new()));
            self.sections.len() - 1
        });
        &mut self.sections[index].2
    }

    /// The tables as bytes.
    pub fn finish(mut self) -> Vec<u8> {
        self.sections.insert(0, (Section::Strings, 1, core::mem::take(&mut self.strings)));
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&(self.sections.len() as u64).to_le_bytes());
        let mut offset = (Tables::DIRECTORY_START + self.sections.len() * Entry::SIZE).next_multiple_of(8);
        for (section, record_size, content) in &self.sections {
            let entry = Entry {
                section: *section as u32,
                record_size: *record_size as u32,
                offset: offset as u64,
                size: content.len() as u64,
            };
            let start = bytes.len();
            bytes.resize(start + Entry::SIZE, 0);
            entry.encode(&mut bytes[start..]);
            offset = (offset + content.len()).next_multiple_of(8);
        }
        for (.., content) in &self.sections {
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            bytes.extend_from_slice(content);
        }
        bytes
    }
}
