//! How much memory a builder may take without depriving others: of the machine, and of each control group that it is in.
//!
//! See proc(5), and in the kernel's Documentation/admin-guide cgroup-v2.rst (memory.max, memory.high, memory.current) and
//! cgroup-v1/memory.rst (memory.limit_in_bytes, memory.usage_in_bytes).

use std::fs;
use std::path::{Path, PathBuf};

use crate::put_off_reason::{Delay, MemoryOf};

const MB: u64 = 1 << 20;
/// Making an image of any program takes at least this much: for its second copy, and for the builder.
const LEAST: u64 = 64 * MB;
/// A builder ends if less than this is left: other processes may need it at once.
const RESERVE: u64 = 24 * MB;

/// The free memory of the machine or of a control group, whichever is less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// How much (bytes).
    pub bytes: u64,
    of: MemoryOf,
}

impl Room {
    /// The current value; None if unknown.
    pub fn now() -> Option<Room> {
        Room::below(Path::new("/"))
    }

    /// The value from the kernel's files below `root`.
    fn below(root: &Path) -> Option<Room> {
        let groups = groups(root).into_iter().filter_map(|group| group.room());
        let groups = groups.map(|bytes| Room { bytes, of: MemoryOf::Group });
        let machine = available(root).map(|bytes| Room { bytes, of: MemoryOf::Machine });
        groups.chain(machine).min_by_key(|room| room.bytes)
    }

    /// Why it is not enough for an image that needs this much (bytes); None if it is enough.
    pub fn lacks(&self, needed: u64) -> Option<Delay> {
        (self.bytes < needed).then_some(Delay::Memory { free: self.bytes, of: self.of, needed })
    }

    /// Whether so little is left that a builder has to end.
    pub fn is_used_up(&self) -> bool {
        self.bytes < RESERVE
    }
}

/// How much memory making an image needs (bytes). `process`: a process of the program, if one runs; `images`: the sizes of those on disk.
pub fn needed(process: i32, images: impl Iterator<Item = u64>) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let copy = images.chain(kilobytes(&status, "RssAnon:").map(|kilobytes| kilobytes << 10)).max().unwrap_or(0);
    LEAST.max(copy + RESERVE + copy / 4)
}

/// How many processes the kernel has killed in this control group, or in groups below it, for lack of memory.
pub fn victims() -> u64 {
    let count = |group: &Group| {
        let text = group.text(if group.is_v2 { "memory.events" } else { "memory.oom_control" });
        text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse::<u64>().ok())
    };
    groups(Path::new("/")).first().and_then(count).unwrap_or(0)
}

/// The memory that the machine could provide without swapping (bytes).
fn available(root: &Path) -> Option<u64> {
    kilobytes(&fs::read_to_string(root.join("proc/meminfo")).ok()?, "MemAvailable:").map(|kilobytes| kilobytes << 10)
}

/// The number after a name in a list of names and kilobytes.
pub(crate) fn kilobytes(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

/// A control group that limits memory.
struct Group {
    path: PathBuf,
    is_v2: bool,
}

impl Group {
    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path.join(name)).unwrap_or_default()
    }

    /// How much more may be used before the kernel slows the group down, or kills a process of it; None without a limit.
    fn room(&self) -> Option<u64> {
        let number = |name: &str| self.text(name).trim().parse::<u64>().ok();
        let (limits, usage, file) = match self.is_v2 {
            true => (["memory.max", "memory.high"], "memory.current", ""),
            false => (["memory.limit_in_bytes", "memory.soft_limit_in_bytes"], "memory.usage_in_bytes", "total_"),
        };
        // A soft limit of v1 stops nothing.
        let limit = limits.iter().take(if self.is_v2 { 2 } else { 1 }).filter_map(|name| number(name)).min()?;
        let stat = self.text("memory.stat");
        let of = |name: &str| {
            let name = format!("{file}{name}");
            stat.lines()
                .find_map(|line| line.strip_prefix(&name)?.strip_prefix(' ')?.trim().parse::<u64>().ok())
                .unwrap_or(0)
        };
        // Of the active cache, half is taken for needed, such as the program's own libraries.
        let cache = of("inactive_file") + of("active_file") / 2;
        Some(limit.saturating_sub(number(usage)?.saturating_sub(cache)))
    }
}

/// The control groups of this process, from its own to the topmost visible one.
fn groups(root: &Path) -> Vec<Group> {
    let text = |name: &str| fs::read_to_string(root.join("proc/self").join(name)).unwrap_or_default();
    let (own, mounts) = (text("cgroup"), text("mountinfo"));
    own.lines().filter_map(|line| hierarchy(root, line, &mounts)).flatten().collect()
}

