//! Files of the kernel (/proc, /sys) that a boot asked for: which of them the image depends on, and on what in them.
//!
//! Their content is made when it is read, and size and times say nothing; so an image records a digest, and each start reads the file
//! again. Much of what is there changes all the time, or belongs to one process: that can be no input, and a program which keeps it
//! keeps it (docs/limits.md).

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use image::fact_kind;
use inputs::facts::Value;

use crate::facts::Now;

/// What an image depends on when its boot asked for a file.
#[derive(Debug, PartialEq, Eq)]
enum Treatment {
    /// Facts that tell what is stable in it.
    Facts(&'static [u32]),
    /// All that is in it.
    Content,
    /// Nothing: it belongs to one process, or changes all the time.
    Nothing,
}

/// Files whose stable part is a fact. The processor is an input of each image, its frequency is none.
const FACTS: &[(&str, &[u32])] = &[
    ("/proc/cpuinfo", &[fact_kind::CPUS]),
    ("/sys/devices/system/cpu/online", &[fact_kind::CPUS]),
    ("/sys/devices/system/cpu/present", &[fact_kind::CPUS]),
    ("/proc/meminfo", &[fact_kind::MEMORY]),
    ("/proc/version", &[fact_kind::KERNEL]),
    ("/proc/sys/kernel/osrelease", &[fact_kind::KERNEL]),
    ("/proc/sys/kernel/version", &[fact_kind::KERNEL]),
    ("/proc/sys/kernel/hostname", &[fact_kind::HOSTNAME]),
];

/// What changes by itself: files and whole directories.
const CHANGING: &[&str] = &[
    "/proc/buddyinfo",
    "/proc/diskstats",
    "/proc/driver",
    "/proc/interrupts",
    "/proc/irq",
    "/proc/kmsg",
    "/proc/loadavg",
    "/proc/locks",
    "/proc/net",
    "/proc/pagetypeinfo",
    "/proc/pressure",
    "/proc/schedstat",
    "/proc/slabinfo",
    "/proc/softirqs",
    "/proc/stat",
    "/proc/swaps",
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/inode-state",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/random",
    "/proc/sysvipc",
    "/proc/timer_list",
    "/proc/tty",
    "/proc/uptime",
    "/proc/vmstat",
    "/proc/zoneinfo",
];

/// Files of a process that say where it lives rather than what it does, so that another process in the same place has the same.
const OF_THE_PLACE: &[&str] = &[
    "/proc/self/cgroup",
    "/proc/self/gid_map",
    "/proc/self/limits",
    "/proc/self/loginuid",
    "/proc/self/mountinfo",
    "/proc/self/mounts",
    "/proc/self/oom_score_adj",
    "/proc/self/setgroups",
    "/proc/self/uid_map",
];

/// How long the content must stay what it is to count (one that changes faster would make each start stale).
const STILL: Duration = Duration::from_millis(10);

/// What an image depends on that asked for these files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KernelFiles {
    /// Facts: kind and number.
    pub facts: Vec<(u32, u32)>,
    /// Paths and contents, as an image records them.
    pub contents: Vec<Vec<u8>>,
}

impl KernelFiles {
    /// Sorts out what was asked for, and reads what counts.
    pub fn of(asked: &BTreeSet<PathBuf>) -> KernelFiles {
        let (mut facts, mut paths) = (BTreeSet::new(), Vec::new());
        for path in asked {
            match treatment(path) {
                Treatment::Facts(kinds) => facts.extend(kinds.iter().map(|&kind| (kind, 0))),
                Treatment::Content => paths.push(path.as_path()),
                Treatment::Nothing => {}
            }
        }
        let read = || -> Vec<Option<Vec<u8>>> { paths.iter().map(|path| content(path)).collect() };
        let before = read();
        if !before.is_empty() {
            std::thread::sleep(STILL);
        }
        let contents = before.into_iter().zip(read()).filter(|(before, now)| before == now);
        KernelFiles {
            facts: facts.into_iter().collect(),
            contents: contents.filter_map(|(before, _)| before).collect(),
        }
    }
}

fn content(path: &Path) -> Option<Vec<u8>> {
    Value::of_kernel_file(&Now { is_for_boot: true }, path.as_os_str().as_bytes()).map(|value| value.bytes().to_vec())
}

fn treatment(path: &Path) -> Treatment {
    if let Some((_, kinds)) = FACTS.iter().find(|(file, _)| path == Path::new(file)) {
        return Treatment::Facts(kinds);
    }
    if OF_THE_PLACE.iter().any(|file| path == Path::new(file)) {
        return Treatment::Content;
    }
    let is_of_a_process = path.strip_prefix("/proc").is_ok_and(|rest| {
        let first = rest.components().next().map_or(&b""[..], |part| part.as_os_str().as_bytes());
        matches!(first, b"self" | b"thread-self") || first.iter().all(u8::is_ascii_digit)
    });
    let changes = path.starts_with("/dev") || CHANGING.iter().any(|changing| path.starts_with(changing));
    if is_of_a_process || changes {
        Treatment::Nothing
    } else {
        Treatment::Content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_counts_for_what_is_stable_in_it() {
        let of = |path: &str| treatment(Path::new(path));
        assert_eq!(of("/proc/cpuinfo"), Treatment::Facts(&[fact_kind::CPUS]));
        for path in
            ["/proc/sys/vm/overcommit_memory", "/sys/fs/cgroup/cpu.max", "/proc/self/mounts", "/proc/mounts", "/sys"]
        {
            assert_eq!(of(path), Treatment::Content, "{path}");
        }
        let nothing = [
            "/proc",
            "/proc/self",
            "/proc/self/stat",
            "/proc/12/limits",
            "/proc/thread-self/comm",
            "/proc/sys/kernel/random/uuid",
        ];
        for path in nothing.into_iter().chain(["/proc/stat", "/dev/null"]) {
            assert_eq!(of(path), Treatment::Nothing, "{path}");
        }
    }

    #[test]
    fn what_changes_while_one_looks_does_not_count() {
        let asked = ["/proc/uptime", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/pid_max", "/sys/no/such/file"];
        let found = KernelFiles::of(&asked.into_iter().map(PathBuf::from).collect());
        assert_eq!(found.facts, [(fact_kind::KERNEL, 0)]);
        let contents: Vec<&str> = found.contents.iter().map(|content| std::str::from_utf8(content).unwrap()).collect();
        assert_eq!(contents.len(), 2);
        assert!(contents[0].starts_with("/proc/sys/kernel/pid_max: ") && contents[0].len() == 26 + 32, "{contents:?}");
        assert_eq!(contents[1], "/sys/no/such/file: absent");
        // Not on the list of what changes: found out by reading twice.
        let clock = ["/proc/driver/rtc", "/proc/self/sched"].map(PathBuf::from).into_iter().collect();
        assert_eq!(KernelFiles::of(&clock), KernelFiles::default());
    }
}
