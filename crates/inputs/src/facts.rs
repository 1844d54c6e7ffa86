//! What a program can ask about the machine, the user and its process: how the answers are written down and compared.
//!
//! A file of /proc or /sys that a boot reads is an input by a digest of its content, and needs no fact; where only a part of it is stable, a
//! row of FACTS in crates/freeze kernel_files.rs leads to a fact that tells this part. To add a fact: its number in crates/image records.rs (`fact_kind`); here its system call in [`Kernel`], its text in [`Value`], its
//! names in [`kind`] and [`name`]; for what is no file, the system call once more in crates/launcher facts.rs and crates/image-file this_process.rs; who
//! reads it, in crates/freezer sys/libc_hooks.rs, and in reads.py and reads.rb of the front ends where the C library does not see it;
//! its row in docs/internals/image-format.md and docs/limits/ordinary-start.md.
//!
//! An image records those facts that its boot read, each as a short text. Whoever compares reads them from the kernel again, through
//! [`Kernel`], and makes the same text.

use core::fmt::{self, Write};

use image::{fact_kind, Error, HostFact, Section, Tables};

use crate::place;

mod found;
pub mod searched;
pub use found::{home_of_user, WITHOUT_HOME};

/// What is said of a stream that is no terminal.
pub const NO_TERMINAL: &[u8] = b"no terminal";

/// In the path of a file of a session's control group.
const SCOPE: &[u8] = b".scope/";

/// The longest answer that is compared (bytes): enough for 700 groups.
const MAX: usize = 8192;

/// The system calls behind the facts. None stands for one that fails.
pub trait Kernel {
    /// Nodename, release, version and machine of uname(2), passed to `write`.
    fn uname(&self, write: &mut dyn FnMut([&[u8]; 4]));
    /// Reads a small file of /sys from its start; `path` ends with a NUL. Returns how much was read (bytes).
    fn read(&self, path: &[u8], buffer: &mut [u8]) -> Option<usize>;
    /// What is at a path below /proc or /sys, which ends with a NUL. Digests come out of a [`place::Sieve`].
    fn content(&self, path: &[u8]) -> Content;
    /// The CPUs that this process may run on, a bit each. Returns how many bytes of `mask` were filled.
    fn affinity(&self, mask: &mut [u8]) -> Option<usize>;
    /// The size of the memory (bytes).
    fn memory(&self) -> Option<u64>;
    /// Soft and hard limit of a RLIMIT_ number; `u64::MAX` stands for none.
    fn limit(&self, number: u32) -> Option<(u64, u64)>;
    /// Real and effective user, real and effective group.
    fn user(&self) -> [u32; 4];
    /// The supplementary groups, each passed to `write`.
    fn groups(&self, write: &mut dyn FnMut(u32)) -> Option<()>;
    /// Columns and rows of the terminal at a descriptor; None when there is none.
    fn window(&self, descriptor: u32) -> Option<(u16, u16)>;
    /// The current directory. Returns how many bytes of `buffer` were filled.
    fn cwd(&self, buffer: &mut [u8]) -> Option<usize>;
    /// The umask.
    fn umask(&self) -> u32;
    /// The value of a variable. Returns how many bytes of `buffer` were filled; None where it is not set, or too long.
    fn variable(&self, name: &[u8], buffer: &mut [u8]) -> Option<usize>;
    /// Whether there is anything at a path, which ends with a NUL. None where nobody can tell.
    fn is_there(&self, path: &[u8]) -> Option<bool>;
    /// Passes the value of a variable to `see`, if it is set.
    fn with_variable(&self, name: &[u8], see: &mut dyn FnMut(&[u8]));
    /// Passes each name in a directory to `each`; its path ends with a NUL. Returns whether it is there; None where nobody can tell.
    fn names(&self, path: &[u8], each: &mut dyn FnMut(&[u8])) -> Option<bool>;
}

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    Absent,
    /// A directory.
    Directory,
    /// A file whose content this process may not read.
    Unreadable,
    /// A file with this digest.
    Digest([u8; 16]),
}

/// A fact in words.
pub struct Value {
    bytes: [u8; MAX],
    length: usize,
    is_cut: bool,
}

const EMPTY: Value = Value { bytes: [0; MAX], length: 0, is_cut: false };

impl Value {
    /// Reads it from the kernel. None for what cannot be written down: a kind that this version does not know, an answer that is too long.
    pub fn ask(kernel: &impl Kernel, kind: u32, of: u32) -> Option<Value> {
        let mut value = EMPTY;
        value.fill(kernel, kind, of)?;
        (!value.is_cut).then_some(value)
    }

