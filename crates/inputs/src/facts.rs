//! Facts that a program can ask about the machine, the user and its process: how they are recorded and compared.
//!
//! An image records each fact that its boot read as a short text. A comparison reads the fact again through [`Kernel`]
//! and makes the same text.
//!
//! All files of /proc and /sys share one kind, by the digest of their content. If only a part of the file is
//! stable, a row of FACTS in crates/freeze boot_inputs/kernel_files.rs names the fact that covers this part. To add a
//! fact: here its number in [`fact_kind`], its text in [`Value::read`] and its names in [`kind_from_word`] and
//! [`name`]; its reads in crates/freezer sys/libc_hooks.rs or, if the C library does not see them, in reads.py and
//! reads.rb of the front ends; and its row in docs/internals/image-format.md and docs/limits/ordinary-start.md. A fact
//! that /proc does not have also needs a system call in [`Kernel`], implemented in crates/launcher facts.rs and
//! crates/image-file this_process.rs.

use core::fmt::{self, Write};

use image::HostFact;

use crate::cgroups_and_mounts;
use crate::words::Lossy;

mod difference;
mod found;
pub mod searched;
pub use difference::{first_terminal_difference, pass_differences, Difference};
pub use found::{home_of_user, WITHOUT_HOME};

/// The kinds of facts.
pub mod fact_kind {
    /// The host's name.
    pub const HOSTNAME: u32 = 1;
    /// Release and version of the kernel, and the machine's architecture.
    pub const KERNEL: u32 = 2;
    /// The CPUs that are present and those that are online.
    pub const CPUS: u32 = 3;
    /// The CPUs that the process may run on.
    pub const AFFINITY: u32 = 4;
    /// The size of the memory.
    pub const MEMORY: u32 = 5;
    /// A limit of the process: RLIMIT_ number `of`.
    pub const LIMIT: u32 = 6;
    /// Real and effective user and group.
    pub const USER: u32 = 7;
    /// The supplementary groups.
    pub const GROUPS: u32 = 8;
    /// The size of the terminal at descriptor `of`.
    pub const WINDOW: u32 = 9;
    /// The current directory.
    pub const CWD: u32 = 10;
    /// A file of the kernel below /proc or /sys: its path and content.
    pub const KERNEL_FILE: u32 = 11;
    /// Whether descriptor `of` is a terminal.
    pub const TERMINAL: u32 = 12;
    /// The umask.
    pub const UMASK: u32 = 13;
    /// Where a name is first found in the directories of a variable: `$PATH/git: /usr/bin/git`, or `absent`.
    pub const FOUND: u32 = 14;
    /// Names that no directory of a variable may contain if the variable's value differs from the boot's: `PYTHONPATH
    /// DIGEST: json/os/re`.
    pub const SEARCHED: u32 = 15;
    /// The nice value.
    pub const NICE: u32 = 16;
}

/// The text for a stream that is not a terminal.
pub const NO_TERMINAL: &[u8] = b"no terminal";

/// Occurs in the path of a file of a session's control group.
const SCOPE: &[u8] = b".scope/";

/// The longest text that is compared (bytes): enough for 700 groups.
const MAX: usize = 8192;

