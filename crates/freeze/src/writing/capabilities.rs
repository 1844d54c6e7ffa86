//! Words in which a library of the frozen process keeps the CPU's features, and reads them at each use. Recipes know how
//! (`words` of their `cpu`); a thaw renews them for the CPU that is there ([`Capabilities`]).
//!
//! The boot's variable gives such words a content that is the same on every CPU. A library has them if the code of
//! their function occurs once in it, and that content once in its memory. Anything else is left alone: the library keeps
//! to the level, as any other that honours its variable.

use std::ops::Range;
use std::path::PathBuf;

use failure::{Failure, Result};
use image::{mapping_kind, Capabilities, Mapping, Section};
use inputs::cpu::Level;
use memchr::memmem::find_iter;
use object::elf::{FileHeader64, PF_W, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use object::Endianness;
use recipes::CpuWords;

use super::dump::Dump;
use super::libraries::Library;

/// Space that the function takes (bytes). Its code asks the CPU, but keeps nothing that a thaw does not renew.
const FUNCTION: usize = 1024;

/// Words that a thaw renews.
pub struct Renewed {
    pub row: Capabilities,
    /// The library that has them.
    pub library: PathBuf,
    /// Where the function is in the library's file.
    pub function: Range<usize>,
}

/// The words of all libraries that a recipe describes.
pub fn find(dump: &Dump, libraries: &[Library], level: Level) -> Result<Vec<Renewed>> {
    let known: Vec<&CpuWords> = recipes::cpu().filter_map(|cpu| cpu.words.as_ref()).collect();
    let mut found = Vec::new();
    for library in libraries {
        for words in &known {
            found.extend(in_library(dump, library, words, level)?);
        }
    }
    Ok(found)
}

/// The words of one library.
fn in_library(dump: &Dump, library: &Library, words: &CpuWords, level: Level) -> Result<Option<Renewed>> {
    let functions = library.code.iter().flat_map(|(part, address)| {
        let starts = find_iter(&library.file[part.clone()], &words.function);
        starts.map(move |start| (part.start + start, address + start as u64))
    });
    let Some((start, function)) = only(functions) else { return Ok(None) };
    let Some(bias) = bias(&library.file, start, function) else { return Ok(None) };
    let mut places = Vec::new();
    for data in writable(&library.file, bias) {
        places.extend(occurrences(dump, data, &words.bytes(level))?);
    }
    let Some((address, left)) = only(places.into_iter()) else { return Ok(None) };
    let (least, most) = Capabilities::SIZES;
    let size = u64::from(words.count).saturating_mul(4).min(left).min(most) & !3;
    let row = Capabilities { words: address, size, function, always: words.always };
    let function = start..start + FUNCTION;
    Ok((size >= least).then(|| Renewed { row, library: library.path.clone(), function }))
}

/// The item of an iterator that has one.
fn only<T>(mut items: impl Iterator<Item = T>) -> Option<T> {
    items.next().filter(|_| items.next().is_none())
}

/// The distance between addresses in an ELF file and in the process. `address`: that of the byte at `offset`.
fn bias(file: &[u8], offset: usize, address: u64) -> Option<u64> {
    let offset = offset as u64;
    let part = loaded(file).into_iter().find(|part| (part.offset..part.offset + part.file_size).contains(&offset))?;
    Some(address.wrapping_sub(part.address + (offset - part.offset)))
}

/// The addresses of an ELF file's variables in the process.
fn writable(file: &[u8], bias: u64) -> impl Iterator<Item = Range<u64>> {
    let parts = loaded(file).into_iter().filter(|part| part.is_writable);
    parts.map(move |part| {
        let start = part.address.wrapping_add(bias);
        start..start.saturating_add(part.size)
    })
}

/// A part of an ELF file that is loaded.
struct Loaded {
    offset: u64,
    file_size: u64,
    address: u64,
    size: u64,
    is_writable: bool,
}

fn loaded(file: &[u8]) -> Vec<Loaded> {
    let Ok(header) = FileHeader64::<Endianness>::parse(file) else { return Vec::new() };
    let Ok(endian) = header.endian() else { return Vec::new() };
    let headers = header.program_headers(endian, file).unwrap_or_default();
    let headers = headers.iter().filter(|header| header.p_type(endian) == PT_LOAD);
    let loaded = headers.map(|header| Loaded {
        offset: header.p_offset(endian),
        file_size: header.p_filesz(endian),
        address: header.p_vaddr(endian),
        size: header.p_memsz(endian),
        is_writable: header.p_flags(endian).0 & PF_W.0 != 0,
    });
    loaded.filter(|part| part.offset.checked_add(part.file_size).is_some()).collect()
}

/// The addresses at which `content` occurs in a range of the process' memory, each with the size of what is mapped from
/// there on.
fn occurrences(dump: &Dump, data: Range<u64>, content: &[u8]) -> Result<Vec<(u64, u64)>> {
    let mut found = Vec::new();
    let tables = dump.tables()?;
    let own = |row: &Mapping| row.kind == mapping_kind::IMAGE && row.start < data.end && data.start < row.end;
    for row in tables.rows::<Mapping>(Section::Mappings)?.filter(own) {
        let (start, end) = (row.start.max(data.start), row.end.min(data.end));
        let bytes = dump
            .bytes(row.offset + (start - row.start), end - start)
            .map_err(|error| Failure::io("read", &dump.path, &error))?;
        let aligned = find_iter(&bytes, content).map(|at| start + at as u64).filter(|at| at.is_multiple_of(4));
        found.extend(aligned.map(|at| (at, row.end - at)));
    }
    Ok(found)
}
