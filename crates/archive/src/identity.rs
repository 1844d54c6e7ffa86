//! Distinguishes states of a file without reading it.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::SETTLING;

/// Files are read in parts of at most this size (bytes).
const MAX_READ: u64 = 1 << 16;

/// A file or directory at one moment (stat).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// Whether it is a directory.
    pub is_directory: bool,
    /// Bytes of a file; 0 for a directory.
    pub size: u64,
    /// Time of the last change of the content: nanoseconds since 1970.
    pub mtime: i64,
    /// Time of the last change of the content or of the inode: nanoseconds since 1970.
    pub ctime: i64,
    /// Whether that was long enough ago for any later change to show in the times. Nothing is stored about files that have not settled.
    pub is_settled: bool,
}

/// The content of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    /// Its state, the same before and after the read.
    pub identity: Identity,
    /// SHA-256 of a file's bytes or of a directory's listing.
    pub digest: [u8; 32],
}

impl Identity {
    /// Follows links, with one system call. Fails for anything that is neither a file nor a directory.
    pub fn stat(path: impl rustix::path::Arg) -> io::Result<Self> {
        Self::from_stat(&rustix::fs::stat(path)?)
    }

    pub(crate) fn stat_open(file: impl AsFd) -> io::Result<Self> {
        Self::from_stat(&rustix::fs::fstat(file)?)
    }

    /// The identity in the result of a stat call. Fails for anything that is neither a file nor a directory.
    pub fn from_stat(stat: &Stat) -> io::Result<Self> {
        let is_directory = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => false,
            FileType::Directory => true,
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        let (mtime, ctime) = times(stat);
        // Every change sets ctime, which no program can choose; mtime may have any value.
        let is_settled = is_settled(ctime, now());
        let size = if is_directory { 0 } else { stat.st_size as u64 };
        Ok(Identity { is_directory, size, mtime, ctime, is_settled })
    }

    /// Whether both are the same state.
    pub fn is_same(&self, other: &Identity) -> bool {
        (self.is_directory, self.size, self.mtime, self.ctime)
            == (other.is_directory, other.size, other.mtime, other.ctime)
    }

    /// Encodes it for callers that can only hold bytes.
    pub fn to_bytes(self) -> [u8; 25] {
        let mut bytes = [0; 25];
        bytes[..8].copy_from_slice(&self.size.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.mtime.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.ctime.to_le_bytes());
        bytes[24] = u8::from(self.is_directory) | u8::from(self.is_settled) << 1;
        bytes
    }

    /// Decodes the bytes of [`Identity::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (numbers, flags) = bytes.as_chunks::<8>();
        let ([size, mtime, ctime], [flags @ 0..4]) = (numbers, flags) else { return None };
        Some(Identity {
            is_directory: flags & 1 != 0,
            size: u64::from_le_bytes(*size),
            mtime: i64::from_le_bytes(*mtime),
            ctime: i64::from_le_bytes(*ctime),
            is_settled: flags & 2 != 0,
        })
    }
}

impl Content {
    /// Reads a file, or lists a directory. Fails if it changed meanwhile.
    pub fn read(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        let before = Identity::stat_open(&file)?;
        let digest = if before.is_directory { crate::directory::digest(path)? } else { digest(&file, before.size)? };
        let after = if before.is_directory { Identity::stat(path)? } else { Identity::stat_open(&file)? };
        if !before.is_same(&after) {
            return Err(io::Error::other("it changed while it was being read"));
        }
        Ok(Content { identity: before, digest })
    }
}

/// Opens for reading, through links. A pipe does not block.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from(rustix::fs::open(path.as_os_str().as_bytes(), flags, Mode::empty())?))
}

/// The digest of a file that had `size` bytes a moment ago. Callers check afterwards that it still has.
fn digest(file: &File, size: u64) -> io::Result<[u8; 32]> {
    let (mut digest, mut left) = (Sha256::new(), size);
    let mut buffer = Vec::with_capacity(size.clamp(1, MAX_READ) as usize);
    while left > 0 {
        buffer.clear();
        match rustix::io::read(file, rustix::buffer::spare_capacity(&mut buffer)) {
            Ok(0) => break,
            Ok(read) => left = left.saturating_sub(read as u64),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        digest.update(&buffer);
    }
    Ok(digest.finalize().into())
}

/// The times of the last change of the content, and of the content or the inode: nanoseconds since 1970.
pub(crate) fn times(stat: &Stat) -> (i64, i64) {
    let nanoseconds = |seconds: i64, rest: u64| seconds.wrapping_mul(1_000_000_000).wrapping_add(rest as i64);
    (nanoseconds(stat.st_mtime, stat.st_mtime_nsec), nanoseconds(stat.st_ctime, stat.st_ctime_nsec))
}

/// Whether a change after that moment would show, if the last one was at `ctime` (nanoseconds since 1970, both).
///
/// A change far in the future was made before the clock was set back: the next change gets a present time. A change in the near future may
/// come from a file server whose clock is fast.
pub(crate) fn is_settled(ctime: i64, moment: i64) -> bool {
    const FAR_AHEAD: i64 = 3_600_000_000_000;
    ctime < moment.saturating_sub(SETTLING) || ctime > moment.saturating_add(FAR_AHEAD)
}

/// Nanoseconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
