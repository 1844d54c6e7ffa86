//! The files whose code is mapped into the frozen process: its program and its libraries.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use failure::{Failure, Result};
use image::{mapping_kind, MappedFile, Mapping, Section, Tables};

/// A file whose code is mapped into the frozen process.
pub struct Library {
    pub path: PathBuf,
    /// Its content.
    pub file: Vec<u8>,
    /// The mapped parts of its code: ranges of the file, with the address of each.
    pub code: Vec<(Range<usize>, u64)>,
}

impl Library {
    /// All of them, sorted by path.
    pub fn all(dumped: &Tables<'_>) -> Result<Vec<Library>> {
        const EXECUTE: u32 = 4;
        let files = dumped.rows::<MappedFile>(Section::Files)?;
        let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let code = |row: &Mapping| row.kind == mapping_kind::FILE && row.protection & EXECUTE != 0;
        for row in dumped.rows::<Mapping>(Section::Mappings)?.filter(code) {
            if let Some(file) = files.get(row.file as usize) {
                let path = PathBuf::from(OsStr::from_bytes(dumped.text(file.path)?));
                let start = row.offset as usize;
                found.entry(path).or_default().push((start..start + (row.end - row.start) as usize, row.start));
            }
        }
        let read = |(path, code): (PathBuf, Vec<(Range<usize>, u64)>)| {
            let file = trust::look::read(&path).map_err(|error| Failure::io("read", &path, &error))?;
            let code = code.into_iter().map(|(part, at)| (part.start..part.end.min(file.len()), at));
            Ok(Library { code: code.filter(|(part, _)| part.start < part.end).collect(), path, file })
        };
        found.into_iter().map(read).collect()
    }
}
