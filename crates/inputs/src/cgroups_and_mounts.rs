//! The kernel's files about where a process runs: its control groups and its mounts.
//!
//! Each login, container and boot of the machine changes some names and numbers in them, on which no program depends.
//! [`Sieve`] omits these, and [`own_scope`] maps a file of the recorded session's control group to that of this
//! session.

use image::ContentDigest;

/// Longest line that is parsed (bytes). A longer one counts as a whole.
const MAX: usize = 2048;

/// The files with their own rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    ControlGroups,
    MountInfo,
    Mounts,
    Other,
}

/// Computes the digest of what counts in a file, from its bytes as they are read.
pub struct Sieve {
    kind: Kind,
    digest: ContentDigest,
    line: [u8; MAX],
    length: usize,
    is_long: bool,
}

impl Sieve {
    /// A sieve for the file at this path, with or without a NUL.
    pub fn for_path(path: &[u8]) -> Sieve {
        let kind = match path.strip_suffix(b"\0").unwrap_or(path) {
            b"/proc/self/cgroup" => Kind::ControlGroups,
            b"/proc/self/mountinfo" => Kind::MountInfo,
            b"/proc/self/mounts" | b"/proc/mounts" => Kind::Mounts,
            _ => Kind::Other,
        };
        Sieve { kind, digest: ContentDigest::default(), line: [0; MAX], length: 0, is_long: false }
    }

    /// Adds the next piece of the file.
    pub fn update(&mut self, bytes: &[u8]) {
        if self.kind == Kind::Other {
            return self.digest.update(bytes);
        }
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.length + piece.len() > MAX {
                self.digest.update(&self.line[..self.length]);
                self.length = 0;
                self.is_long = true;
            }
            if self.is_long {
                self.digest.update(piece);
            } else {
                self.line[self.length..self.length + piece.len()].copy_from_slice(piece);
                self.length += piece.len();
            }
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    /// The digest of all pieces.
    pub fn finish(mut self) -> [u8; 16] {
        self.end_line();
        self.digest.finish()
    }

    fn end_line(&mut self) {
        let line = &self.line[..self.length];
        let digest = &mut self.digest;
        match self.kind {
            Kind::ControlGroups => control_group(line, |part| digest.update(part)),
            Kind::MountInfo => mount(line, &[3, 4], 5, digest),
            Kind::Mounts => mount(line, &[0, 1, 2], 3, digest),
            Kind::Other => {}
        }
        self.length = 0;
        self.is_long = false;
    }
}

/// Writes a line of control groups, or the path of one, without the parts that change: of systemd's scopes
/// (`session-5.scope`) and transient services only the beginning of the name counts, of a long number (a container)
/// nothing.
fn control_group(line: &[u8], mut write: impl FnMut(&[u8])) {
    for part in line.split_inclusive(|&byte| byte == b'/') {
        let (name, slash) = part.split_at(part.len() - usize::from(part.ends_with(b"/")));
        let name = name.strip_suffix(b"\n").unwrap_or(name);
        if is_named_anew(name) {
            let start = name.iter().position(|&byte| byte == b'-').unwrap_or(0);
            let end = name.iter().rposition(|&byte| byte == b'.').unwrap_or(name.len());
            [&name[..start], b"-*", &name[end..]].into_iter().for_each(&mut write);
        } else {
            write(name);
        }
        write(slash);
    }
    write(b"\n");
}

fn is_named_anew(name: &[u8]) -> bool {
    let is_transient = name.ends_with(b".scope") || (name.starts_with(b"run-") && name.ends_with(b".service"));
    let is_number = name.len() >= 32 && name.iter().all(u8::is_ascii_hexdigit);
    is_number || is_transient && name.contains(&b'-')
}

/// Adds a line of mounts: these fields, the options without a value, and all but the last field behind the hyphen. The
/// rest (mount and device numbers, sizes, paths) differs after each boot of the machine and in each container. Mounts
/// that come and go with user sessions and services are omitted.
fn mount(line: &[u8], fields: &[usize], options: usize, digest: &mut ContentDigest) {
    const PASSING: [&[u8]; 2] = [b"/run/user/", b"/run/credentials/"];
    let words = || line.strip_suffix(b"\n").unwrap_or(line).split(|&byte| byte == b' ');
    let at = |number| words().nth(number).unwrap_or(b"");
    let place = at(options - if fields.len() == 2 { 1 } else { 2 });
    if line.is_empty() || PASSING.iter().any(|passing| place.starts_with(passing)) {
        return;
    }
    let mut write = |word: &[u8]| {
        digest.update(word);
        digest.update(b" ");
    };
    fields.iter().for_each(|&number| write(at(number)));
    at(options).split(|&byte| byte == b',').filter(|word| !word.contains(&b'=')).for_each(&mut write);
    words().skip_while(|word| *word != b"-").skip(1).take(2).for_each(&mut write);
    digest.update(b"\n");
}

/// Where control groups are mounted.
const GROUPS: &[u8] = b"/sys/fs/cgroup";

/// The path of a file in this session's own scope, given its path in the recorded session's scope, both without a NUL.
/// `own` is the content of /proc/self/cgroup. None if the path is not in a scope, or if this process is not in a scope
/// of the same kind.
pub fn own_scope<'a>(path: &'a [u8], own: &'a [u8]) -> Option<[&'a [u8]; 3]> {
    let recorded = path.strip_prefix(GROUPS)?;
    let own = own.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"0::"))?;
    let (recorded, rest) = recorded.split_at(end_of_scope(recorded)?);
    let own = &own[..end_of_scope(own)?];
    (key(recorded) == key(own)).then_some([GROUPS, own, rest])
}

