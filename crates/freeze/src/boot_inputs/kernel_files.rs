//! Files of the kernel (/proc, /sys) that a boot read: which of them the image depends on, and on what in them.
//!
//! The kernel generates their content on each read, and size and times say nothing. So an image records a digest, and
//! each start reads the file again. Many of these files hold measurements that change all the time, or belong to one
//! process; they cannot be inputs, and a program that keeps such a value keeps it (docs/limits/not-noticed.md). No list
//! has all of them, so a file that changes during the freeze counts as a measurement, too, unless it is a setting.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use image_file::this_process::ThisProcess;
use inputs::facts::fact_kind;
use inputs::facts::{Value, WITHOUT_HOME};
use recorder::Accesses;

/// What an image depends on after its boot has read a file.
#[derive(Debug, PartialEq, Eq)]
enum Treatment {
    /// Facts for the stable part of it.
    Facts(&'static [u32]),
    /// Its whole content.
    Content,
    /// Nothing: it belongs to one process, or changes all the time.
    Nothing,
}

/// Files whose stable part is a fact. The processor is an input of each image, its frequency is not.
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

/// Files and whole directories that change by themselves.
const CHANGING: &[&str] = &[
    "/proc/allocinfo",
    "/proc/buddyinfo",
    "/proc/diskstats",
    "/proc/driver",
    "/proc/fs",
    "/proc/interrupts",
    "/proc/irq",
    "/proc/key-users",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/loadavg",
    "/proc/locks",
    "/proc/mdstat",
    "/proc/net",
    "/proc/pagetypeinfo",
    "/proc/pressure",
    "/proc/schedstat",
    "/proc/slabinfo",
    "/proc/softirqs",
    "/proc/stat",
    "/proc/swaps",
    "/proc/sys/fs/aio-nr",
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/inode-state",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/perf_event_max_sample_rate",
    "/proc/sys/kernel/pty/nr",
    "/proc/sys/kernel/random",
    "/proc/sys/net/netfilter/nf_conntrack_count",
    "/proc/sysvipc",
    "/proc/timer_list",
    "/proc/tty",
    "/proc/uptime",
    "/proc/vmallocinfo",
    "/proc/vmstat",
    "/proc/zoneinfo",
    "/sys/kernel/debug",
    "/sys/kernel/mm/ksm",
    "/sys/kernel/slab",
    "/sys/kernel/tracing",
    "/sys/kernel/uevent_seqnum",
    "/sys/power",
];

/// The same below /sys/devices and elsewhere in /sys: names of files, and of directories with measurements only.
const MEASURED: &[&str] = &[
    "capacity",
    "cpuinfo_avg_freq",
    "cpuinfo_cur_freq",
    "cpuidle",
    "energy_uj",
    "free_hugepages",
    "hwmon",
    "inflight",
    "lifetime_write_kbytes",
    "meminfo",
    "numastat",
    "power",
    "resv_hugepages",
    "scaling_cur_freq",
    "session_write_kbytes",
    "stat",
    "statistics",
    "stats",
    "surplus_hugepages",
    "temp",
    "thermal_throttle",
    "time_in_state",
    "vmstat",
    "wakeup",
];

/// What an allocator (CPython's own, from 3.14 on, and others) asks at its start to choose how it takes memory: each choice works everywhere.
const ASKED_BY_ALLOCATORS: &[&str] = &["/proc/sys/vm/overcommit_memory"];

/// Where control groups are mounted.
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";
/// Read-only files of a control group are measurements, except these.
const RESULTS_OF_SETTINGS: &[&str] = &[
    "cgroup.controllers",
    "cgroup.type",
    "cpuset.cpus.effective",
    "cpuset.effective_cpus",
    "cpuset.effective_mems",
    "cpuset.mems.effective",
];
/// Writable files of a control group are settings, except these, those that end in `.pressure`, and those with `usage`
/// or `failcnt` in their name.
const NO_SETTINGS: &[&str] = &["cgroup.procs", "cgroup.threads", "memory.peak", "memory.swap.peak", "tasks"];

/// Files of a process that describe its surroundings rather than its activity, so another process in the same
/// surroundings has the same.
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

/// Minimum time between two reads of a file.
const STILL: Duration = Duration::from_millis(10);

/// What an image depends on after its boot has read these files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct KernelFiles {
    /// Facts: kind and number.
    pub facts: Vec<(u32, u32)>,
    /// Contents by path, as an image records them, at the time of the boot's read.
    pub contents: BTreeMap<PathBuf, Vec<u8>>,
    /// Files that no start with HOME reads.
    without_home: BTreeSet<PathBuf>,
}

