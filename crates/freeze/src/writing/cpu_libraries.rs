//! Libraries of a frozen process that have selected instructions by CPU, though the image is for a level
//! (programs/cpu_level.rs).
//!
//! Code that saves registers with XSAVE measures the space for them when a process starts, and on a CPU with larger
//! registers that is too small. In glibc this concerns lazy binding, which no boot uses (judge's environment.rs sets
//! LD_BIND_NOW), and descriptors of thread-local memory (TLSDESC) since glibc 2.40: v3 and v4 refuse a library that has
//! these. For v2 glibc does not use XSAVE.

use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;

use failure::Failure;
use inputs::cpu::Level;
use memchr::memmem::{find, find_iter};
use object::elf::R_X86_64_TLSDESC;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, RelocationFlags};

use super::capabilities::Renewed;
use super::libraries::Library;
use crate::outcome::Unfit;
use crate::request::Cpu;

/// Libraries of the toolchain that may ask, by prefixes of their names: the C library's loader, which honours a variable, and GCC's, which
/// only keeps the answer (`__cpu_model`) for programs that were linked before GCC 4.9; since then each has a copy of its own.
const TOOLCHAIN: [&str; 2] = ["ld-linux-x86-64.so", "libgcc_s.so"];

/// The instructions CPUID and XGETBV. Code that uses AVX must execute both, and does so in one place; either byte
/// sequence alone is mostly a coincidence.
const CPUID: &[u8] = b"\x0f\xa2";
const XGETBV: &[u8] = b"\x0f\x01\xd0";
const NEAR: usize = 256;

/// Refuses a frozen process whose libraries have selected instructions by themselves, or measured the space for
/// registers. `renewed`: code that asks the CPU again at each thaw does not count.
pub fn check_libraries(libraries: &[Library], renewed: &[Renewed], level: Level) -> Result<(), Unfit> {
    let word = Cpu::Level(level).word();
    let (mut asking, mut measuring) = (BTreeSet::new(), BTreeSet::new());
    for library in libraries {
        let Library { path, file, code } = library;
        let name = path.file_name().unwrap_or_default().as_bytes();
        let mut heeding = recipes::cpu().flat_map(|cpu| &cpu.libraries).map(String::as_str).chain(TOOLCHAIN);
        let known: Vec<_> =
            renewed.iter().filter(|words| words.library == *path).map(|words| words.function.clone()).collect();
        if !heeding.any(|start| name.starts_with(start.as_bytes()))
            && code.iter().any(|(part, _)| asks_the_cpu(file, part, &known))
        {
            asking.insert(path.display().to_string());
        }
        if level != Level::V2 && has_tls_descriptors(file) {
            measuring.insert(path.display().to_string());
        }
    }
    let unfit = |reason: String, cpu: &str| {
        let remedy = format!("Load it after the freeze point, or freeze with --cpu {cpu}.");
        Unfit { failure: Failure::refusal(format!("cannot freeze for --cpu {word}: {reason}. {remedy}")), reason }
    };
    let names = |found: BTreeSet<String>| found.into_iter().collect::<Vec<_>>().join(", ");
    if !asking.is_empty() {
        let reason = format!(
            "{} asks the CPU what it can and may have picked instructions that others do not have; Snapboot knows no variable that keeps \
             it from that",
            names(asking)
        );
        return Err(unfit(reason, "native"));
    }
    if !measuring.is_empty() {
        let reason = format!(
            "{} was compiled with TLS descriptors (-mtls-dialect=gnu2), for which the C library has measured the registers of this CPU",
            names(measuring)
        );
        return Err(unfit(reason, "v2 or native"));
    }
    Ok(())
}

/// Whether a library has thread-local variables that the loader resolves through descriptors.
fn has_tls_descriptors(file: &[u8]) -> bool {
    let Ok(elf) = ElfFile64::<Endianness>::parse(file) else { return false };
    let mut relocations = elf.dynamic_relocations().into_iter().flatten();
    relocations.any(|(_, relocation)| relocation.flags() == RelocationFlags::Elf { r_type: R_X86_64_TLSDESC })
}

/// Whether code in this part of a file asks the CPU, outside of functions that are `known`.
fn asks_the_cpu(file: &[u8], part: &Range<usize>, known: &[Range<usize>]) -> bool {
    let code = &file[part.clone()];
    find_iter(code, XGETBV).filter(|at| !known.iter().any(|function| function.contains(&(part.start + at)))).any(|at| {
        let end = code.len().min(at + NEAR);
        find(&code[at.saturating_sub(NEAR)..end], CPUID).is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wants_avx_asks_with_both_instructions_in_one_place() {
        let asks = |code: &[u8], known: &[Range<usize>]| asks_the_cpu(code, &(0..code.len()), known);
        let code = |distance: usize| [CPUID, &vec![0x90; distance], XGETBV, &[0x90; 1000]].concat();
        assert!(asks(&code(100), &[]) && !asks(&code(300), &[]));
        assert!(asks(&[XGETBV, CPUID].concat(), &[]));
        assert!(!asks(&[0x90; 5000], &[]) && !asks(CPUID, &[]) && !asks(b"", &[]));
        let known = 100..500;
        assert!(!asks(&code(100), std::slice::from_ref(&known)) && asks(&[code(100), code(100)].concat(), &[known]));
    }
}
