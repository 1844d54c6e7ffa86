//! `--cpu v2`, `v3` and `v4`: a boot that selects no instructions beyond a level, so that the image thaws on any CPU of
//! that level.
//!
//! Programs select instructions by CPU when they start, and a frozen program keeps its selection. The C library and
//! some others can be told by variables what the CPU has; those are set for the boot only. Other libraries that query
//! the CPU are refused by name.
//!
//! Code that saves registers with XSAVE measures the space for them when a process starts, and on a CPU with larger
//! registers that is too small. In glibc this concerns lazy binding, which no boot uses (boot.rs sets LD_BIND_NOW), and
//! descriptors of thread-local memory (TLSDESC) since glibc 2.40: v3 and v4 refuse a library that has these. For v2
//! glibc does not use XSAVE.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use failure::{Failure, Result};
use image::{mapping_kind, MappedFile, Mapping, Section, Tables};
use inputs::cpu::Level;
use judge::environment::Environment;
use memchr::memmem::{find, find_iter};
use object::elf::R_X86_64_TLSDESC;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, RelocationFlags};
use runtime::deadline;
use runtime::loader_of;

use crate::request::Cpu;

/// Variables set for the boot: the C library's first, then those of recipes.
fn variables(level: Level) -> Vec<(&'static str, &'static str)> {
    let tunables = match level {
        Level::V2 => "glibc.cpu.hwcaps=-XSAVE,-XSAVEC",
        Level::V3 => {
            "glibc.cpu.hwcaps=-XSAVEC,-RTM,-AVX512F,-AVX512CD,-AVX512ER,-AVX512PF,-AVX512VL,-AVX512BW,-AVX512DQ"
        }
        Level::V4 => "glibc.cpu.hwcaps=-XSAVEC,-RTM",
    };
    let of_recipes = steered().map(|cpu| (cpu.variable.as_str(), cpu.value(level)));
    [(TUNABLES, tunables)].into_iter().chain(of_recipes).collect()
}

/// Libraries that query the CPU and honour a variable.
fn steered() -> impl Iterator<Item = &'static recipes::Cpu> {
    recipes::all().flat_map(|recipe| &recipe.rules.cpu)
}

const TUNABLES: &str = "GLIBC_TUNABLES";
const HWCAPS: &[u8] = b"glibc.cpu.hwcaps=";
/// The C library, by the prefix of its loader's name; it honours a variable, too.
const LOADER: &str = "ld-linux-x86-64.so";

/// The instructions CPUID and XGETBV. Code that uses AVX must execute both, and does so in one place; either byte
/// sequence alone is mostly a coincidence.
const CPUID: &[u8] = b"\x0f\xa2";
const XGETBV: &[u8] = b"\x0f\x01\xd0";
const NEAR: usize = 256;

/// Time limit for the loader's answer.
const LIMIT: Duration = Duration::from_secs(20);

/// The environment in which `program` boots for a level.
///
/// Refuses a CPU below the level, variables that are already set to something else, and a C library that does not
/// honour its own.
pub fn for_level(environment: Environment, program: &Path, level: Level) -> Result<Environment> {
    let word = Cpu::Level(level).word();
    if let Some(lacking) = level.lacks().next() {
        let name = lacking.bits().next().and_then(|bit| lacking.name(bit)).unwrap_or("a feature without a name");
        return Err(Failure::refusal(format!(
            "--cpu {word} needs a CPU that has that level, to boot the program on, and this one has no {name}. Freeze with a lower level or \
             with --cpu native."
        )));
    }
    let mut set = Vec::new();
    for (name, value) in variables(level) {
        let value = match environment.value(name) {
            None => OsString::from(value),
            Some(own) if name == TUNABLES && find(own.as_bytes(), HWCAPS).is_none() => {
                let mut both = own.to_owned();
                both.push(":");
                both.push(value);
                both
            }
            Some(own) => {
                return Err(Failure::refusal(format!(
                    "--cpu {word} sets {name} for the boot, and it is set already ({}). Unset it, or freeze with --cpu native.",
                    own.display()
                )))
            }
        };
        set.push((OsString::from(name), value));
    }
    check_loader(program, &set[0].1, level)?;
    Ok(environment.with_boot_only(set))
}

