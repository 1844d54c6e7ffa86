//! Reads and sets the kernel's attributes of a process.

use alloc::vec;
use core::ffi::{c_int, c_long};

use inputs::attributes::Attribute;

use super::{errno, file, File};
use crate::arch;

/// Constants of linux/prctl.h, sched.h and keyctl.h that the C library's bindings lack.
const PR_SET_IO_FLUSHER: c_int = 57;
const PR_GET_IO_FLUSHER: c_int = 58;
const PR_GET_SPECULATION_CTRL: c_int = 52;
const PR_SCHED_CORE: c_int = 62;
const PR_GET_MDWE: c_int = 66;
const PR_SET_MEMORY_MERGE: c_int = 67;
const PR_GET_MEMORY_MERGE: c_int = 68;
const PR_CAP_AMBIENT: c_int = 47;
const PR_CAP_AMBIENT_IS_SET: usize = 1;
const PR_MCE_KILL_SET: usize = 1;
const SCHED_FLAG_UTIL_CLAMP: u64 = 0x60;
const KEYCTL_GET_KEYRING_ID: c_long = 0;
const KEYRINGS: [c_long; 3] = [-1, -2, -3];
const LINUX_CAPABILITY_VERSION_3: u32 = 0x2008_0522;
/// From ioprio_set(2): the calling process.
const IOPRIO_WHO_PROCESS: c_long = 1;
/// How many bits of CPU and NUMA node masks are kept.
const MASK_BITS: usize = 1024;
const NAMESPACES: [&[u8]; 10] =
    [b"cgroup", b"ipc", b"mnt", b"net", b"pid", b"pid_for_children", b"time", b"time_for_children", b"user", b"uts"];
const LABELS: [&[u8]; 5] = [b"current", b"exec", b"fscreate", b"keycreate", b"sockcreate"];

/// Size of the longest value that can be set again: a mask and a number.
const ROOM: usize = MASK_BITS / 8 + 8;

/// The value of an attribute; empty if the kernel does not report it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Value {
    length: u16,
    /// Whether the value is too long and this is its digest.
    pub is_digest: bool,
    bytes: [u8; ROOM],
}

/// The value of an attribute that the kernel does not report.
pub const NOTHING: Value = Value { length: 0, is_digest: false, bytes: [0; ROOM] };

impl Value {
    fn new(bytes: &[u8]) -> Value {
        let mut value = NOTHING;
        let digest;
        let kept = if bytes.len() <= ROOM {
            bytes
        } else {
            digest = image::digest(bytes);
            value.is_digest = true;
            &digest[..]
        };
        value.bytes[..kept.len()].copy_from_slice(kept);
        value.length = kept.len() as u16;
        value
    }

