//! Facts about processor, kernel, C library and file systems.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use runtime::{deadline, loader_of};
use rustix::fs::{access, statvfs, Access, StatVfsMountFlags};
use rustix::process::virtual_memory_map_config_struct_size;

use super::{Line, State};

/// The oldest kernel that can freeze: it lets a watched system call continue (SECCOMP_USER_NOTIF_FLAG_CONTINUE).
const OLDEST_TO_FREEZE: (u32, u32) = (5, 5);
/// The oldest kernel that can thaw: it maps memory only where nothing is mapped (MAP_FIXED_NOREPLACE).
const OLDEST_TO_THAW: (u32, u32) = (4, 17);
/// Kernels on which the tests ran.
const KERNELS_TRIED: &[(u32, u32)] = &[(6, 1), (6, 12), (6, 18), (7, 2)];
/// How long the loader may take.
const LIMIT: Duration = Duration::from_secs(5);
/// glibc versions with which the tests ran.
const GLIBCS_TRIED: &[&str] = &["2.36", "2.39", "2.41", "2.43"];

/// All lines, in the order in which they are shown.
pub fn lines() -> Vec<Line> {
    vec![
        architecture(),
        cpu(),
        kernel(),
        proc_mounted(),
        memory_map(),
        vdso(),
        pagemap(),
        libc(),
        temporary_directory(),
        store(),
    ]
}

fn architecture() -> Line {
    let machine = rustix::system::uname().machine().to_string_lossy().into_owned();
    let supported = cfg!(target_os = "linux") && inputs::cpu::IS_SUPPORTED && machine == image::arch::NAME;
    Line::yes_if(
        "architecture",
        supported,
        if image::arch::NAME == "x86_64" { "Linux x86-64" } else { "Linux aarch64" },
        format!("{machine}: not yet, only Linux on x86-64 and aarch64"),
    )
}

fn cpu() -> Line {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown model", |(_, model)| model);
    let which =
        if inputs::cpu::Level::DEFAULT.is_here() { "of level v3 of x86-64" } else { "with all features of this one" };
    Line::new("CPU", State::Yes, format!("{model}, features {}; images are for CPUs {which}", cpu_digest()))
}

