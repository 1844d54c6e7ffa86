//! The tables: a directory of sections, each an array of one kind of record or a run of bytes.
//!
//! Layout: a `u32` count and a `u32` zero, then one [`Entry`] a section, then the sections, each at a
//! multiple of 8 from the start of the tables.

use core::marker::PhantomData;
use record::record;

use crate::{Error, Head, HEAD_OFFSET};
use crate::{Record, Text};

/// The sections of the tables. The numbers are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Section {
    /// Bytes: all strings, each followed by a NUL.
    Strings = 1,
    /// One [`crate::arch::x86_64::Registers`], in an image of x86-64.
    Registers = 2,
    /// One [`crate::Process`].
    Process = 3,
    /// One [`crate::Platform`].
    Platform = 4,
    /// [`crate::Mapping`] rows.
    Mappings = 5,
    /// [`crate::MappedFile`] rows.
    Files = 6,
    /// [`crate::Descriptor`] rows.
    Descriptors = 7,
    /// [`crate::SignalAction`] rows.
    Signals = 8,
    /// [`crate::Input`] rows.
    Inputs = 9,
    /// [`crate::Variable`] rows.
    Variables = 10,
    /// [`crate::Item`] rows: name patterns of variables that count as inputs whether or not they were set.
    Patterns = 11,
    /// [`crate::Item`] rows: guard arguments.
    Guards = 12,
    /// Bytes: JSON for `snapboot inspect`; nothing in it is needed to thaw.
    Info = 13,
    /// Bytes: the auxiliary vector of the frozen process, which debuggers read to find the program.
    Auxv = 14,
    /// [`crate::HotRange`] rows.
    Hot = 15,
    /// [`crate::TouchedRange`] rows.
    Touched = 16,
    /// One [`crate::Settings`] row.
    Settings = 17,
    /// [`crate::CpuLeaf`] rows.
    Cpu = 18,
    /// [`crate::Directory`] rows.
    Directories = 19,
    /// [`crate::HostFact`] rows.
    Facts = 20,
    /// [`crate::FileLookup`] rows, in the order of the inputs that they are about.
    Lookups = 21,
    /// [`crate::TrainedStart`] rows.
    Trained = 22,
    /// [`crate::Alternative`] rows.
    Alternatives = 23,
    /// [`crate::Capabilities`] rows.
    Capabilities = 24,
    /// One [`crate::arch::aarch64::Aarch64Registers`], in an image of aarch64.
    Aarch64Registers = 25,
    /// [`crate::TouchedFileRange`] rows, those of a file together.
    TouchedFiles = 26,
}

impl Section {
    /// All sections, in the order of their numbers.
    pub const ALL: [Section; 26] = [
        Section::Strings,
        Section::Registers,
        Section::Process,
        Section::Platform,
        Section::Mappings,
        Section::Files,
        Section::Descriptors,
        Section::Signals,
        Section::Inputs,
        Section::Variables,
        Section::Patterns,
        Section::Guards,
        Section::Info,
        Section::Auxv,
        Section::Hot,
        Section::Touched,
        Section::Settings,
        Section::Cpu,
        Section::Directories,
        Section::Facts,
        Section::Lookups,
        Section::Trained,
        Section::Alternatives,
        Section::Capabilities,
        Section::Aarch64Registers,
        Section::TouchedFiles,
    ];

    /// The section's name in messages and in `docs/internals/image-format.md`.
    pub fn name(self) -> &'static str {
        match self {
            Section::Strings => "strings",
            Section::Registers => "registers",
            Section::Process => "process",
            Section::Platform => "platform",
            Section::Mappings => "mappings",
            Section::Files => "files",
            Section::Descriptors => "descriptors",
            Section::Signals => "signals",
            Section::Inputs => "inputs",
            Section::Variables => "variables",
            Section::Patterns => "patterns",
            Section::Guards => "guards",
            Section::Info => "info",
            Section::Auxv => "auxv",
            Section::Hot => "hot",
            Section::Touched => "touched",
            Section::Settings => "settings",
            Section::Cpu => "cpu",
            Section::Directories => "directories",
            Section::Facts => "facts",
            Section::Lookups => "lookups",
            Section::Trained => "trained",
            Section::Alternatives => "alternatives",
            Section::Capabilities => "capabilities",
            Section::Aarch64Registers => "aarch64-registers",
            Section::TouchedFiles => "touched-files",
        }
    }
}

record! {
    /// A directory entry: a section and its place in the tables.
    pub struct Entry {
        /// A [`Section`] number.
        pub section: u32,
        /// Size of one record, 1 for bytes.
        pub record_size: u32,
        /// Offset from the start of the tables, a multiple of 8.
        pub offset: u64,
        /// Size in bytes, a multiple of `record_size`.
        pub size: u64,
    }
}

/// The checked tables of an image: every section lies inside, every record is whole.
#[derive(Clone, Copy, Debug)]
pub struct Tables<'a> {
    bytes: &'a [u8],
    sections: [(usize, usize, usize); Section::ALL.len() + 1],
}

impl<'a> Tables<'a> {
    /// Where the directory starts, relative to the start of the tables (bytes).
    pub const DIRECTORY_START: usize = 8;