    fn number(number: i64) -> Value {
        Value::new(&number.to_ne_bytes())
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// One of its 64-bit words; 0 past the end.
    pub fn word(&self, index: usize) -> u64 {
        let word = self.bytes().get(index * 8..index * 8 + 8).and_then(|bytes| bytes.try_into().ok());
        u64::from_ne_bytes(word.unwrap_or_default())
    }
}

/// Reads an attribute.
pub fn read(attribute: Attribute) -> Value {
    use Attribute::*;
    match attribute {
        Directory => {
            let mut path = [0; libc::PATH_MAX as usize];
            let size = directory(&mut path);
            Value::new(&path[..size])
        }
        OutOfMemoryScore => setting(b"/proc/thread-self/oom_score_adj\0"),
        CoreDumpFilter => setting(b"/proc/self/coredump_filter\0"),
        Affinity => {
            let mut mask = [0u8; MASK_BITS / 8];
            match call(libc::SYS_sched_getaffinity, [0, mask.len(), mask.as_mut_ptr() as usize]) {
                Ok(size) => Value::new(&mask[..size]),
                Err(_) => NOTHING,
            }
        }
        Scheduling => {
            let mut words = [0u64; 7];
            let size = size_of_val(&words);
            match call(libc::SYS_sched_getattr, [0, words.as_mut_ptr() as usize, size, 0]) {
                Ok(_) => Value::of_words(&words),
                Err(_) => NOTHING,
            }
        }
        IoPriority => number(call(libc::SYS_ioprio_get, [IOPRIO_WHO_PROCESS as usize, 0])),
        MemoryPolicy => {
            let mut words = [0u64; MASK_BITS / 64 + 1];
            let (mode, mask) = (&raw mut words[0] as usize, &raw mut words[1] as usize);
            match call(libc::SYS_get_mempolicy, [mode, mask, MASK_BITS, 0, 0]) {
                Ok(_) => Value::of_words(&words),
                Err(_) => NOTHING,
            }
        }
        Personality => number(call(libc::SYS_personality, [0xffff_ffff])),
        TimerSlack => number(prctl(libc::PR_GET_TIMERSLACK, [])),
        HugePages => number(prctl(libc::PR_GET_THP_DISABLE, [])),
        MemoryMerge => number(prctl(PR_GET_MEMORY_MERGE, [])),
        Subreaper => prctl_answer(libc::PR_GET_CHILD_SUBREAPER),
        ParentDeathSignal => prctl_answer(libc::PR_GET_PDEATHSIG),
        MachineChecks => number(prctl(libc::PR_MCE_KILL_GET, [])),
        IoFlusher => number(prctl(PR_GET_IO_FLUSHER, [])),
        ExtendedRegisters => Value::number(arch::extended_registers() as i64),
        Users => ids(libc::SYS_getresuid, libc::SYS_setfsuid),
        Groups => ids(libc::SYS_getresgid, libc::SYS_setfsgid),
        SupplementaryGroups => {
            let count = call(libc::SYS_getgroups, [0, 0]).unwrap_or(0);
            let mut groups = vec![0u8; count * 4];
            match call(libc::SYS_getgroups, [count, groups.as_mut_ptr() as usize]) {
                Ok(_) => Value::new(&groups),
                Err(_) => NOTHING,
            }
        }
        Capabilities => {
            let header = [LINUX_CAPABILITY_VERSION_3, 0];
            let mut sets = [0u64; 3];
            match call(libc::SYS_capget, [header.as_ptr() as usize, sets.as_mut_ptr() as usize]) {
                Ok(_) => Value::of_words(&sets),
                Err(_) => NOTHING,
            }
        }
        AmbientCapabilities => bits(|capability| prctl(PR_CAP_AMBIENT, [PR_CAP_AMBIENT_IS_SET, capability])),
        CapabilityBounds => bits(|capability| prctl(libc::PR_CAPBSET_READ, [capability])),
        SecureBits => number(prctl(libc::PR_GET_SECUREBITS, [])),
        NoNewPrivileges => number(prctl(libc::PR_GET_NO_NEW_PRIVS, [])),
        SeccompFilters => status(b"Seccomp_filters:"),
        Dumpable => number(prctl(libc::PR_GET_DUMPABLE, [])),
        DenyWriteExecute => number(prctl(PR_GET_MDWE, [])),
        Speculation => {
            let control = |which| prctl(PR_GET_SPECULATION_CTRL, [which]).map_or(u64::MAX, |answer| answer as u64);
            Value::of_words(&[control(0), control(1), control(2)])
        }
        Namespaces => all_files(b"ns/", &NAMESPACES, file::read_link),
        ControlGroup => Value::new(&file::read_file(b"/proc/thread-self/cgroup\0")),
        SecurityLabel => all_files(b"attr/", &LABELS, file::read_file),
        Keyrings => {
            let id = |which: c_long| {
                call(libc::SYS_keyctl, [KEYCTL_GET_KEYRING_ID as usize, which as usize, 0]).map_or(0, |id| id as u64)
            };
            Value::of_words(&KEYRINGS.map(id))
        }
        Session => number(call(libc::SYS_getsid, [0])),
        ProcessGroup => number(call(libc::SYS_getpgid, [0])),
        LockedMemory => status(b"VmLck:"),
        CoreScheduling => {
            let mut cookie = 0u64;
            let _ = prctl(PR_SCHED_CORE, [0, 0, 0, &raw mut cookie as usize]);
            Value::number(cookie as i64)
        }
        Autogroup => {
            let text = file::read_file(b"/proc/self/autogroup\0");
            Value::new(text.rsplit(|&byte| byte == b' ').next().unwrap_or_default())
        }
        LoginId => Value::new(&file::read_file(b"/proc/thread-self/loginuid\0")),
        CpuSwitches => Value::of_words(&arch::cpu_switches()),
        SegmentTable => Value::number(arch::segment_table_size() as i64),
        // The recorder sees these being set.
        Root | Landlock | Tracer | SyscallDispatch | IoPorts => NOTHING,
        _ => match attribute.limit() {
            Some(number) => {
                let mut limit = [0u64; 2];
                match call(libc::SYS_prlimit64, [0, number as usize, 0, limit.as_mut_ptr() as usize]) {
                    Ok(_) => Value::of_words(&limit),
                    Err(_) => NOTHING,
                }
            }
            None => NOTHING,
        },
    }
}

/// Sets an attribute to a value; `before` is its current value. Fails with an errno.
pub fn set(attribute: Attribute, value: &Value, before: &Value, directory: &[u8]) -> Result<(), c_int> {
    use Attribute::*;
    let number = value.word(0) as usize;
    let mut words = [0u64; ROOM / 8];
    words.iter_mut().enumerate().for_each(|(index, word)| *word = value.word(index));
    // The utilisation clamps, the two halves of the last word, apply only with their flag.
    if attribute == Scheduling && words[6] != 1024 << 32 && words[6] != 0 {
        words[1] |= SCHED_FLAG_UTIL_CLAMP;
    }
    let place = words.as_ptr() as usize;
    match attribute {
        Directory => {
            // SAFETY: the path ends with a NUL.
            let status = unsafe { libc::chdir(directory.as_ptr().cast()) };
            if status == 0 {
                Ok(0)
            } else {
                Err(errno())
            }
        }
        OutOfMemoryScore => write(b"/proc/self/oom_score_adj\0", [value.bytes(), b""]),
        // The file omits the prefix of the hexadecimal number.
        CoreDumpFilter => write(b"/proc/self/coredump_filter\0", [b"0x", value.bytes()]),
        Affinity => call(libc::SYS_sched_setaffinity, [0, value.bytes().len(), place]),
        Scheduling => call(libc::SYS_sched_setattr, [0, place, 0]),
        IoPriority => call(libc::SYS_ioprio_set, [IOPRIO_WHO_PROCESS as usize, 0, number]),
        MemoryPolicy if words[1..].iter().all(|word| *word == 0) => call(libc::SYS_set_mempolicy, [number, 0, 0]),
        MemoryPolicy => call(libc::SYS_set_mempolicy, [number, place + 8, MASK_BITS + 1]),
        Personality => call(libc::SYS_personality, [number]),
        TimerSlack => prctl(libc::PR_SET_TIMERSLACK, [number]),
        HugePages => prctl(libc::PR_SET_THP_DISABLE, [number & 1, number & !1]),
        MemoryMerge => prctl(PR_SET_MEMORY_MERGE, [number]),
        Subreaper => prctl(libc::PR_SET_CHILD_SUBREAPER, [number]),
        ParentDeathSignal => prctl(libc::PR_SET_PDEATHSIG, [number]),
        MachineChecks => prctl(libc::PR_MCE_KILL, [PR_MCE_KILL_SET, number]),
        IoFlusher => prctl(PR_SET_IO_FLUSHER, [number]),
        ExtendedRegisters => arch::request_extended_registers(value.word(0) & !before.word(0)).map(|()| 0),
        _ => match attribute.limit() {
            Some(number) => call(libc::SYS_prlimit64, [0, number as usize, place, 0]),
            None => Err(libc::ENOSYS),
        },
    }
    .map(drop)
}

impl Value {
    fn of_words(words: &[u64]) -> Value {
        let mut bytes = [0; ROOM];
        for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        Value::new(&bytes[..words.len() * 8])
    }
}

/// Fills in the path of the current directory and a NUL; returns its size without the NUL, 0 if there is none.
pub fn directory(path: &mut [u8; libc::PATH_MAX as usize]) -> usize {
    // The kernel counts the NUL.
    call(libc::SYS_getcwd, [path.as_mut_ptr() as usize, path.len()]).unwrap_or(0).saturating_sub(1)
}

fn number(answer: Result<usize, c_int>) -> Value {
    answer.map_or(NOTHING, |number| Value::number(number as i64))
}

/// The value that the kernel writes for an option of prctl.
fn prctl_answer(option: c_int) -> Value {
    let mut answer: c_int = 0;
    number(prctl(option, [&raw mut answer as usize]).map(|_| answer as usize))
}

/// Real, effective and saved id, and the file system id: a call to set it to an invalid id returns the current one.
fn ids(get: c_long, set: c_long) -> Value {
    let mut ids = [0u32; 3];
    let (real, effective, saved) = (&raw mut ids[0] as usize, &raw mut ids[1] as usize, &raw mut ids[2] as usize);
    let _ = call(get, [real, effective, saved]);
    let of_files = call(set, [u32::MAX as usize]).unwrap_or(0);
    Value::of_words(&[ids[0].into(), ids[1].into(), ids[2].into(), of_files as u64])
}

/// A bit for each capability.
fn bits(ask: impl Fn(usize) -> Result<usize, c_int>) -> Value {
    let answers = (0..64).map_while(|capability| ask(capability).ok());
    Value::number(answers.enumerate().fold(0, |bits, (number, answer)| bits | ((answer as i64 & 1) << number)))
}

/// A line of /proc/self/status.
fn status(key: &[u8]) -> Value {
    let text = file::read_file(b"/proc/thread-self/status\0");
    let line = text.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(key));
    line.map_or(NOTHING, |line| Value::new(line.trim_ascii()))
}