/// The system calls behind the facts. None means that a call failed, or that the system cannot tell; then no fact
/// counts as unchanged.
pub trait Kernel {
    /// Passes nodename, release, version and machine of uname(2) to `write`.
    fn uname(&self, write: &mut dyn FnMut([&[u8]; 4]));
    /// Reads the start of a small file of /sys; `path` ends with a NUL. Returns the number of bytes read.
    fn read(&self, _path: &[u8], _buffer: &mut [u8]) -> Option<usize> {
        None
    }
    /// The content at a path below /proc or /sys, which ends with a NUL. A [`cgroups_and_mounts::Sieve`] computes the digests.
    fn content(&self, path: &[u8]) -> Content;
    /// The CPUs that this process may run on, one bit each. Returns the number of bytes written to `mask`.
    fn affinity(&self, _mask: &mut [u8]) -> Option<usize> {
        None
    }
    /// The size of memory (bytes).
    fn memory(&self) -> Option<u64> {
        None
    }
    /// Soft and hard limit of a RLIMIT_ number; `u64::MAX` for unlimited.
    fn limit(&self, _number: u32) -> Option<(u64, u64)> {
        None
    }
    /// Real and effective user, real and effective group.
    fn user(&self) -> [u32; 4];
    /// Passes each supplementary group to `write`.
    fn groups(&self, _write: &mut dyn FnMut(u32)) -> Option<()> {
        None
    }
    /// Columns and rows of the terminal at a descriptor; None if it is not a terminal.
    fn window(&self, _descriptor: u32) -> Option<(u16, u16)> {
        None
    }
    /// The current directory. Returns the number of bytes written to `buffer`.
    fn cwd(&self, _buffer: &mut [u8]) -> Option<usize> {
        None
    }
    /// The umask.
    fn umask(&self) -> Option<u32> {
        None
    }
    /// The value of a variable. Returns the number of bytes written to `buffer`; None if it is unset or too long.
    fn variable(&self, _name: &[u8], _buffer: &mut [u8]) -> Option<usize> {
        None
    }
    /// Whether a path, which ends with a NUL, exists. None if that is unknown.
    fn is_there(&self, _path: &[u8]) -> Option<bool> {
        None
    }
    /// Passes the value of a variable to `see`, if it is set.
    fn with_variable(&self, name: &[u8], see: &mut dyn FnMut(&[u8]));
    /// Passes each name in a directory to `each`; its path ends with a NUL. Returns whether it exists; None if that is
    /// unknown.
    fn names(&self, _path: &[u8], _each: &mut dyn FnMut(&[u8])) -> Option<bool> {
        None
    }
}

/// The content of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing is there.
    Absent,
    /// A directory.
    Directory,
    /// A file that this process may not read.
    Unreadable,
    /// A file with this digest.
    Digest([u8; 16]),
}

/// A fact as text.
pub struct Value {
    bytes: [u8; MAX],
    length: usize,
    is_cut: bool,
}

const EMPTY: Value = Value { bytes: [0; MAX], length: 0, is_cut: false };

impl Value {
    /// Reads a fact from the kernel. None if it cannot be recorded: this version does not know the kind, or the text is
    /// too long.
    pub fn read(kernel: &impl Kernel, kind: u32, of: u32) -> Option<Value> {
        let mut value = EMPTY;
        value.fill(kernel, kind, of)?;
        (!value.is_cut).then_some(value)
    }

    /// Reads a file of the kernel. None if the path is too long.
    pub fn read_kernel_file(kernel: &impl Kernel, path: &[u8]) -> Option<Value> {
        let mut value = EMPTY;
        value.push(path);
        value.push(b"\0");
        let content = (!value.is_cut).then(|| match value.own_scope(kernel, path) {
            Some(own) => kernel.content(own.bytes()),
            None => kernel.content(value.bytes()),
        })?;
        value.length = path.len();
        value.push(b": ");
        match content {
            Content::Absent => value.push(b"absent"),
            Content::Directory => value.push(b"directory"),
            Content::Unreadable => value.push(b"unreadable"),
            Content::Digest(digest) => digest.iter().for_each(|byte| value.push_text(format_args!("{byte:02x}"))),
        }
        (!value.is_cut).then_some(value)
    }

    /// The path of the file in this session's control group, if `path` (with a NUL) is in another session's.
    fn own_scope(&self, kernel: &impl Kernel, path: &[u8]) -> Option<Value> {
        if !path.windows(SCOPE.len()).any(|part| part == SCOPE) {
            return None;
        }
        let mut groups = [0; 4096];
        let size = kernel.read(b"/proc/self/cgroup\0", &mut groups)?;
        let mut value = EMPTY;
        cgroups_and_mounts::own_scope(path, &groups[..size])?
            .into_iter()
            .chain([&b"\0"[..]])
            .for_each(|part| value.push(part));
        (!value.is_cut).then_some(value)
    }

    /// Reads a recorded fact again. None as for [`Value::read`], and if the record is damaged.
    pub fn read_again(kernel: &impl Kernel, fact: &HostFact, recorded: &[u8]) -> Option<Value> {
        match fact.kind {
            fact_kind::KERNEL_FILE | fact_kind::USER if fact.of == WITHOUT_HOME && found::has_home(kernel) => {
                Some(Value::from_recorded(recorded))
            }
            fact_kind::KERNEL_FILE => Value::read_kernel_file(kernel, recorded_path(fact, recorded)?),
            fact_kind::FOUND => Value::find(kernel, recorded_path(fact, recorded)?),
            kind => Value::read(kernel, kind, fact.of),
        }
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn shown(&self) -> Lossy<'_> {
        Lossy(self.bytes())
    }

