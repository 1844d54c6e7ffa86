//! Libraries of a frozen process that have selected instructions by CPU, though the image is for a level
//! (programs/cpu_level.rs).
//!
//! Code that saves registers with XSAVE measures the space for them when a process starts, and on a CPU with larger
//! registers that is too small. In glibc this concerns lazy binding, which no boot uses (judge's environment.rs sets
//! LD_BIND_NOW), and descriptors of thread-local memory (TLSDESC) since glibc 2.40: v3 and v4 refuse a library that has
//! these. For v2 glibc does not use XSAVE.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use failure::{Failure, Result};
use image::{mapping_kind, MappedFile, Mapping, Section, Tables};
use inputs::cpu::Level;
use memchr::memmem::{find, find_iter};
use object::elf::R_X86_64_TLSDESC;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, RelocationFlags};

use crate::request::Cpu;

/// The C library, by the prefix of its loader's name; it honours a variable, too.
const LOADER: &str = "ld-linux-x86-64.so";

/// The instructions CPUID and XGETBV. Code that uses AVX must execute both, and does so in one place; either byte
/// sequence alone is mostly a coincidence.
const CPUID: &[u8] = b"\x0f\xa2";
const XGETBV: &[u8] = b"\x0f\x01\xd0";
const NEAR: usize = 256;

/// Refuses a frozen process whose libraries have selected instructions by themselves, or measured the space for
/// registers.
pub fn check_libraries(dumped: &Tables<'_>, level: Level) -> Result<()> {
    let word = Cpu::Level(level).word();
    let (mut asking, mut measuring) = (BTreeSet::new(), BTreeSet::new());
    for (path, code) in libraries(dumped)? {
        let name = path.file_name().unwrap_or_default().as_bytes();
        let file = trust::look::read(&path).map_err(|error| Failure::io("read", &path, &error))?;
        let mut code = code.into_iter().filter_map(|part| file.get(part.start..part.end.min(file.len())));
        let mut heeding = recipes::cpu().flat_map(|cpu| &cpu.libraries).map(String::as_str).chain([LOADER]);
        if !heeding.any(|start| name.starts_with(start.as_bytes())) && code.any(asks_the_cpu) {
            asking.insert(path.display().to_string());
        }
        if level != Level::V2 && has_tls_descriptors(&file) {
            measuring.insert(path.display().to_string());
        }
    }
    let names = |found: BTreeSet<String>| found.into_iter().collect::<Vec<_>>().join(", ");
    if !asking.is_empty() {
        return Err(Failure::refusal(format!(
            "cannot freeze for --cpu {word}: {} asks the CPU what it can and may have picked instructions that others do not have; \
             Snapboot knows no variable that keeps it from that. Load it after the freeze point, or freeze with --cpu native.",
            names(asking)
        )));
    }
    if !measuring.is_empty() {
        return Err(Failure::refusal(format!(
            "cannot freeze for --cpu {word}: {} was compiled with TLS descriptors (-mtls-dialect=gnu2), for which the C library has measured \
             the registers of this CPU. Load it after the freeze point, or freeze with --cpu v2 or native.",
            names(measuring)
        )));
    }
    Ok(())
}

/// Files whose code is mapped, and the mapped ranges in them.
fn libraries(dumped: &Tables<'_>) -> Result<BTreeMap<PathBuf, Vec<Range<usize>>>> {
    const EXECUTE: u32 = 4;
    let files = dumped.rows::<MappedFile>(Section::Files)?;
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let code = |row: &Mapping| row.kind == mapping_kind::FILE && row.protection & EXECUTE != 0;
    for row in dumped.rows::<Mapping>(Section::Mappings)?.filter(code) {
        if let Some(file) = files.get(row.file as usize) {
            let path = PathBuf::from(OsStr::from_bytes(dumped.text(file.path)?));
            let start = row.offset as usize;
            found.entry(path).or_default().push(start..start + (row.end - row.start) as usize);
        }
    }
    Ok(found)
}

/// Whether a library has thread-local variables that the loader resolves through descriptors.
fn has_tls_descriptors(file: &[u8]) -> bool {
    let Ok(elf) = ElfFile64::<Endianness>::parse(file) else { return false };
    let mut relocations = elf.dynamic_relocations().into_iter().flatten();
    relocations.any(|(_, relocation)| relocation.flags() == RelocationFlags::Elf { r_type: R_X86_64_TLSDESC })
}

fn asks_the_cpu(code: &[u8]) -> bool {
    find_iter(code, XGETBV).any(|at| {
        let end = code.len().min(at + NEAR);
        find(&code[at.saturating_sub(NEAR)..end], CPUID).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_avx_asks_with_both_instructions_in_one_place() {
        let code = |distance: usize| [CPUID, &vec![0x90; distance], XGETBV, &[0x90; 1000]].concat();
        assert!(asks_the_cpu(&code(100)) && !asks_the_cpu(&code(300)));
        assert!(asks_the_cpu(&[XGETBV, CPUID].concat()));
        assert!(!asks_the_cpu(&[0x90; 5000]) && !asks_the_cpu(CPUID) && !asks_the_cpu(b""));
    }
}
