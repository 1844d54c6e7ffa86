//! `--cpu baseline`: a boot in which nothing picks instructions beyond the baseline, so that the image thaws on any CPU that has it.
//!
//! Programs pick instructions by CPU when they start, and a frozen one keeps to what it has picked. The C library and some others
//! let variables speak for the CPU; those are set for the boot alone. Whatever else queries the CPU is refused by name.
//!
//! Without XSAVE glibc takes neither AVX functions nor libraries from directories for newer CPUs, and lazy binding, which may
//! happen long after a thaw, saves registers with FXSAVE. That needs the same space on every CPU, whereas the space for XSAVE is
//! measured when a process starts: on a CPU with larger registers it would be too small. So the baseline is x86-64-v2, not -v3.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use failure::{Failure, Result};
use image::{mapping_kind, MappedFile, Mapping, Section, Tables};
use judge::environment::Environment;
use memchr::memmem::{find, find_iter};
use runtime::deadline;
use runtime::loader_of;

/// What is set for the boot, and who reads it.
const VARIABLES: [(&str, &str); 4] = [
    (TUNABLES, "glibc.cpu.hwcaps=-XSAVE,-XSAVEC"),
    // OpenSSL. Off in leaf 1: XOP, FMA, MOVBE, XSAVE, OSXSAVE, AVX, F16C, RDRAND; all of leaf 7 and of those that follow.
    ("OPENSSL_ia32cap", "~0x7c40180000000000:0:0:0:0"),
    ("OPENBLAS_CORETYPE", "Nehalem"),
    // numpy passes over names that it does not know.
    (
        "NPY_DISABLE_CPU_FEATURES",
        "AVX F16C FMA3 FMA4 XOP AVX2 X86_V3 AVX512F AVX512CD AVX512_KNL AVX512_KNM AVX512_SKX AVX512_CLX AVX512_CNL \
         AVX512_ICL AVX512_SPR X86_V4",
    ),
];

const TUNABLES: &str = "GLIBC_TUNABLES";
const HWCAPS: &[u8] = b"glibc.cpu.hwcaps=";

/// Beginnings of the names of libraries that query the CPU and heed one of the variables.
const STEERED: [&str; 5] =
    ["ld-linux-x86-64.so", "libcrypto", "libopenblas", "libscipy_openblas", "_multiarray_umath."];

/// The instructions CPUID and XGETBV. Who wants to use AVX has to execute both, and does so in one place; either alone is
/// mostly chance.
const CPUID: &[u8] = b"\x0f\xa2";
const XGETBV: &[u8] = b"\x0f\x01\xd0";
const NEAR: usize = 256;

/// The loader answers within this.
const LIMIT: Duration = Duration::from_secs(20);

/// The environment in which `program` boots for the baseline.
///
/// Refuses variables that are set already and would say something else, and a C library that does not heed its own.
pub fn for_baseline(environment: Environment, program: &Path) -> Result<Environment> {
    let mut variables = Vec::new();
    for (name, value) in VARIABLES {
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
                    "--cpu baseline sets {name} for the boot, and it is set already ({}). Unset it, or freeze with --cpu native.",
                    own.display()
                )))
            }
        };
        variables.push((OsString::from(name), value));
    }
    check_loader(program, &variables[0].1)?;
    Ok(environment.with_boot_only(variables))
}

/// Makes sure that glibc does what its tunable says: what is unknown to it, it passes over without a word.
fn check_loader(program: &Path, tunables: &OsStr) -> Result<()> {
    let loader = loader_of(program)?;
    let mut command = Command::new(&loader);
    command.arg("--list-diagnostics").env_clear().env(TUNABLES, tunables);
    let answer = deadline::run(&mut command, LIMIT).map_err(|error| Failure::io("start", &loader, &error))?;
    let said = answer.map(|answer| answer.stdout).unwrap_or_default();
    if find(&said, b"\nx86.cpu_features.xsave_state_size=0x0\n").is_some() {
        return Ok(());
    }
    Err(Failure::refusal(format!(
        "--cpu baseline needs a C library that can be told to do without newer instructions and to say so, and {} is none: \
         glibc 2.33 and later are. Freeze with --cpu native.",
        loader.display()
    )))
}

/// Refuses a frozen process with libraries that have picked instructions by themselves.
pub fn check_libraries(dumped: &Tables<'_>) -> Result<()> {
    let found = libraries_that_ask(dumped)?;
    if found.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = found.iter().map(|path| path.display().to_string()).collect();
    Err(Failure::refusal(format!(
        "cannot freeze for the baseline CPU: {} asks the CPU what it can and may have picked instructions that others do not have; \
         Snapboot knows no variable that keeps it from that. Load it after the freeze point, or freeze with --cpu native.",
        names.join(", ")
    )))
}

/// Mapped code that queries the CPU and is not known to heed a variable.
fn libraries_that_ask(dumped: &Tables<'_>) -> Result<BTreeSet<PathBuf>> {
    const EXECUTE: u32 = 4;
    let files = dumped.rows::<MappedFile>(Section::Files)?;
    let mut found = BTreeSet::new();
    let code = |row: &Mapping| row.kind == mapping_kind::FILE && row.protection & EXECUTE != 0;
    for row in dumped.rows::<Mapping>(Section::Mappings)?.filter(code) {
        let Some(file) = files.get(row.file as usize) else { continue };
        let path = PathBuf::from(OsStr::from_bytes(dumped.text(file.path)?));
        let name = path.file_name().unwrap_or_default().as_bytes();
        if found.contains(&path) || STEERED.iter().any(|start| name.starts_with(start.as_bytes())) {
            continue;
        }
        let size = (row.end - row.start).min(file.size.saturating_sub(row.offset));
        let code = read(&path, row.offset, size).map_err(|error| Failure::io("read", &path, &error))?;
        if asks_the_cpu(&code) {
            found.insert(path);
        }
    }
    Ok(found)
}

fn asks_the_cpu(code: &[u8]) -> bool {
    find_iter(code, XGETBV).any(|at| {
        let end = code.len().min(at + NEAR);
        find(&code[at.saturating_sub(NEAR)..end], CPUID).is_some()
    })
}

fn read(path: &Path, offset: u64, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size as usize];
    trust::look::open(path)?.read_exact_at(&mut bytes, offset)?;
    Ok(bytes)
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
        let booted = for_baseline(environment(TUNABLES, "glibc.malloc.check=0"), &program).unwrap();
        let all = booted.for_boot(OsStr::new("/f.so"), OsStr::new("/dir"));
        let tunables: Vec<_> = all.iter().filter(|(name, _)| name == TUNABLES).map(|(_, value)| value).collect();
        assert_eq!(tunables, ["glibc.malloc.check=0:glibc.cpu.hwcaps=-XSAVE,-XSAVEC"]);
        assert_eq!(booted.value(TUNABLES).unwrap(), "glibc.malloc.check=0", "what is compared is the user's");
        for (name, value) in [("OPENBLAS_CORETYPE", "Zen"), (TUNABLES, "glibc.cpu.hwcaps=-AVX2")] {
            let Err(refused) = for_baseline(environment(name, value), &program) else { panic!("{name} was accepted") };
            assert!(refused.message.contains(name) && refused.message.contains(value), "{refused}");
        }
    }
}
