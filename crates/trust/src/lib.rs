//! Opens files whose content is executed or obeyed, and only those that only this user or root can have put there.
//!
//! The path is walked one component at a time, on descriptors and without following links ([`open`]). Each directory on
//! the way must belong to the user or to root, and nobody else may write to it. A directory such as /tmp, where
//! everybody may write and the sticky bit protects each entry, is accepted if the entry itself belongs to the user or
//! root. A link is followed if it belongs to them, too; the walk continues at its target under the same rules. So other
//! users own nothing on the path and can swap nothing between the check and the use. The descriptor returned is the one
//! that was checked.
//!
//! Files that are only read as data, and may belong to anybody, are opened with [`look::open`], which never blocks on a
//! pipe.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod groups;
pub mod look;
mod refusal;

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{fstat, openat, readlinkat, FileType, Mode, OFlags, Stat, CWD};
use rustix::io::Errno;
use rustix::process::geteuid;

pub use groups::is_of_user_alone as is_group_of_user_alone;
pub use refusal::{Refusal, What};

/// The kernel's own limit.
const MAX_LINKS: usize = 40;
/// Opens any kind of file without reading it: never blocks on a pipe or a device.
const ONLY_PATH: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;
const STICKY: u32 = 0o1000;
const OTHERS_ENTER: u32 = 0o011;

/// Opens for reading a regular file that only this user or root can have put there.
pub fn open(path: &Path) -> Result<File, Refusal> {
    let Walk { found: Some(found), is_enclosed, name, directory, .. } = Walk::walk_to(path, Missing::IsRefused)? else {
        return Err(Refusal::io(path, Errno::NOENT));
    };
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(Refusal::new(path, What::NoFile));
    }
    // Opens the same entry of the same directory, which nobody else can have changed meanwhile, and checks it again.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(&directory, &name, flags, Mode::empty()).map_err(|errno| Refusal::io(path, errno))?;
    let status = fstat(&file).map_err(|errno| Refusal::io(path, errno))?;
    check_file(path, &status, is_enclosed)?;
    Ok(File::from(file))
}

/// The content of such a file.
pub fn read(path: &Path) -> Result<Vec<u8>, Refusal> {
    let mut content = Vec::new();
    open(path)?.read_to_end(&mut content).map_err(|error| Refusal::new(path, What::Io(error)))?;
    Ok(content)
}

/// Checks an open file by its owner and mode alone: for files that the user named, wherever they lie.
pub fn check_open(path: &Path, file: &File) -> Result<(), Refusal> {
    let status = fstat(file).map_err(|errno| Refusal::io(path, errno))?;
    check_file(path, &status, false)
}

/// Checks a directory and all directories above it. Files in an accepted directory that belong to this user or root
/// were put there by them.
pub fn check_directory(path: &Path) -> Result<(), Refusal> {
    directory_status(path).map(drop)
}

/// As [`check_directory`], but the directory must belong to this user and nobody else may write to it, sticky or not.
pub fn check_own_directory(path: &Path) -> Result<(), Refusal> {
    let (status, is_enclosed) = directory_status(path)?;
    if status.st_uid != geteuid().as_raw() {
        return Err(Refusal::new(path, What::Owner(status.st_uid)));
    }
    check_writers(path, &status, is_enclosed)
}

fn directory_status(path: &Path) -> Result<(Stat, bool), Refusal> {
    let walk = Walk::walk_to(path, Missing::IsRefused)?;
    match walk.found {
        // The walk ends in a directory only if no component is left.
        None => Ok((fstat(&walk.directory).map_err(|errno| Refusal::io(path, errno))?, walk.is_enclosed)),
        Some(_) => Err(Refusal::new(path, What::NoDirectory)),
    }
}

/// Checks the existing directories above a path: what is created there will be this user's alone.
pub fn check_place(path: &Path) -> Result<(), Refusal> {
    Walk::walk_to(path, Missing::IsFine).map(drop)
}

/// As [`check_place`], for files of a program whose code lies in `base`. Anybody who can change that directory can have
/// the program execute their code anyway, so only what lies below it is checked, and the directory's owner is trusted
/// as well.
pub fn check_place_below(base: &Path, path: &Path) -> Result<(), Refusal> {
    let Ok(below) = path.strip_prefix(base) else { return check_place(path) };
    let cannot = |errno| Refusal::io(base, errno);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, base, flags, Mode::empty()).map_err(cannot)?;
    let status = fstat(&directory).map_err(cannot)?;
    let also = Also { owner: status.st_uid, group: (status.st_mode & GROUP_WRITES != 0).then_some(status.st_gid) };
    let mut walk = Walk::from(directory, base.to_owned(), below, Some(also));
    walk.go(Missing::IsFine)
}

/// Whether a home directory belongs to this user, or to root as those of services do. `sudo -E` may lead to another
/// user's, where nothing may be left.
pub fn is_home(path: &Path) -> bool {
    let is_own = |status: std::fs::Metadata| status.is_dir() && [0, geteuid().as_raw()].contains(&status.uid());
    path.metadata().is_ok_and(is_own)
}

/// What to do if a component is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    IsRefused,
    IsFine,
}

/// Who is trusted besides the user and root.
#[derive(Clone, Copy)]
struct Also {
    owner: u32,
    group: Option<u32>,
}