/// The groups that a line of /proc/self/cgroup leads to. `mounts`: the text of /proc/self/mountinfo.
fn hierarchy(root: &Path, line: &str, mounts: &str) -> Option<Vec<Group>> {
    let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
    let is_v2 = controllers.is_empty();
    if !is_v2 && !controllers.split(',').any(|controller| controller == "memory") {
        return None;
    }
    let (top, point) = mounts.lines().find_map(|mount| {
        let (before, after) = mount.split_once(" - ")?;
        let (kind, options) = (after.split(' ').next()?, after.rsplit(' ').next()?);
        let is_it = match is_v2 {
            true => kind == "cgroup2",
            false => kind == "cgroup" && options.split(',').any(|option| option == "memory"),
        };
        let mut fields = before.split(' ').skip(3);
        is_it.then_some((fields.next()?, fields.next()?))
    })?;
    let point = root.join(point.trim_start_matches('/'));
    // A container may see another root than the path's, and so lie outside of what it sees.
    let below = Path::new(path).strip_prefix(top).unwrap_or(Path::new("")).to_owned();
    let below = if below.components().any(|part| part.as_os_str() == "..") { PathBuf::new() } else { below };
    let own = point.join(below);
    Some(
        own.ancestors()
            .take_while(|path| path.starts_with(&point))
            .map(|path| Group { path: path.to_owned(), is_v2 })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of the kernel's files.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = top.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        top
    }

    const V2: (&str, &str) =
        ("proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 4096000 kB\n");

    fn megabytes(files: &[(&str, &str)]) -> Option<u64> {
        Room::below(tree(files).path()).map(|room| room.bytes / MB)
    }

    #[test]
    fn the_machine_counts_where_no_group_has_a_limit() {
        assert_eq!(megabytes(&[]), None);
        assert_eq!(megabytes(&[MEMINFO]), Some(4000));
        let own = [V2, MEMINFO, ("proc/self/cgroup", "0::/user/app\n"), ("sys/fs/cgroup/user/app/memory.max", "max\n")];
        assert_eq!(megabytes(&own), Some(4000));
    }

    #[test]
    fn the_group_with_least_room_counts_up_to_the_root() {
        let own = "sys/fs/cgroup/user/app";
        let files = |high: &'static str, above: &'static str| {
            megabytes(&[
                V2,
                MEMINFO,
                ("proc/self/cgroup", "0::/user/app\n"),
                (&format!("{own}/memory.max"), "167772160\n"),
                (&format!("{own}/memory.high"), high),
                (&format!("{own}/memory.current"), "99614720\n"),
                (&format!("{own}/memory.stat"), "anon 89128960\ninactive_file 6291456\nactive_file 8388608\n"),
                ("sys/fs/cgroup/user/memory.max", above),
                ("sys/fs/cgroup/user/memory.current", "99614720\n"),
            ])
        };
        assert_eq!(files("max\n", "max\n"), Some(160 - 95 + 6 + 4));
        assert_eq!(files("104857600\n", "max\n"), Some(100 - 95 + 6 + 4));
        assert_eq!(files("max\n", "110100480\n"), Some(105 - 95));
    }

    #[test]
    fn groups_of_version_1_and_of_containers_are_found() {
        let files = |own: &'static str, top: &str| {
            megabytes(&[
                ("proc/self/cgroup", own),
                (
                    "proc/self/mountinfo",
                    &format!(
                        "31 23 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n32 23 0:28 {top} /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                    ),
                ),
                ("sys/fs/cgroup/memory/app/memory.limit_in_bytes", "104857600\n"),
                ("sys/fs/cgroup/memory/app/memory.usage_in_bytes", "52428800\n"),
                ("sys/fs/cgroup/memory/app/memory.stat", "inactive_file 99\ntotal_inactive_file 10485760\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "73400320\n"),
                ("sys/fs/cgroup/memory/memory.usage_in_bytes", "10485760\n"),
            ])
        };
        assert_eq!(files("5:cpu:/app\n4:memory:/app\n", "/"), Some(60));
        assert_eq!(files("4:memory,hugetlb:/docker/1/app\n", "/docker/1"), Some(60));
        assert_eq!(files("4:memory:/../elsewhere\n", "/"), Some(60), "what lies outside is not seen");
        assert_eq!(files("4:memory:/docker/2\n", "/docker/2"), Some(60));
    }

    #[test]
    fn an_image_needs_a_second_copy() {
        assert_eq!(needed(-1, [].into_iter()), LEAST);
        assert_eq!(needed(-1, [40 * MB, 80 * MB].into_iter()), 124 * MB);
        let room = Room { bytes: 63 * MB, of: MemoryOf::Machine };
        assert_eq!(
            room.lacks(LEAST).unwrap().to_string(),
            "memory is short: 63 MB of the machine's memory are free, and an image may need 64 MB"
        );
        assert!(room.lacks(63 * MB).is_none() && !room.is_used_up());
    }
}