    /// Reads a file of the kernel's. None for a path that is too long.
    pub fn of_kernel_file(kernel: &impl Kernel, path: &[u8]) -> Option<Value> {
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

    /// Where this session has the file, if it is one of a session's control group; its path ends with a NUL.
    fn own_scope(&self, kernel: &impl Kernel, path: &[u8]) -> Option<Value> {
        if !path.windows(SCOPE.len()).any(|part| part == SCOPE) {
            return None;
        }
        let mut groups = [0; 4096];
        let size = kernel.read(b"/proc/self/cgroup\0", &mut groups)?;
        let mut value = EMPTY;
        place::own_scope(path, &groups[..size])?.into_iter().chain([&b"\0"[..]]).for_each(|part| value.push(part));
        (!value.is_cut).then_some(value)
    }

    /// Reads again what an image recorded. None as for [`Value::ask`], and for a record that is damaged.
    pub fn now(kernel: &impl Kernel, fact: &HostFact, recorded: &[u8]) -> Option<Value> {
        match fact.kind {
            fact_kind::KERNEL_FILE | fact_kind::USER if fact.of == WITHOUT_HOME && found::has_home(kernel) => {
                Some(Value::recorded(recorded))
            }
            fact_kind::KERNEL_FILE => Value::of_kernel_file(kernel, path(fact, recorded)?),
            fact_kind::FOUND => Value::found(kernel, path(fact, recorded)?),
            kind => Value::ask(kernel, kind, fact.of),
        }
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
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
            fact_kind::UMASK => self.push_text(format_args!("{:04o}", kernel.umask())),
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

    /// The first line of a file; nothing where it cannot be read.
    fn push_file(&mut self, kernel: &impl Kernel, path: &[u8]) {
        let mut buffer = [0; 1024];
        let size = kernel.read(path, &mut buffer).unwrap_or(0);
        self.push(buffer[..size].split(|&byte| byte == b'\n').next().unwrap_or(b""));
    }

    fn push_limit(&mut self, limit: u64) {
        match limit {
            u64::MAX => self.push(b"unlimited"),
            limit => self.push_text(format_args!("{limit}")),
        }
    }

    /// `0-3,8`.
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

/// The first fact that is not what the image recorded. Fails for tables that are damaged.
pub fn compare(tables: &Tables<'_>, kernel: &impl Kernel) -> Result<Option<HostFact>, Error> {
    compare_kinds(tables, kernel, |_| true)
}

/// The same of facts about terminals alone.
pub fn compare_terminals(tables: &Tables<'_>, kernel: &impl Kernel) -> Result<Option<HostFact>, Error> {
    compare_kinds(tables, kernel, is_of_terminal)
}

/// Whether facts of this kind are about the terminal of a start.
pub fn is_of_terminal(kind: u32) -> bool {
    [fact_kind::TERMINAL, fact_kind::WINDOW].contains(&kind)
}

fn compare_kinds(
    tables: &Tables<'_>,
    kernel: &impl Kernel,
    counts: impl Fn(u32) -> bool,
) -> Result<Option<HostFact>, Error> {
    for fact in tables.rows::<HostFact>(Section::Facts)? {
        if counts(fact.kind) && !is_unchanged(&fact, tables.text(fact.value)?, kernel) {
            return Ok(Some(fact));
        }
    }
    Ok(None)
}

/// Not inlined: the buffer for the longest answers would make the stack of every start larger, also where no fact was read.
#[inline(never)]
fn is_unchanged(fact: &HostFact, recorded: &[u8], kernel: &impl Kernel) -> bool {
    if fact.kind == fact_kind::SEARCHED {
        return Value::of_obstacle(kernel, recorded).is_none();
    }
    Value::now(kernel, fact, recorded).is_some_and(|now| now.bytes() == recorded)
}

/// The kinds, by the words that freezer and front ends note them with.
pub fn kind(word: &[u8]) -> Option<u32> {
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
        _ => return None,
    })
}

/// Of which file of the kernel's a fact tells, or what was looked for. None for other kinds, and for a record that is damaged.
pub fn path<'a>(fact: &HostFact, recorded: &'a [u8]) -> Option<&'a [u8]> {
    let end = recorded.windows(2).rposition(|pair| pair == b": ")?;
    matches!(fact.kind, fact_kind::KERNEL_FILE | fact_kind::FOUND).then_some(&recorded[..end])
}

/// What has changed where the boot saw whether a standard stream is a terminal, in words. None for other facts.
pub fn change_of_terminal(fact: &HostFact, recorded: &[u8]) -> Option<&'static str> {
    let was_none = recorded == NO_TERMINAL;
    (fact.kind == fact_kind::TERMINAL).then_some(match (fact.of, was_none) {
        (0, true) => "stale: standard input is a terminal; it was none when the image was made",
        (0, false) => "stale: standard input is no terminal; it was one when the image was made",
        (1, true) => "stale: standard output is a terminal; it was none (a pipe, a file) when the image was made",
        (1, false) => "stale: standard output is no terminal; it was one when the image was made",
        (_, true) => "stale: standard error is a terminal; it was none (a pipe, a file) when the image was made",
        (_, false) => "stale: standard error is no terminal; it was one when the image was made",
    })
}

/// What a fact is about, for people.
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
        (fact_kind::TERMINAL, 0) => "standard input, a terminal or not",
        (fact_kind::TERMINAL, 1) => "standard output, a terminal or not",
        (fact_kind::TERMINAL, _) => "standard error, a terminal or not",
        (fact_kind::UMASK, _) => "umask",
        (fact_kind::KERNEL_FILE, _) => "file of the kernel",
        (fact_kind::FOUND, _) => "what was looked for along a variable",
        (fact_kind::SEARCHED, _) => "names that no directory of a variable may have",
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
