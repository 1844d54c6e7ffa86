//! The freezer's output in the file of an image: reads it back and checks that it is complete.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use image::{MappedFile, Record, Section, Tables, Trailer, HEAD_AREA, HEAD_OFFSET};
use recorder::Identity;

/// The freezer's output.
pub struct Dump {
    pub path: PathBuf,
    pub trailer: Trailer,
    /// The group of the file.
    pub group: u32,
    tables: Vec<u8>,
}

impl Dump {
    /// Reads it, and checks that it is complete.
    pub fn read(path: PathBuf) -> Result<Dump> {
        let cannot = |error: io::Error| Failure::io("read", &path, &error);
        let file = File::open(&path).map_err(cannot)?;
        let trailer = trailer(&file, &path)?;
        let tables = read_at(&file, trailer.tables_offset, trailer.tables_size).map_err(cannot)?;
        let group = file.metadata().map_err(cannot)?.gid();
        Ok(Dump { path, trailer, group, tables })
    }

    /// Its tables.
    pub fn tables(&self) -> Result<Tables<'_>> {
        Ok(Tables::parse_unchecked_sum(&self.tables)?)
    }

    /// Bytes of the file.
    pub fn bytes(&self, offset: u64, size: u64) -> io::Result<Vec<u8>> {
        read_at(&File::open(&self.path)?, offset, size)
    }

    /// The files that the freezer recorded as mapped.
    pub fn mapped_files(&self) -> Result<Vec<(PathBuf, Identity)>> {
        let dumped = self.tables()?;
        let file = |row: MappedFile| {
            let path = PathBuf::from(OsStr::from_bytes(dumped.text(row.path)?));
            Ok((path, Identity { size: row.size, mtime: row.mtime, ctime: row.ctime }))
        };
        dumped.rows::<MappedFile>(Section::Files)?.map(file).collect()
    }
}

/// Reads and checks the trailer.
fn trailer(file: &File, path: &Path) -> Result<Trailer> {
    let cannot = |error: io::Error| Failure::io("read", path, &error);
    let size = file.metadata().map_err(cannot)?.len();
    let start = size.checked_sub(Trailer::SIZE as u64);
    let trailer = match start {
        Some(start) => Trailer::decode(&read_at(file, start, Trailer::SIZE as u64).map_err(cannot)?),
        None => Trailer::default(),
    };
    let tables_end = trailer.tables_offset.checked_add(trailer.tables_size);
    let pages_end = trailer.pages_offset.checked_add(trailer.pages_size);
    let whole = trailer.magic == Trailer::MAGIC
        && trailer.pages_offset >= (HEAD_OFFSET + HEAD_AREA) as u64
        && tables_end.is_some_and(|end| end <= start.unwrap_or(0))
        && pages_end.is_some_and(|end| end <= trailer.tables_offset);
    if whole {
        return Ok(trailer);
    }
    Err(Failure::failed(
        "the freezer ended without having written the whole process, though it reported no error. Most likely something killed \
         it (the out-of-memory killer?): free some memory and freeze again.",
    ))
}

/// Reads `size` bytes of a file at `offset`.
fn read_at(file: &File, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(size).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
}