/// The end of the first component whose name changes.
fn end_of_scope(path: &[u8]) -> Option<usize> {
    let mut end = 0;
    path.split(|&byte| byte == b'/').find_map(|name| {
        end += name.len() + 1;
        is_named_anew(name).then_some(end - 1)
    })
}

fn key(path: &[u8]) -> [u8; 16] {
    let mut digest = ContentDigest::default();
    control_group(path, |part| digest.update(part));
    digest.finish()
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    fn digest(path: &str, content: &str) -> [u8; 16] {
        let mut sieve = Sieve::for_path(path.as_bytes());
        // Pieces, as a file is read.
        content.as_bytes().chunks(7).for_each(|piece| sieve.update(piece));
        sieve.finish()
    }

    fn same(path: &str, one: &str, other: &str) -> bool {
        digest(path, one) == digest(path, other)
    }

    #[test]
    fn another_session_is_in_the_same_control_group() {
        let same = |one: &str, other: &str| same("/proc/self/cgroup", one, other);
        let of = |name: &str| std::format!("1:name=systemd:/\n0::/user.slice/user-0.slice/{name}\n");
        assert!(same(&of("session-5.scope"), &of("session-c12.scope")));
        assert!(same(&of("run-u7.service"), &of("run-u12.service")));
        assert!(!same(&of("session-5.scope"), &of("docker-5.scope")));
        assert!(!same(&of("session-5.scope"), "0::/system.slice/cron.service\n"));
        assert!(!same("0::/system.slice/a.service\n", "0::/system.slice/b.service\n"));
        assert!(!same("0::/\n", "0::/init.scope\n"));
        let container =
            |number: char| std::format!("4:memory:/docker/{}\n", std::string::String::from(number).repeat(64));
        assert!(same(&container('a'), &container('7')));
        assert!(!same(&container('a'), "4:memory:/docker\n"));
    }

    #[test]
    fn mounts_count_by_what_is_where() {
        let same = |one: &str, other: &str| same("/proc/self/mountinfo", one, other);
        let root = "27 1 0:25 / / rw,relatime shared:1 - overlay overlay rw,upperdir=/x/1\n";
        let again = "90 8 0:77 / / rw,relatime - overlay overlay rw,upperdir=/x/2\n";
        assert!(same(root, again));
        let user = "36 27 0:40 / /run/user/1000 rw,nosuid shared:9 - tmpfs tmpfs rw,size=99k\n";
        assert!(same(root, &std::format!("{root}{user}")));
        for other in [
            "27 1 0:25 / / ro,relatime shared:1 - overlay overlay rw,upperdir=/x/1\n",
            "27 1 0:25 / /mnt rw,relatime shared:1 - overlay overlay rw,upperdir=/x/1\n",
            "27 1 0:25 / / rw,relatime shared:1 - ext4 /dev/vda rw\n",
        ] {
            assert!(!same(root, other), "{other}");
        }
        let mounts = |one: &str, other: &str| super::tests::same("/proc/mounts", one, other);
        assert!(mounts(
            "tmpfs /tmp tmpfs rw,size=5k 0 0\n",
            "tmpfs /tmp tmpfs rw,size=7k 0 0\ntmpfs /run/user/0 tmpfs rw 0 0\n"
        ));
        assert!(!mounts("tmpfs /tmp tmpfs rw,size=5k 0 0\n", "tmpfs /tmp tmpfs ro,size=5k 0 0\n"));
        assert!(!mounts("tmpfs /tmp tmpfs rw 0 0\n", "tmpfs /var tmpfs rw 0 0\n"));
    }

    #[test]
    fn other_files_and_long_lines_count_as_they_are() {
        assert_eq!(digest("/proc/filesystems", "a\nb"), image::digest(b"a\nb"));
        let long = |end: &str| "x".repeat(MAX + 1) + "/session-" + end + ".scope\n";
        assert!(!same("/proc/self/cgroup", &long("1"), &long("2")));
        assert!(same("/proc/self/cgroup", &long("1"), &long("1")));
    }

    #[test]
    fn a_file_of_a_scope_is_looked_for_in_the_own_one() {
        let own = |path: &str, content: &str| {
            let parts = own_scope(path.as_bytes(), content.as_bytes())?;
            Some(std::string::String::from_utf8(parts.concat()).unwrap())
        };
        let path = "/sys/fs/cgroup/user.slice/user-0.slice/session-5.scope/cpu.max";
        let here = "1:cpu:/x\n0::/user.slice/user-0.slice/session-17.scope\n";
        let expected = "/sys/fs/cgroup/user.slice/user-0.slice/session-17.scope/cpu.max";
        assert_eq!(own(path, here).as_deref(), Some(expected));
        assert_eq!(own(path, "0::/system.slice/cron.service\n"), None);
        assert_eq!(own(path, "0::/user.slice/user-1.slice/session-5.scope\n"), None);
        assert_eq!(own("/sys/fs/cgroup/user.slice/cpu.max", here), None);
        assert_eq!(own("/proc/session-1.scope/x", here), None);
    }
}
