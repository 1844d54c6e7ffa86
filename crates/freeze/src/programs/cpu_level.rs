//! `--cpu v2`, `v3` and `v4`: a boot that selects no instructions beyond a level, so that the image thaws on any CPU of
//! that level.
//!
//! Programs select instructions by CPU when they start, and a frozen program keeps its selection. The C library and
//! some others can be told by variables what the CPU has; those are set for the boot only. Other libraries that query
//! the CPU are refused by name (writing/cpu_libraries.rs).
//!
//! v3 is the default. Where it cannot be, and nobody has asked for it, the image is for CPUs with all features of this
//! one.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use failure::Failure;
use inputs::cpu::{Level, HAS_LEVELS};
use judge::environment::Environment;
use memchr::memmem::find;
use runtime::deadline;
use runtime::loader_of;

use crate::outcome::Unfit;
use crate::request::Cpu;

/// From which size on the C library copies by other instructions, which it otherwise chooses by the caches of the CPU
/// of the boot (docs/decisions/80). `rep movsb` is faster than loops from 512 KiB on. A copy of 8 MiB or more goes past
/// the caches: a larger limit costs a fifth on CPUs whose caches are smaller.
const COPIES: &str = "glibc.cpu.x86_rep_movsb_threshold=0x80000:glibc.cpu.x86_non_temporal_threshold=0x800000";

/// Variables set for the boot: the C library's first, then those of recipes.
fn variables(level: Level) -> Vec<(&'static str, String)> {
    let tunables = match level {
        // glibc picks memmove with AVX by what it prefers, even if it has found no AVX.
        Level::V2 => "glibc.cpu.hwcaps=-XSAVE,-XSAVEC,-AVX_Fast_Unaligned_Load",
        Level::V3 => {
            "glibc.cpu.hwcaps=-XSAVEC,-RTM,-AVX512F,-AVX512CD,-AVX512ER,-AVX512PF,-AVX512VL,-AVX512BW,-AVX512DQ"
        }
        Level::V4 => "glibc.cpu.hwcaps=-XSAVEC,-RTM",
    };
    let of_recipes = recipes::cpu().map(|cpu| (cpu.variable.as_str(), cpu.value(level).to_owned()));
    [(TUNABLES, format!("{COPIES}:{tunables}"))].into_iter().chain(of_recipes).collect()
}

const TUNABLES: &str = "GLIBC_TUNABLES";
const HWCAPS: &[u8] = b"glibc.cpu.hwcaps=";

/// Time limit for the loader's answer.
const LIMIT: Duration = Duration::from_secs(20);

/// The CPUs of an image for which nobody has asked for any, and the environment in which `program` boots. Also why these are only CPUs
/// with all features of this one, unless this one has not more.
pub fn by_default(environment: Environment, program: &Path) -> (Cpu, Option<String>, Environment) {
    if !Level::DEFAULT.is_here() {
        return (Cpu::Native, None, environment);
    }
    match for_level(environment.clone(), program, Level::DEFAULT) {
        Ok(environment) => (Cpu::Level(Level::DEFAULT), None, environment),
        Err(unfit) => (Cpu::Native, Some(unfit.reason), environment),
    }
}