/// A walk along a path.
struct Walk {
    /// The directory reached so far.
    directory: OwnedFd,
    /// Its path, for messages.
    place: PathBuf,
    /// The components left.
    rest: VecDeque<OsString>,
    links: usize,
    /// Whether a directory above admits only its owner. Then no group can reach the files below it, whatever their
    /// modes are.
    is_enclosed: bool,
    also: Option<Also>,
    /// The status of the last component if it is not a directory; its name is in `directory`.
    found: Option<Stat>,
    name: OsString,
}

impl Walk {
    /// Walks to the end of a path.
    fn walk_to(path: &Path, missing: Missing) -> Result<Walk, Refusal> {
        let absolute = std::path::absolute(path).map_err(|error| Refusal::new(path, What::Io(error)))?;
        let (top, root) = root()?;
        let mut walk = Walk::from(top, PathBuf::from("/"), &absolute, None);
        walk.check_directory(&root)?;
        walk.go(missing)?;
        Ok(walk)
    }

    fn from(directory: OwnedFd, place: PathBuf, path: &Path, also: Option<Also>) -> Walk {
        let name = OsString::new();
        Walk { directory, place, rest: components(path), links: 0, is_enclosed: false, also, found: None, name }
    }

    fn go(&mut self, missing: Missing) -> Result<(), Refusal> {
        while let Some(name) = self.rest.pop_front() {
            let path = self.place.join(&name);
            let entry = match openat(&self.directory, &name, ONLY_PATH, Mode::empty()) {
                Ok(entry) => entry,
                Err(Errno::NOENT) if missing == Missing::IsFine => return Ok(()),
                Err(errno) => return Err(Refusal::io(&path, errno)),
            };
            let status = fstat(&entry).map_err(|errno| Refusal::io(&path, errno))?;
            match FileType::from_raw_mode(status.st_mode) {
                FileType::Directory => {
                    let is_up = name == "..";
                    // Above, other directories protect the files.
                    self.is_enclosed &= !is_up;
                    self.place = path;
                    if is_up {
                        self.place.pop();
                        self.place.pop();
                    }
                    self.check_directory(&status)?;
                    self.directory = entry;
                }
                FileType::Symlink => self.follow(&path, &entry, &status)?,
                _ if self.rest.is_empty() => {
                    (self.found, self.name) = (Some(status), name);
                }
                _ => return Err(Refusal::io(&path, Errno::NOTDIR)),
            }
        }
        Ok(())
    }

    /// Continues at the target of a link.
    fn follow(&mut self, path: &Path, link: &OwnedFd, status: &Stat) -> Result<(), Refusal> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Refusal::io(path, Errno::LOOP));
        }
        self.check_owner(path, status)?;
        let target = readlinkat(link, "", Vec::new()).map_err(|errno| Refusal::io(path, errno))?;
        let target = Path::new(OsStr::from_bytes(target.as_bytes())).to_owned();
        if target.is_absolute() {
            // It was checked at the beginning.
            (self.directory, _) = root()?;
            self.place = PathBuf::from("/");
            self.is_enclosed = false;
        }
        for component in components(&target).into_iter().rev() {
            self.rest.push_front(component);
        }
        Ok(())
    }

    fn check_directory(&mut self, status: &Stat) -> Result<(), Refusal> {
        self.check_owner(&self.place, status)?;
        let is_shared = self.also.and_then(|also| also.group) == Some(status.st_gid);
        let writers = status.st_mode & if is_shared { OTHERS_WRITE } else { GROUP_WRITES | OTHERS_WRITE };
        if writers != 0 && status.st_mode & STICKY == 0 {
            check_writers(&self.place, status, self.is_enclosed)?;
        }
        self.is_enclosed |= status.st_mode & OTHERS_ENTER == 0;
        Ok(())
    }

    fn check_owner(&self, path: &Path, status: &Stat) -> Result<(), Refusal> {
        if self.also.is_some_and(|also| also.owner == status.st_uid) {
            return Ok(());
        }
        check_owner(path, status)
    }
}

fn root() -> Result<(OwnedFd, Stat), Refusal> {
    let path = Path::new("/");
    let cannot = |errno| Refusal::io(path, errno);
    let top = openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(cannot)?;
    let status = fstat(&top).map_err(cannot)?;
    Ok((top, status))
}

fn components(path: &Path) -> VecDeque<OsString> {
    let named = path.components().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    named.map(|part| part.as_os_str().to_owned()).collect()
}

fn check_file(path: &Path, status: &Stat, is_enclosed: bool) -> Result<(), Refusal> {
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err(Refusal::new(path, What::NoFile));
    }
    check_owner(path, status)?;
    check_writers(path, status, is_enclosed)
}

fn check_owner(path: &Path, status: &Stat) -> Result<(), Refusal> {
    match status.st_uid {
        0 => Ok(()),
        owner if owner == geteuid().as_raw() => Ok(()),
        owner => Err(Refusal::new(path, What::Owner(owner))),
    }
}

/// Fails if anybody but the owner may write. A group in which the user is alone may.
fn check_writers(path: &Path, status: &Stat, is_enclosed: bool) -> Result<(), Refusal> {
    let by_group = status.st_mode & GROUP_WRITES != 0 && !groups::is_of_user_alone(status.st_gid, geteuid().as_raw());
    if by_group && !is_enclosed || status.st_mode & OTHERS_WRITE != 0 {
        return Err(Refusal::new(path, What::Writers(status.st_mode & 0o7777)));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