impl KernelFiles {
    /// Classifies the files that were read.
    pub fn classify(accesses: &Accesses) -> KernelFiles {
        let without_home = &accesses.system_without_home;
        let read = || without_home.iter().chain(&accesses.system);
        let mut facts = BTreeSet::new();
        for (path, _) in read() {
            if let Treatment::Facts(kinds) = treatment(path) {
                facts.extend(kinds.iter().map(|&kind| (kind, 0)));
            }
        }
        let contents = read().filter_map(|(path, content)| Some((path.clone(), content.clone()?)));
        let files = KernelFiles {
            facts: facts.into_iter().collect(),
            contents: contents.collect(),
            without_home: without_home.keys().filter(|path| !accesses.system.contains_key(*path)).cloned().collect(),
        };
        files.without_measured().0
    }

    /// The facts of an image about these files: `of`, and the file's content.
    pub fn rows(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let of = |path| if self.without_home.contains(path) { WITHOUT_HOME } else { 0 };
        self.contents.iter().map(move |(path, content)| (of(path), content.as_slice()))
    }

    /// Reads the files again, and drops those that have changed and are not settings: each start would find the image
    /// stale. Settings count as the boot found them, since the boot may depend on them. Also returns the dropped files.
    pub fn without_measured(mut self) -> (KernelFiles, Vec<PathBuf>) {
        if !self.contents.is_empty() {
            std::thread::sleep(STILL);
        }
        let is_measured = |path: &Path, found: &[u8]| {
            let can_be_set = path.metadata().map_or(true, |now| now.permissions().mode() & 0o222 != 0);
            !can_be_set && content(path).as_deref() != Some(found)
        };
        let measured: Vec<PathBuf> =
            self.contents.iter().filter(|(path, found)| is_measured(path, found)).map(|it| it.0.clone()).collect();
        self.contents.retain(|path, _| !measured.contains(path));
        (self, measured)
    }
}

/// The content of a kernel file as an image records it; None if it does not count.
pub fn content(path: &Path) -> Option<Vec<u8>> {
    if treatment(path) != Treatment::Content {
        return None;
    }
    Value::read_kernel_file(&ThisProcess::FOR_BOOT, path.as_os_str().as_bytes()).map(|value| value.bytes().to_vec())
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
    let is_of_an_allocator = ASKED_BY_ALLOCATORS.iter().any(|file| path == Path::new(file));
    if is_of_a_process || is_of_an_allocator || changes(path) {
        Treatment::Nothing
    } else {
        Treatment::Content
    }
}