/// Checks that glibc honours its tunable; it silently ignores an unknown one.
fn check_loader(program: &Path, tunables: &OsStr, level: Level) -> Result<()> {
    let loader = loader_of(program)?;
    let mut command = Command::new(&loader);
    command.arg("--list-diagnostics").env_clear().env(TUNABLES, tunables);
    let answer = deadline::run(&mut command, LIMIT).map_err(|error| Failure::io("start", &loader, &error))?;
    let said = answer.map(|answer| answer.stdout).unwrap_or_default();
    if keeps_to(&String::from_utf8_lossy(&said), level) {
        return Ok(());
    }
    Err(Failure::refusal(format!(
        "--cpu {} needs a C library that can be told to do without newer instructions and to say so, and {} is none: \
         glibc 2.33 and later are. Freeze with --cpu native.",
        Cpu::Level(level).word(),
        loader.display()
    )))
}

/// Whether glibc reports (`ld.so --list-diagnostics`) that it selects functions only by features of the level.
fn keeps_to(said: &str, level: Level) -> bool {
    let value = |name: &str| {
        let number = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("=0x"))?;
        u64::from_str_radix(number, 16).ok()
    };
    // ebx of leaf 7: AVX-512 except IFMA, for which glibc has no functions.
    const RTM: u64 = 1 << 11;
    const AVX_512: u64 = 0xdc03_0000;
    let beyond = match level {
        Level::V2 => return value("x86.cpu_features.xsave_state_size") == Some(0),
        Level::V3 => RTM | AVX_512,
        Level::V4 => RTM,
    };
    value("x86.cpu_features.features[0x1].active[0x1]").is_some_and(|active| active & beyond == 0)
}

/// Refuses a frozen process whose libraries have selected instructions by themselves, or measured the space for
/// registers.
pub fn check_libraries(dumped: &Tables<'_>, level: Level) -> Result<()> {
    let word = Cpu::Level(level).word();
    let (mut asking, mut measuring) = (BTreeSet::new(), BTreeSet::new());
    for (path, code) in libraries(dumped)? {
        let name = path.file_name().unwrap_or_default().as_bytes();
        let file = trust::look::open(&path).and_then(|mut file| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map(|_| bytes)
        });
        let file = file.map_err(|error| Failure::io("read", &path, &error))?;
        let mut code = code.into_iter().filter_map(|part| file.get(part.start..part.end.min(file.len())));
        let mut heeding = steered().flat_map(|cpu| &cpu.libraries).map(String::as_str).chain([LOADER]);
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

    #[test]
    fn variables_of_the_user_are_kept_or_refused() {
        let environment =
            |name: &str, value: &str| Environment::pick([(name.into(), value.into())].into_iter(), &[], &[]);
        let program = std::env::current_exe().unwrap();
        let booted = for_level(environment(TUNABLES, "glibc.malloc.check=0"), &program, Level::V2).unwrap();
        let all = booted.for_boot(OsStr::new("/f.so"), OsStr::new("/dir"));
        let tunables: Vec<_> = all.iter().filter(|(name, _)| name == TUNABLES).map(|(_, value)| value).collect();
        assert_eq!(tunables, ["glibc.malloc.check=0:glibc.cpu.hwcaps=-XSAVE,-XSAVEC"]);
        assert_eq!(booted.value(TUNABLES).unwrap(), "glibc.malloc.check=0", "what is compared is the user's");
        for (name, value) in [("OPENBLAS_CORETYPE", "Zen"), (TUNABLES, "glibc.cpu.hwcaps=-AVX2")] {
            let Err(refused) = for_level(environment(name, value), &program, Level::V2) else {
                panic!("{name} was accepted")
            };
            assert!(refused.message.contains(name) && refused.message.contains(value), "{refused}");
        }
    }
}