/// The environment in which `program` boots for a level.
///
/// Refuses a CPU below the level, variables that are already set to something else, and a C library that does not
/// honour its own.
pub fn for_level(environment: Environment, program: &Path, level: Level) -> Result<Environment, Unfit> {
    let word = Cpu::Level(level).word();
    if !HAS_LEVELS {
        let reason =
            format!("--cpu {word} is a level of x86-64, and this is another architecture, whose CPUs have no levels");
        return Err(Unfit::new(reason, "Freeze with --cpu native."));
    }
    if let Some(lacking) = level.lacks().next() {
        let name = lacking.bits().next().and_then(|bit| lacking.name(bit)).unwrap_or("a feature without a name");
        let reason = format!("--cpu {word} boots the program on a CPU of that level, and this CPU has no {name}");
        return Err(Unfit::new(reason, "Freeze with a lower level or with --cpu native."));
    }
    let mut set = Vec::new();
    for (name, value) in variables(level) {
        let value = match environment.value(name) {
            None => OsString::from(&value),
            Some(own) if name == TUNABLES && find(own.as_bytes(), HWCAPS).is_none() => {
                // The last value of a tunable counts: the user's.
                let mut both = OsString::from(&value);
                both.push(":");
                both.push(own);
                both
            }
            Some(own) => {
                let reason =
                    format!("--cpu {word} sets {name} for the boot, and it is set already ({})", own.display());
                return Err(Unfit::new(reason, "Unset it, or freeze with --cpu native."));
            }
        };
        set.push((OsString::from(name), value));
    }
    check_loader(program, &set[0].1, level)?;
    Ok(environment.with_for_libraries(set))
}

/// Checks that glibc honours its tunable; it silently ignores an unknown one.
fn check_loader(program: &Path, tunables: &OsStr, level: Level) -> Result<(), Unfit> {
    let loader = loader_of(program)?;
    let mut command = Command::new(&loader);
    command.arg("--list-diagnostics").env_clear().env(TUNABLES, tunables);
    let answer = deadline::run(&mut command, LIMIT).map_err(|error| Failure::io("start", &loader, &error))?;
    let said = answer.map(|answer| answer.stdout).unwrap_or_default();
    if keeps_to(&String::from_utf8_lossy(&said), level) {
        return Ok(());
    }
    let reason = format!(
        "--cpu {} needs a C library that can be set to use no newer instructions, and {} cannot be: glibc can from 2.33 on",
        Cpu::Level(level).word(),
        loader.display()
    );
    Err(Unfit::new(reason, "Freeze with --cpu native."))
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
        Level::V2 => {
            return value("x86.cpu_features.xsave_state_size") == Some(0)
                && value("x86.cpu_features.preferred.AVX_Fast_Unaligned_Load") == Some(0)
        }
        Level::V3 => RTM | AVX_512,
        Level::V4 => RTM,
    };
    value("x86.cpu_features.features[0x1].active[0x1]").is_some_and(|active| active & beyond == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn for_v2_glibc_must_not_prefer_avx_either() {
        let said = |prefers: u32| {
            format!("x86.cpu_features.xsave_state_size=0x0\nx86.cpu_features.preferred.AVX_Fast_Unaligned_Load=0x{prefers}\n")
        };
        assert!(keeps_to(&said(0), Level::V2) && !keeps_to(&said(1), Level::V2));
    }

    #[test]
    fn variables_of_the_user_are_kept_or_refused() {
        let environment =
            |name: &str, value: &str| Environment::pick([(name.into(), value.into())].into_iter(), &[], &[]);
        let program = std::env::current_exe().unwrap();
        let booted = for_level(environment(TUNABLES, "glibc.malloc.check=0"), &program, Level::V2).unwrap();
        let all = booted.for_boot(OsStr::new("/f.so"), OsStr::new("/dir"));
        let tunables: Vec<_> = all.iter().filter(|(name, _)| name == TUNABLES).map(|(_, value)| value).collect();
        let level = "glibc.cpu.hwcaps=-XSAVE,-XSAVEC,-AVX_Fast_Unaligned_Load:glibc.malloc.check=0";
        assert_eq!(tunables, [format!("{COPIES}:{level}").as_str()]);
        assert_eq!(booted.value(TUNABLES).unwrap(), "glibc.malloc.check=0", "what is compared is the user's");
        for (name, value) in [("OPENBLAS_CORETYPE", "Zen"), (TUNABLES, "glibc.cpu.hwcaps=-AVX2")] {
            let Err(refused) = for_level(environment(name, value), &program, Level::V2) else {
                panic!("{name} was accepted")
            };
            let message = refused.failure.message;
            assert!(message.contains(name) && message.contains(value), "{message}");
        }
    }
}
