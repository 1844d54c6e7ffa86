//! The system calls behind [`inputs::facts`] for this process, used to record facts in images and by `inspect --why`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use inputs::cgroups_and_mounts::Sieve;
use inputs::facts::{Content, Kernel};
use rustix::process::{getegid, geteuid, getgid, getgroups, getrlimit, getuid, Resource};
use rustix::system::{sysinfo, uname};
use rustix::termios::tcgetwinsize;
use rustix::thread::{sched_getaffinity, CpuSet};

/// O_NONBLOCK.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32;

/// This process.
pub struct ThisProcess {
    /// If it answers for a boot: columns and rows of the boot's terminals at its standard streams.
    pub boot: Option<[Option<(u16, u16)>; 3]>,
}

impl ThisProcess {
    /// Answers for itself.
    pub const ITSELF: ThisProcess = ThisProcess { boot: None };
    /// Answers for a boot without a terminal.
    pub const FOR_BOOT: ThisProcess = ThisProcess { boot: Some([None; 3]) };
}

/// The umask of this process; one that excludes everybody else if it is unknown.
pub fn umask() -> u32 {
    ThisProcess::ITSELF.umask().unwrap_or(0o077)
}

/// Limits, by RLIMIT_ number.
const LIMITS: [Resource; 16] = [
    Resource::Cpu,
    Resource::Fsize,
    Resource::Data,
    Resource::Stack,
    Resource::Core,
    Resource::Rss,
    Resource::Nproc,
    Resource::Nofile,
    Resource::Memlock,
    Resource::As,
    Resource::Locks,
    Resource::Sigpending,
    Resource::Msgqueue,
    Resource::Nice,
    Resource::Rtprio,
    Resource::Rttime,
];

impl Kernel for ThisProcess {
    fn uname(&self, write: &mut dyn FnMut([&[u8]; 4])) {
        let names = uname();
        write([names.nodename(), names.release(), names.version(), names.machine()].map(|name| name.to_bytes()));
    }

    fn read(&self, path: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let path = Path::new(OsStr::from_bytes(path.strip_suffix(b"\0")?));
        File::open(path).ok()?.read(buffer).ok()
    }

    fn content(&self, path: &[u8]) -> Content {
        let mut sieve = Sieve::for_path(path);
        let path = Path::new(OsStr::from_bytes(path.strip_suffix(b"\0").unwrap_or(path)));
        // Opening some of them would block.
        let read = || {
            let mut content = Vec::new();
            File::options().read(true).custom_flags(NONBLOCK).open(path)?.read_to_end(&mut content)?;
            Ok::<_, std::io::Error>(content)
        };
        match read() {
            Ok(content) => {
                sieve.update(&content);
                Content::Digest(sieve.finish())
            }
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Content::Absent,
                ErrorKind::IsADirectory => Content::Directory,
                _ => Content::Unreadable,
            },
        }
    }

    fn affinity(&self, mask: &mut [u8]) -> Option<usize> {
        let set = sched_getaffinity(None).ok()?;
        (0..CpuSet::MAX_CPU.min(mask.len() * 8))
            .filter(|cpu| set.is_set(*cpu))
            .for_each(|cpu| mask[cpu / 8] |= 1 << (cpu % 8));
        Some(mask.len())
    }

    fn memory(&self) -> Option<u64> {
        let info = sysinfo();
        Some(info.totalram.wrapping_mul(info.mem_unit.into()))
    }

    fn limit(&self, number: u32) -> Option<(u64, u64)> {
        let limit = getrlimit(*LIMITS.get(number as usize)?);
        Some((limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX)))
    }

    fn user(&self) -> [u32; 4] {
        [getuid().as_raw(), geteuid().as_raw(), getgid().as_raw(), getegid().as_raw()]
    }

    fn groups(&self, write: &mut dyn FnMut(u32)) -> Option<()> {
        getgroups().ok()?.into_iter().for_each(|group| write(group.as_raw()));
        Some(())
    }

    fn window(&self, descriptor: u32) -> Option<(u16, u16)> {
        if let Some(terminals) = self.boot {
            return *terminals.get(descriptor as usize)?;
        }
        let streams = (std::io::stdin(), std::io::stdout(), std::io::stderr());
        let stream: BorrowedFd<'_> = match descriptor {
            0 => std::os::fd::AsFd::as_fd(&streams.0),
            1 => std::os::fd::AsFd::as_fd(&streams.1),
            _ => std::os::fd::AsFd::as_fd(&streams.2),
        };
        tcgetwinsize(stream).ok().map(|size| (size.ws_col, size.ws_row))
    }

    fn cwd(&self, buffer: &mut [u8]) -> Option<usize> {
        let directory = std::env::current_dir().ok()?;
        let bytes = directory.as_os_str().as_bytes();
        buffer.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(bytes.len())
    }

    fn umask(&self) -> Option<u32> {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let umask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
        umask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
    }

    fn variable(&self, name: &[u8], buffer: &mut [u8]) -> Option<usize> {
        let value = std::env::var_os(OsStr::from_bytes(name))?;
        buffer.get_mut(..value.len())?.copy_from_slice(value.as_bytes());
        Some(value.len())
    }

    fn with_variable(&self, name: &[u8], see: &mut dyn FnMut(&[u8])) {
        std::env::var_os(OsStr::from_bytes(name)).into_iter().for_each(|value| see(value.as_bytes()));
    }

    fn names(&self, path: &[u8], each: &mut dyn FnMut(&[u8])) -> Option<bool> {
        let entries = match std::fs::read_dir(OsStr::from_bytes(path.strip_suffix(b"\0")?)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Some(false),
            Err(_) => return None,
        };
        for entry in entries {
            each(entry.ok()?.file_name().as_bytes());
        }
        Some(true)
    }

    fn is_there(&self, path: &[u8]) -> Option<bool> {
        let path = Path::new(OsStr::from_bytes(path.strip_suffix(b"\0")?));
        match path.metadata().map_err(|error| error.kind()) {
            Ok(_) => Some(true),
            Err(ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidFilename) => Some(false),
            Err(_) => None,
        }
    }
}