/// The start of a digest of the CPU facts that native images record: equal on machines that can use each other's. Unknown if none are
/// recorded.
fn cpu_digest() -> String {
    use image::Record;
    let mut bytes = Vec::new();
    for leaf in inputs::cpu::native() {
        let start = bytes.len();
        bytes.resize(start + image::CpuLeaf::SIZE, 0);
        leaf.encode(&mut bytes[start..]);
    }
    if bytes.is_empty() {
        return "unknown".to_owned();
    }
    image::digest(&bytes).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn kernel() -> Line {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let (state, said) = judged(kernel_version(&release));
    Line::new("kernel", state, format!("{release}{said}"))
}

/// The verdict on a kernel of this version.
fn judged(version: Option<(u32, u32)>) -> (State, String) {
    let shown = |(major, minor): (u32, u32)| format!("{major}.{minor}");
    let tried = KERNELS_TRIED.iter().copied().map(shown).collect::<Vec<_>>().join(", ");
    match version {
        Some(version) if version < OLDEST_TO_THAW => {
            (State::No, format!(": thawing needs {}, freezing {}", shown(OLDEST_TO_THAW), shown(OLDEST_TO_FREEZE)))
        }
        Some(version) if version < OLDEST_TO_FREEZE => {
            (State::No, format!(": images may thaw, but freezing needs {}", shown(OLDEST_TO_FREEZE)))
        }
        Some(version) if KERNELS_TRIED.contains(&version) => (State::Yes, String::new()),
        _ => (
            State::Note,
            format!(
                "; tried with {tried}; freezing needs {}, thawing {}",
                shown(OLDEST_TO_FREEZE),
                shown(OLDEST_TO_THAW)
            ),
        ),
    }
}

/// `6.18.44-x` -> (6, 18).
fn kernel_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn proc_mounted() -> Line {
    let mounted = fs::read("/proc/self/maps").is_ok_and(|maps| !maps.is_empty());
    Line::yes_if("/proc", mounted, "mounted", "not mounted or not readable: memory cannot be listed; mount it")
}

fn memory_map() -> Line {
    let answer = virtual_memory_map_config_struct_size();
    Line::yes_if(
        "PR_SET_MM_MAP",
        answer.is_ok(),
        "the kernel restores heap and argv areas (CONFIG_CHECKPOINT_RESTORE)",
        "the kernel was built without CONFIG_CHECKPOINT_RESTORE: heap and argv areas cannot be restored",
    )
}

fn vdso() -> Line {
    let maps = fs::read_to_string("/proc/self/smaps").unwrap_or_default();
    match vdso_flags(&maps) {
        None if maps.is_empty() => {
            Line::new("vdso", State::Note, "/proc/self/smaps is not readable, so it is unknown whether it can move")
        }
        None => Line::new("vdso", State::Note, "there is none: clocks are read by system calls"),
        Some(flags) if flags.split_whitespace().any(|flag| flag == "sl") => Line::new(
            "vdso",
            State::Note,
            "sealed by the kernel (CONFIG_MSEAL_SYSTEM_MAPPINGS): images have a copy that leads to it",
        ),
        Some(_) => Line::new("vdso", State::Yes, "can be moved to where an image had it"),
    }
}

/// The VmFlags of the vdso in the text of smaps.
fn vdso_flags(smaps: &str) -> Option<&str> {
    let (_, vdso) = smaps.split_once("[vdso]")?;
    vdso.lines().find_map(|line| line.strip_prefix("VmFlags:"))
}

fn pagemap() -> Line {
    // Any address that this process has touched will do.
    let touched = [1u8];
    let offset = touched.as_ptr() as u64 / 4096 * 8;
    let mut entry = [0; 8];
    let read = File::open("/proc/self/pagemap").and_then(|file| file.read_exact_at(&mut entry, offset));
    let present = read.is_ok() && u64::from_le_bytes(entry) >> 63 == 1;
    Line::yes_if(
        "pagemap",
        present,
        "readable: only pages that differ are written",
        "/proc/self/pagemap does not show which pages are present, so memory cannot be captured",
    )
}

fn libc() -> Line {
    let Some(path) = machines_libc() else {
        return Line::new("libc", State::No, "not glibc (musl?): not yet, only glibc");
    };
    let version = fs::read(&path).ok().and_then(|file| glibc_version(&file));
    match version {
        Some(version) if GLIBCS_TRIED.contains(&version.as_str()) => {
            Line::new("libc", State::Yes, format!("glibc {version}"))
        }
        Some(version) => {
            Line::new("libc", State::Note, format!("glibc {version}; tried with {}", GLIBCS_TRIED.join(", ")))
        }
        None => Line::new("libc", State::No, format!("{} is not glibc (musl?): not yet, only glibc", path.display())),
    }
}

/// The C library of this machine's programs, as its loader finds it for the shell. This program may be linked statically.
fn machines_libc() -> Option<PathBuf> {
    let shell = Path::new("/bin/sh");
    let loader = loader_of(shell).ok()?;
    let found = deadline::run(Command::new(loader).arg("--list").arg(shell), LIMIT).ok()??;
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    let path = text.lines().find_map(|line| line.trim().strip_prefix("libc.so.6 => ")?.split(' ').next())?;
    Some(PathBuf::from(path))
}

/// The version in glibc's banner: `GNU C Library (Debian ...) stable release version 2.36.`.
fn glibc_version(file: &[u8]) -> Option<String> {
    let banner = file.split(|&byte| byte == 0 || byte == b'\n').find(|line| line.starts_with(b"GNU C Library "))?;
    let banner = String::from_utf8_lossy(banner);
    let (_, version) = banner.split_once("release version ")?;
    Some(version.trim_end_matches('.').to_owned())
}

fn temporary_directory() -> Line {
    let directory = std::env::temp_dir();
    let shown = directory.display();
    if !directory.is_dir() {
        let said =
            format!("{shown} (TMPDIR) does not exist, and programs that boot may need it: make it, or unset TMPDIR");
        return Line::new("temporary", State::Note, said);
    }
    if access(&directory, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return Line::new(
            "temporary",
            State::Note,
            format!("{shown} cannot be written, and programs that boot may need to"),
        );
    }
    if is_noexec(&directory) {
        let said = format!("{shown} is mounted noexec: use snapboot run for images there");
        return Line::new("temporary", State::Note, said);
    }
    Line::new("temporary", State::Yes, format!("images in {shown} can be executed"))
}

/// The location of archives that have none of their own. Images go where `-o` says.
fn store() -> Line {
    let variable = |name| std::env::var_os(name).filter(|value| Path::new(value).is_absolute()).map(PathBuf::from);
    let Some(cache) = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache"))) else {
        let said = "neither XDG_CACHE_HOME nor HOME is set: a boot archive is kept only for an application with a directory tmp, or in the file that \
                    SNAPBOOT_ARCHIVE names";
        return Line::new("store", State::Note, said);
    };
    let store = cache.join("snapboot");
    let existing = store.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    let (shown, above) = (store.display(), existing.display());
    let is_there = existing == store;
    if !existing.is_dir() {
        return Line::new("store", State::Note, format!("{shown} cannot be made, since {above} is no directory: archives of programs without a directory tmp are not kept"));
    }
    if access(existing, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let why = if is_there {
            "cannot be written".to_owned()
        } else {
            format!("does not exist, and {above} cannot be written")
        };
        return Line::new(
            "store",
            State::Note,
            format!("{shown} {why}: archives of programs without a directory tmp are not kept"),
        );
    }
    let when = if is_there { "" } else { ", made when it is first needed" };
    Line::new("store", State::Yes, format!("{shown}, for archives of programs without a directory tmp{when}"))
}

fn is_noexec(directory: &Path) -> bool {
    statvfs(directory).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_system_prints() {
        assert_eq!(kernel_version("6.18.44-fc-v595"), Some((6, 18)));
        assert_eq!(kernel_version("5.15.0-1051-azure"), Some((5, 15)));
        assert_eq!(kernel_version("unknown"), None);
        assert_eq!(judged(Some((6, 18))), (State::Yes, String::new()));
        assert!(judged(Some((5, 4))).1.contains("freezing needs 5.5") && judged(Some((5, 4))).0 == State::No);
        assert!(judged(Some((4, 4))).1.contains("thawing needs 4.17"));
        assert_eq!(judged(Some((5, 15))).0, State::Note);
        let file = b"\0x\0GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\nCopyright\0";
        assert_eq!(glibc_version(file), Some("2.36".to_owned()));
        assert_eq!(glibc_version(b"musl libc"), None);
    }

    #[test]
    fn a_sealed_vdso_is_seen() {
        let smaps = "7f00-7f01 r-xp 0 00:00 0 [vdso]\nSize: 4 kB\nVmFlags: rd ex mr mw me de sl\n";
        assert_eq!(vdso_flags(smaps).map(|flags| flags.contains(" sl")), Some(true));
        assert_eq!(vdso_flags("7f00 [stack]\nVmFlags: rd\n"), None);
    }
}