    fn fill(&mut self, kernel: &impl Kernel, kind: u32, of: u32) -> Option<()> {
        match kind {
            fact_kind::HOSTNAME => kernel.uname(&mut |[name, ..]| self.push(name)),
            fact_kind::KERNEL => kernel.uname(&mut |[_, release, version, machine]| {
                [release, b" ", version, b" ", machine].into_iter().for_each(|part| self.push(part));
            }),
            fact_kind::CPUS => {
                self.push_file(kernel, b"/sys/devices/system/cpu/present\0");
                self.push(b" online ");
                self.push_file(kernel, b"/sys/devices/system/cpu/online\0");
            }
            fact_kind::AFFINITY => self.push_affinity(kernel)?,
            fact_kind::MEMORY => self.push_text(format_args!("{}", kernel.memory()?)),
            fact_kind::LIMIT => {
                let (soft, hard) = kernel.limit(of)?;
                self.push_limit(soft);
                self.push(b"/");
                self.push_limit(hard);
            }
            fact_kind::USER => {
                let [user, effective_user, group, effective_group] = kernel.user();
                self.push_text(format_args!("{user} {effective_user} {group} {effective_group}"));
            }
            fact_kind::GROUPS => {
                let mut space = "";
                kernel.groups(&mut |group| {
                    self.push_text(format_args!("{space}{group}"));
                    space = " ";
                })?;
            }
            fact_kind::WINDOW => match kernel.window(of) {
                Some((columns, rows)) => self.push_text(format_args!("{columns}x{rows}")),
                None => self.push(NO_TERMINAL),
            },
            fact_kind::TERMINAL if kernel.window(of).is_some() => self.push(b"a terminal"),
            fact_kind::TERMINAL => self.push(NO_TERMINAL),
            fact_kind::UMASK => self.push_text(format_args!("{:04o}", kernel.umask()?)),
            fact_kind::NICE => self.push_own_field(kernel, 19)?,
            fact_kind::CWD => {
                let mut buffer = [0; 4096];
                let size = kernel.cwd(&mut buffer);
                self.push(size.map_or(b"gone", |size| &buffer[..size]));
            }
            _ => return None,
        }
        Some(())
    }

