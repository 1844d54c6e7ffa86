//! This machine's files and directories, for the comparison with images: the system calls of [`inputs::system`].
//! Results are cached for callers that compare many images at once, since most images depend on the same files.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use failure::{Failure, Result};
use image::{ContentDigest, Directory};
use inputs::system::{Result as SystemResult, Status, System};
use inputs::Errno;
use rustix::fs::{fstat, openat, readlinkat_raw, statat, AtFlags, Dir, Mode, OFlags, Stat, CWD};
use rustix::io as rustix_io;

use crate::content_digest::PIECE;

/// The results of earlier system calls.
#[derive(Default)]
pub struct Seen {
    statuses: RefCell<HashMap<PathBuf, Status>>,
    digests: RefCell<HashMap<PathBuf, ([u8; 16], u64)>>,
    contents: RefCell<HashMap<PathBuf, Rc<Vec<u8>>>>,
    environment: OnceCell<Vec<u8>>,
}

impl Seen {
    /// This process' environment as the kernel passed it, which an image started beside it would get. NULs separate the
    /// entries.
    pub(crate) fn environment(&self) -> Result<&[u8]> {
        const PATH: &str = "/proc/self/environ";
        if self.environment.get().is_none() {
            let mut entries = std::fs::read(PATH).map_err(|error| Failure::io("read", Path::new(PATH), &error))?;
            // Without the final NUL, which no entry follows.
            entries.pop();
            let _ = self.environment.set(entries);
        }
        Ok(self.environment.get().map_or(&[], Vec::as_slice))
    }
}

/// The cached result for a path, or that of `look`.
fn kept<T: Clone>(
    all: &RefCell<HashMap<PathBuf, T>>,
    path: &[u8],
    look: impl FnOnce() -> SystemResult<T>,
) -> SystemResult<T> {
    let place = Path::new(OsStr::from_bytes(path));
    if let Some(known) = all.borrow().get(place) {
        return Ok(known.clone());
    }
    let now = look()?;
    all.borrow_mut().insert(place.to_owned(), now.clone());
    Ok(now)
}

/// This machine, and an image's answers of its directories.
pub(crate) struct Machine<'a> {
    pub(crate) seen: &'a Seen,
    /// All answers of the image.
    pub(crate) answers: &'a [u8],
    pub(crate) image: &'a OsStr,
}

/// O_PATH suffices for look-ups, and needs no permission to list.
const FOR_LOOK_UPS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// Opening a pipe does not block.
const FOR_READING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

fn errno(error: rustix_io::Errno) -> Errno {
    Errno(error.raw_os_error().unsigned_abs())
}

fn errno_of(error: &io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(rustix_io::Errno::IO.raw_os_error()).unsigned_abs())
}

/// A path without its final NUL.
fn bare(path: &[u8]) -> &[u8] {
    path.strip_suffix(b"\0").unwrap_or(path)
}

#[allow(clippy::unnecessary_cast)] // Signed on some architectures, unsigned on others.
fn status(found: rustix_io::Result<Stat>) -> SystemResult<Status> {
    let stat = found.map_err(errno)?;
    let ns = |seconds: i64, nanoseconds: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds);
    Ok(Status {
        size: stat.st_size as u64,
        mtime: ns(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        ctime: ns(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        owner: stat.st_uid,
        mode: stat.st_mode,
        device: stat.st_dev,
        inode: stat.st_ino,
    })
}

fn open(path: &[u8]) -> SystemResult<File> {
    openat(CWD, bare(path), FOR_READING, Mode::empty()).map(File::from).map_err(errno)
}

impl System for Machine<'_> {
    type Directory = OwnedFd;
    type Stop = Failure;
    /// Never: the cache has files by their paths.
    const WORTH_OPENING: u32 = u32::MAX;

    fn open_directory(&self, path: &[u8]) -> SystemResult<OwnedFd> {
        openat(CWD, bare(path), FOR_LOOK_UPS, Mode::empty()).map_err(errno)
    }

    fn close(&self, directory: OwnedFd) {
        drop(directory);
    }

    fn status(&self, directory: &OwnedFd) -> SystemResult<Status> {
        status(fstat(directory))
    }

    fn stat(&self, directory: Option<&OwnedFd>, path: &[u8]) -> SystemResult<Status> {
        match directory {
            Some(directory) => status(statat(directory, bare(path), AtFlags::empty())),
            None => kept(&self.seen.statuses, bare(path), || status(statat(CWD, bare(path), AtFlags::empty()))),
        }
    }

    fn stat_readable(&self, path: &[u8]) -> SystemResult<Status> {
        open(path)?;
        self.stat(None, path)
    }

    fn stat_link(&self, directory: &OwnedFd, name: &[u8]) -> SystemResult<Status> {
        status(statat(directory, bare(name), AtFlags::SYMLINK_NOFOLLOW))
    }

    fn read_link(&self, directory: &OwnedFd, name: &[u8], target: &mut [u8]) -> SystemResult<usize> {
        readlinkat_raw(directory, bare(name), target).map_err(errno)
    }

    fn list(&self, directory: &OwnedFd, each: &mut dyn FnMut(&[u8])) -> SystemResult<()> {
        let flags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
        let open = openat(directory, ".", flags, Mode::empty()).map_err(errno)?;
        for entry in Dir::new(open).map_err(errno)? {
            each(entry.map_err(errno)?.file_name().to_bytes());
        }
        Ok(())
    }

    fn read_start(&self, directory: &OwnedFd, name: &[u8], start: &mut [u8]) -> SystemResult<usize> {
        let file = openat(directory, bare(name), FOR_READING, Mode::empty()).map_err(errno)?;
        rustix_io::read(&file, start).map_err(errno)
    }

    fn digest(&self, path: &[u8]) -> SystemResult<([u8; 16], u64)> {
        kept(&self.seen.digests, bare(path), || {
            let (mut file, mut digest, mut size) = (open(path)?, ContentDigest::default(), 0);
            let mut buffer = vec![0; PIECE];
            loop {
                match file.read(&mut buffer).map_err(|error| errno_of(&error))? {
                    0 => return Ok((digest.finish(), size)),
                    count => {
                        digest.update(&buffer[..count]);
                        size += count as u64;
                    }
                }
            }
        })
    }

    fn with_content(&self, path: &[u8], see: &mut dyn FnMut(&[u8])) -> SystemResult<()> {
        let content = kept(&self.seen.contents, bare(path), || {
            let mut content = Vec::new();
            open(path)?.read_to_end(&mut content).map_err(|error| errno_of(&error))?;
            Ok(Rc::new(content))
        })?;
        see(&content);
        Ok(())
    }

    fn answers(&self, row: &Directory) -> Result<&[u8]> {
        // Opening the image has checked that the rows lie inside.
        Ok(&self.answers[row.answers_offset as usize..][..row.answers_size as usize])
    }

    fn with_image_name(&self, see: &mut dyn FnMut(&[u8])) {
        see(self.image.as_bytes());
    }

    fn is_home(&self, _: &Status) -> bool {
        // This comparison remembers nothing.
        false
    }
}