    /// Checks `bytes` against the checksum and the sizes in `head` and reads the directory.
    pub fn parse(bytes: &'a [u8], head: &Head) -> Result<Tables<'a>, Error> {
        if bytes.len() as u64 != head.tables_size {
            return Err(Error::Truncated { what: "the tables", expected: head.tables_size, found: bytes.len() as u64 });
        }
        if crate::checksum(bytes) != head.tables_sum {
            return Err(Error::Damaged { what: "tables" });
        }
        Self::parse_unchecked_sum(bytes)
    }

    /// Like [`Tables::parse`], for tables that have no checksum yet: the freezer's, before the command completes the
    /// image.
    pub fn parse_unchecked_sum(bytes: &'a [u8]) -> Result<Tables<'a>, Error> {
        let truncated = |expected: usize| Error::Truncated {
            what: "the directory of the tables",
            expected: expected as u64,
            found: bytes.len() as u64,
        };
        let mut count = [0; 4];
        count.copy_from_slice(bytes.get(..4).ok_or(truncated(Self::DIRECTORY_START))?);
        let count = u32::from_le_bytes(count) as usize;
        if count > Section::ALL.len() {
            return Err(Error::OutOfRange { what: "the number of sections", value: count as u64 });
        }
        let directory_end = Self::DIRECTORY_START + count * Entry::SIZE;
        let directory = bytes.get(Self::DIRECTORY_START..directory_end).ok_or(truncated(directory_end))?;
        let mut tables = Tables { bytes, sections: [(0, 0, 0); Section::ALL.len() + 1] };
        for entry in directory.chunks_exact(Entry::SIZE).map(Entry::decode) {
            let slot = tables
                .sections
                .get_mut(entry.section as usize)
                .filter(|_| entry.section != 0)
                .ok_or(Error::OutOfRange { what: "a section number", value: entry.section.into() })?;
            let end = entry.offset.saturating_add(entry.size);
            if entry.offset < directory_end as u64 || end > bytes.len() as u64 || entry.offset % 8 != 0 {
                return Err(Error::OutOfRange { what: "the place of a section", value: entry.offset });
            }
            if entry.record_size == 0 || entry.size % u64::from(entry.record_size) != 0 || slot.2 != 0 {
                return Err(Error::OutOfRange { what: "the size of a section", value: entry.size });
            }
            *slot = (entry.offset as usize, entry.size as usize, entry.record_size as usize);
        }
        Ok(tables)
    }

    /// The bytes of a section; empty if the image lacks it.
    pub fn bytes(&self, section: Section) -> &'a [u8] {
        let (offset, size, _) = self.sections[section as usize];
        &self.bytes[offset..offset + size]
    }

    /// Size of one record of a section, 1 for bytes; 0 if the image lacks it.
    pub fn record_size(&self, section: Section) -> usize {
        self.sections[section as usize].2
    }

    /// The rows of a section. Fails if its records have a size other than `R`'s.
    pub fn rows<R: Record>(&self, section: Section) -> Result<Rows<'a, R>, Error> {
        let (_, size, record_size) = self.sections[section as usize];
        if size != 0 && record_size != R::SIZE {
            return Err(Error::OutOfRange { what: "the record size of a section", value: record_size as u64 });
        }
        Ok(Rows { bytes: self.bytes(section), _record: PhantomData })
    }

    /// The single row of a required section.
    pub fn one<R: Record>(&self, section: Section) -> Result<R, Error> {
        self.rows(section)?.next().ok_or(Error::Missing { what: section.name() })
    }

    /// A string without its NUL. Fails if it lies outside the strings or no NUL follows.
    pub fn text(&self, text: Text) -> Result<&'a [u8], Error> {
        let with_nul = self.text_with_nul(text)?;
        Ok(&with_nul[..with_nul.len() - 1])
    }

    /// A string with its final NUL, as the kernel expects it.
    pub fn text_with_nul(&self, text: Text) -> Result<&'a [u8], Error> {
        let (start, length) = (text.offset as usize, text.length as usize);
        self.bytes(Section::Strings)
            .get(start..)
            .and_then(|rest| rest.get(..length + 1))
            .filter(|string| string[length] == 0)
            .ok_or(Error::OutOfRange { what: "the place of a string", value: text.offset.into() })
    }
}

/// Iterates over the rows of a section.
#[derive(Clone, Debug)]
pub struct Rows<'a, R> {
    bytes: &'a [u8],
    _record: PhantomData<R>,
}

impl<R: Record> Iterator for Rows<'_, R> {
    type Item = R;
    fn next(&mut self) -> Option<R> {
        let (row, rest) = self.bytes.split_at_checked(R::SIZE)?;
        self.bytes = rest;
        Some(R::decode(row))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.bytes.len() / R::SIZE;
        (count, Some(count))
    }
}

impl<R: Record> ExactSizeIterator for Rows<'_, R> {}

impl<R: Record> Rows<'_, R> {
    /// Row `index`, or None past the end.
    pub fn get(&self, index: usize) -> Option<R> {
        let start = index.checked_mul(R::SIZE)?;
        self.bytes.get(start..)?.get(..R::SIZE).map(R::decode)
    }
}

record! {
    /// The end of the freezer's output: the place of its tables. The command replaces tables and trailer when it
    /// completes the image.
    pub struct Trailer {
        /// `SNAPDUMP`.
        pub magic: [u8; 8],
        /// File offset of the first data page.
        pub pages_offset: u64,
        /// Bytes of data pages.
        pub pages_size: u64,
        /// File offset of the tables.
        pub tables_offset: u64,
        /// Bytes of the tables.
        pub tables_size: u64,
    }
}

impl Trailer {
    /// The magic of a trailer.
    pub const MAGIC: [u8; 8] = *b"SNAPDUMP";
}

const _: () = assert!(HEAD_OFFSET.is_multiple_of(8));