/// Whether a file is known to change by itself.
fn changes(path: &Path) -> bool {
    let name = path.file_name().map_or(&b""[..], OsStrExt::as_bytes);
    let is_one_of = |all: &[&str]| all.iter().any(|one| one.as_bytes() == name);
    if path.starts_with("/dev") || CHANGING.iter().any(|changing| path.starts_with(changing)) {
        return true;
    }
    if path.starts_with(CONTROL_GROUPS) {
        let has = |part: &[u8]| name.windows(part.len()).any(|window| window == part);
        let is_measured = is_one_of(NO_SETTINGS) || name.ends_with(b".pressure") || has(b"usage") || has(b"failcnt");
        let is_for_reading =
            path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o222 == 0);
        return is_measured || is_for_reading && !is_one_of(RESULTS_OF_SETTINGS);
    }
    path.starts_with("/sys")
        && path.components().any(|part| {
            let part = part.as_os_str().as_bytes();
            MEASURED.iter().any(|measured| measured.as_bytes() == part) || part.starts_with(b"hwmon")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_counts_for_what_is_stable_in_it() {
        let of = |path: &str| treatment(Path::new(path));
        assert_eq!(of("/proc/cpuinfo"), Treatment::Facts(&[fact_kind::CPUS]));
        for path in ["/proc/sys/vm/swappiness", "/sys/fs/cgroup/cpu.max", "/proc/self/mounts", "/proc/mounts", "/sys"] {
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
        for path in nothing.into_iter().chain(["/proc/stat", "/proc/sys/vm/overcommit_memory", "/dev/null"]) {
            assert_eq!(of(path), Treatment::Nothing, "{path}");
        }
    }

    #[test]
    fn statistics_do_not_count_wherever_they_lie() {
        for path in [
            "/sys/devices/system/node/node0/meminfo",
            "/sys/devices/system/node/node7/numastat",
            "/sys/block/sda/stat",
            "/sys/class/net/eth0/statistics/rx_bytes",
            "/sys/class/hwmon/hwmon3/temp1_input",
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
            "/sys/fs/cgroup/app/memory.pressure",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
            "/sys/fs/cgroup/cgroup.procs",
        ] {
            assert_eq!(treatment(Path::new(path)), Treatment::Nothing, "{path}");
        }
        for path in ["/sys/fs/cgroup/app/cpu.max", "/sys/fs/cgroup/memory.max", "/sys/class/net/eth0/mtu"] {
            assert_eq!(treatment(Path::new(path)), Treatment::Content, "{path}");
        }
    }

    #[test]
    fn what_changes_while_the_program_is_frozen_does_not_count() {
        let read = |paths: &[&str]| Accesses {
            system: paths.iter().map(|path| (PathBuf::from(path), content(Path::new(path)))).collect(),
            ..Accesses::default()
        };
        let found = KernelFiles::classify(&read(&[
            "/proc/uptime",
            "/proc/sys/kernel/osrelease",
            "/proc/sys/kernel/pid_max",
            "/sys/no/such/file",
        ]));
        assert_eq!(found.facts, [(fact_kind::KERNEL, 0)]);
        let contents: Vec<&str> =
            found.contents.values().map(|content| std::str::from_utf8(content).unwrap()).collect();
        assert_eq!(contents.len(), 2);
        assert!(contents[0].starts_with("/proc/sys/kernel/pid_max: ") && contents[0].len() == 26 + 32, "{contents:?}");
        assert_eq!(contents[1], "/sys/no/such/file: absent");
        assert!(found.rows().all(|(of, _)| of == 0));
        let mut accesses = read(&["/proc/sys/kernel/pid_max"]);
        let mut without_home = read(&["/proc/sys/kernel/pid_max", "/sys/no/such/file"]);
        without_home.count_system_without_home(&accesses);
        accesses.add_those_of(without_home);
        let found = KernelFiles::classify(&accesses);
        assert_eq!(found.rows().map(|(of, _)| of).collect::<Vec<_>>(), [0, WITHOUT_HOME]);
        // Neither listed as changing, nor of a process: decided by reading it again.
        let version = PathBuf::from("/proc/filesystems");
        let files = KernelFiles { contents: [(version.clone(), b"another".to_vec())].into(), ..Default::default() };
        assert_eq!(files.without_measured(), (KernelFiles::default(), vec![version]));
        // A setting counts as the boot found it.
        let setting = PathBuf::from("/proc/sys/kernel/pid_max");
        let files = KernelFiles { contents: [(setting.clone(), b"another".to_vec())].into(), ..Default::default() };
        let (files, dropped) = files.without_measured();
        assert!(dropped.is_empty());
        assert_eq!(files.contents[&setting], b"another");
    }
}
