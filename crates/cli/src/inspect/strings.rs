//! `snapboot inspect --strings`: searches an image for what should not be there, such as a password that the boot has read.
//!
//! It searches the frozen memory as it lies in the process, so that it finds matches across two pages that are apart in the file; and the
//! parts that the command has added: the original command and the tables.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

use failure::{Failure, Result};
use image::{
    mapping_flag, mapping_kind, Head, MappedFile, Mapping, Process, Section, Tables, HEAD_AREA, HEAD_OFFSET, NO_FILE,
};
use image_file::ImageFile;
use regex::bytes::{Regex, RegexBuilder};

use crate::render;
use crate::spinner::Spinner;

/// The maximum length of a shown match (bytes).
const SHOWN: usize = 200;

/// A part of the image that has a name.
struct Area {
    /// Address in the process; for parts of the file alone, the offset there.
    start: u64,
    size: u64,
    /// Offset in the file.
    offset: u64,
    name: String,
}

/// Prints every match with the name of the mapping and the offset in it; returns the exit status: 0 if there is one, 1 if there is none.
pub fn search(image: &ImageFile, pattern: &std::ffi::OsStr) -> Result<u8> {
    let regex = compile(pattern)?;
    let spinner = Spinner::start(false);
    spinner.phase(format!("searching {}", image.path.display()));
    let mut page = String::new();
    let mut look_at = |run: &[Area]| -> Result<()> {
        let bytes = read(image, run).map_err(|error| Failure::io("read", &image.path, &error))?;
        for found in regex.find_iter(&bytes) {
            page += &line(run, run[0].start + found.start() as u64, found.as_bytes());
        }
        Ok(())
    };
    for variant in &image.variants {
        let memory = memory(&variant.tables())?;
        runs(&memory).try_for_each(&mut look_at)?;
        let Head { tables_offset: offset, tables_size: size, .. } = variant.head;
        look_at(&[Area { start: 0, size, offset, name: "(tables)".to_owned() }])?;
    }
    look_at(&[Area { start: 0, size: HEAD_AREA as u64, offset: HEAD_OFFSET as u64, name: "(command)".to_owned() }])?;
    spinner.stop();
    render::print(&page)?;
    Ok(u8::from(page.is_empty()))
}

fn compile(pattern: &std::ffi::OsStr) -> Result<Regex> {
    let wrong = |why: String| {
        Failure::refusal(format!(
            "--strings takes a regular expression as Rust's regex crate has it, not {}: {why}. \
             Put a \\ before characters that are to stand for themselves.",
            pattern.display()
        ))
    };
    let text = std::str::from_utf8(pattern.as_bytes()).map_err(|_| wrong("it is not UTF-8".to_owned()))?;
    // Memory holds bytes, and text in any encoding: `.` and `\w` match bytes.
    let regex = RegexBuilder::new(text).unicode(false).build().map_err(|error| wrong(error.to_string()))?;
    if regex.is_match(b"") {
        return Err(wrong("it matches the empty string, so it would match everywhere".to_owned()));
    }
    Ok(regex)
}

/// The memory in the image, by address.
fn memory(tables: &Tables<'_>) -> Result<Vec<Area>> {
    let files = tables.rows::<MappedFile>(Section::Files)?;
    let process: Process = tables.one(Section::Process)?;
    let name = |row: &Mapping| -> Result<String> {
        let file = files.get(row.file as usize).filter(|_| row.file != NO_FILE);
        Ok(match file {
            Some(file) => String::from_utf8_lossy(tables.text(file.path)?).into_owned(),
            None if row.kind == mapping_kind::COPY && row.flags & mapping_flag::SHARED != 0 => {
                format!("[shared {:#x}]", row.start)
            }
            None if row.kind == mapping_kind::COPY => "[stack]".to_owned(),
            None if row.kind == mapping_kind::VDSO_COPY => "[vdso]".to_owned(),
            None if row.start < process.brk && row.end > process.start_brk => "[heap]".to_owned(),
            None => format!("[anonymous {:#x}]", row.start),
        })
    };
    let mut areas = Vec::new();
    for row in tables.rows::<Mapping>(Section::Mappings)?.filter(Mapping::has_pages) {
        areas.push(Area { start: row.start, size: row.end - row.start, offset: row.offset, name: name(&row)? });
    }
    areas.sort_by_key(|area| area.start);
    Ok(areas)
}

/// Areas that follow each other without a gap.
fn runs(areas: &[Area]) -> impl Iterator<Item = &[Area]> {
    areas.chunk_by(|one, next| one.start + one.size == next.start)
}

fn read(image: &ImageFile, run: &[Area]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for area in run {
        let start = bytes.len();
        bytes.resize(start + area.size as usize, 0);
        image.file.read_exact_at(&mut bytes[start..], area.offset)?;
    }
    Ok(bytes)
}

/// `NAME+0xOFFSET: MATCH`, with escapes for unprintable characters.
fn line(run: &[Area], address: u64, found: &[u8]) -> String {
    let index = run.partition_point(|area| area.start <= address) - 1;
    let (area, more) = (&run[index], if found.len() > SHOWN { "..." } else { "" });
    let shown = found[..found.len().min(SHOWN)].escape_ascii();
    format!("{}+{:#x}: {shown}{more}\n", area.name, address - area.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_would_match_everywhere_or_nothing_are_refused() {
        assert!(compile("secret-[0-9]+".as_ref()).unwrap().is_match(b"\xff\0secret-12\xff"));
        assert!(compile("s.t".as_ref()).unwrap().is_match(b"s\xfft"), "any byte");
        for (pattern, why) in [("x*", "empty string"), ("", "empty string"), ("a(", "unclosed group")] {
            let Err(failure) = compile(pattern.as_ref()) else { panic!("{pattern} was accepted") };
            assert!(failure.message.contains(why) && failure.kind == failure::Kind::Refused, "{failure}");
        }
    }

    #[test]
    fn a_match_is_named_by_the_area_in_which_it_starts() {
        let area = |start, name: &str| Area { start, size: 0x1000, offset: 0, name: name.to_owned() };
        let areas = [area(0x1000, "a"), area(0x2000, "b"), area(0x9000, "c")];
        let runs: Vec<_> = runs(&areas).collect();
        assert_eq!(runs.iter().map(|run| run.len()).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(line(runs[0], 0x1fff, b"k\0ey"), "a+0xfff: k\\x00ey\n");
        assert_eq!(line(runs[0], 0x2000, b"key"), "b+0x0: key\n");
        assert!(line(runs[1], 0x9001, &[b'x'; 300]).ends_with("x...\n"));
    }
}