/// The combined content of these files of the process.
fn all_files(folder: &[u8], names: &[&[u8]], read: impl Fn(&[u8]) -> alloc::vec::Vec<u8>) -> Value {
    let path = |name: &[u8]| file::c_path(&[b"/proc/thread-self/", folder, name]);
    let texts = names.iter().map(|name| read(&path(name)));
    Value::new(&texts.collect::<alloc::vec::Vec<_>>().join(&b'\n'))
}

/// A file that can be set again. Allocates nothing, since a thawed process has no heap of the freezer's.
fn setting(path: &[u8]) -> Value {
    let mut text = [0; ROOM];
    let size = File::open(path, libc::O_RDONLY).and_then(|file| file.read_at(&mut text, 0)).unwrap_or(0);
    Value::new(text[..size].trim_ascii())
}

fn write(path: &[u8], parts: [&[u8]; 2]) -> Result<usize, c_int> {
    let file = File::open(path, libc::O_WRONLY)?;
    let mut text = [0; 2 * ROOM];
    let mut bytes = parts.iter().copied().flatten();
    let size = text.iter_mut().zip(&mut bytes).map(|(place, byte)| *place = *byte).count();
    file.write_at(&text[..size], 0).map(|()| 0)
}

fn prctl<const N: usize>(option: c_int, arguments: [usize; N]) -> Result<usize, c_int> {
    let mut all = [0; 5];
    all[0] = option as usize;
    all[1..=N].copy_from_slice(&arguments);
    call(libc::SYS_prctl, all)
}

/// A system call that preserves the caller's errno.
fn call<const N: usize>(number: c_long, arguments: [usize; N]) -> Result<usize, c_int> {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    let [a, b, c, d, e, f] = all;
    // SAFETY: callers pass what the call takes: numbers, and addresses with room for what the kernel reads or writes.
    unsafe {
        let before = errno();
        let answer = libc::syscall(number, a, b, c, d, e, f);
        let error = errno();
        *libc::__errno_location() = before;
        usize::try_from(answer).map_err(|_| error)
    }
}