    fn push(&mut self, bytes: &[u8]) {
        match self.bytes.get_mut(self.length..self.length + bytes.len()) {
            Some(free) => {
                free.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            None => self.is_cut = true,
        }
    }

    fn push_text(&mut self, text: fmt::Arguments<'_>) {
        // `write_str` never fails.
        let _ = self.write_fmt(text);
    }

    /// Appends the first line of a file; nothing if it cannot be read.
    fn push_file(&mut self, kernel: &impl Kernel, path: &[u8]) {
        let mut buffer = [0; 1024];
        let size = kernel.read(path, &mut buffer).unwrap_or(0);
        self.push(buffer[..size].split(|&byte| byte == b'\n').next().unwrap_or(b""));
    }

    /// Appends the field of this number in the process' own stat file, see proc_pid_stat(5).
    fn push_own_field(&mut self, kernel: &impl Kernel, number: usize) -> Option<()> {
        let mut buffer = [0; 1024];
        let size = kernel.read(b"/proc/self/stat\0", &mut buffer)?;
        // The second field, the name in parentheses, may contain spaces and parentheses.
        let name_end = buffer[..size].iter().rposition(|&byte| byte == b')')?;
        self.push(buffer[name_end..size].split(|&byte| byte == b' ').nth(number - 2)?);
        Some(())
    }

    fn push_limit(&mut self, limit: u64) {
        match limit {
            u64::MAX => self.push(b"unlimited"),
            limit => self.push_text(format_args!("{limit}")),
        }
    }

    /// Appends a list such as `0-3,8`.
    fn push_affinity(&mut self, kernel: &impl Kernel) -> Option<()> {
        let mut mask = [0; 1024];
        let size = kernel.affinity(&mut mask)?;
        let count = size * 8;
        let is_in = |cpu: usize| mask[cpu / 8] & (1 << (cpu % 8)) != 0;
        let (mut cpu, mut comma) = (0, "");
        while cpu < count {
            let start = cpu;
            while cpu < count && is_in(cpu) {
                cpu += 1;
            }
            match cpu - start {
                0 => {}
                1 => self.push_text(format_args!("{comma}{start}")),
                _ => self.push_text(format_args!("{comma}{start}-{}", cpu - 1)),
            }
            if cpu > start {
                comma = ",";
            }
            cpu += 1;
        }
        Some(())
    }
}

impl Write for Value {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

/// Whether facts of this kind are about the start's terminal.
pub fn is_of_terminal(kind: u32) -> bool {
    [fact_kind::TERMINAL, fact_kind::WINDOW].contains(&kind)
}

/// Not inlined: the buffer for the longest text would enlarge the stack of every start, even if no fact was read.
#[inline(never)]
fn is_unchanged(fact: &HostFact, recorded: &[u8], kernel: &impl Kernel) -> bool {
    if fact.kind == fact_kind::SEARCHED {
        return Value::read_obstacle(kernel, recorded).is_none();
    }
    Value::read_again(kernel, fact, recorded).is_some_and(|now| now.bytes() == recorded)
}

/// The kind of a fact, by its word in the events of freezer and front ends.
pub fn kind_from_word(word: &[u8]) -> Option<u32> {
    Some(match word {
        b"hostname" => fact_kind::HOSTNAME,
        b"kernel" => fact_kind::KERNEL,
        b"cpus" => fact_kind::CPUS,
        b"affinity" => fact_kind::AFFINITY,
        b"memory" => fact_kind::MEMORY,
        b"limit" => fact_kind::LIMIT,
        b"user" => fact_kind::USER,
        b"groups" => fact_kind::GROUPS,
        b"window" => fact_kind::WINDOW,
        b"cwd" => fact_kind::CWD,
        b"terminal" => fact_kind::TERMINAL,
        b"umask" => fact_kind::UMASK,
        b"nice" => fact_kind::NICE,
        _ => return None,
    })
}

/// The file of the kernel that a fact is about, or the name that was looked for. None for other kinds, and if the
/// record is damaged.
pub fn recorded_path<'a>(fact: &HostFact, recorded: &'a [u8]) -> Option<&'a [u8]> {
    let end = recorded.windows(2).rposition(|pair| pair == b": ")?;
    matches!(fact.kind, fact_kind::KERNEL_FILE | fact_kind::FOUND).then_some(&recorded[..end])
}

/// The name of a fact in messages.
pub fn name(kind: u32, of: u32) -> &'static str {
    match (kind, of) {
        (fact_kind::HOSTNAME, _) => "hostname",
        (fact_kind::KERNEL, _) => "kernel",
        (fact_kind::CPUS, _) => "CPUs",
        (fact_kind::AFFINITY, _) => "CPUs that the process may use",
        (fact_kind::MEMORY, _) => "size of the memory (bytes)",
        (fact_kind::LIMIT, number) => LIMITS.get(number as usize).unwrap_or(&"a limit"),
        (fact_kind::USER, _) => "user and group",
        (fact_kind::GROUPS, _) => "supplementary groups",
        (fact_kind::WINDOW, 0) => "size of the terminal at standard input",
        (fact_kind::WINDOW, 1) => "size of the terminal at standard output",
        (fact_kind::WINDOW, _) => "size of the terminal at standard error",
        (fact_kind::CWD, _) => "current directory",
        (fact_kind::TERMINAL, 0) => "standard input",
        (fact_kind::TERMINAL, 1) => "standard output",
        (fact_kind::TERMINAL, _) => "standard error",
        (fact_kind::UMASK, _) => "umask",
        (fact_kind::NICE, _) => "nice value",
        (fact_kind::KERNEL_FILE, _) => "file of the kernel",
        (fact_kind::FOUND, _) => "look-up",
        (fact_kind::SEARCHED, _) => "look-ups without a result",
        _ => "a fact that this version does not know",
    }
}

/// Names of the limits, by RLIMIT_ number.
const LIMITS: [&str; 16] = [
    "limit of CPU time (seconds)",
    "limit of file sizes (bytes)",
    "limit of data (bytes)",
    "limit of the stack (bytes)",
    "limit of core dumps (bytes)",
    "limit of resident memory (bytes)",
    "limit of processes",
    "limit of open files",
    "limit of locked memory (bytes)",
    "limit of the address space (bytes)",
    "limit of file locks",
    "limit of pending signals",
    "limit of message queues (bytes)",
    "limit of niceness",
    "limit of real-time priority",
    "limit of real-time CPU time (us)",
];

#[cfg(test)]
mod tests;
