//! The directory beside the output in which an image is made.
//!
//! `.NAME.freezing-PID` is locked while its freeze runs. A killed freeze leaves it behind unlocked, and the next freeze
//! of the same output removes it. The finished image lies in a folder of its own in it, under its final name: a start
//! uses that name to leave its own files out of lists.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use rustix::fs::{flock, fstat, FlockOperation, Mode, OFlags};
use rustix::process::{geteuid, test_kill_process, Pid};

/// Separates the output's name from the process id in the name of a control directory.
const FREEZING: &str = ".freezing-";
/// The folder of the finished image.
const FINISHED: &str = "finished";

/// A locked control directory; removed with its contents when dropped.
pub struct ControlDir {
    path: PathBuf,
    finished: PathBuf,
    _lock: Option<File>,
}

impl ControlDir {
    /// Removes the leftovers of killed freezes of the same output, and creates a directory for this one.
    pub fn create(output: &Path) -> Result<Self> {
        let directory = output.parent().unwrap_or(Path::new("/"));
        // The recorder reports it without links and `..`.
        let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
        let prefix = prefix(output);
        remove_abandoned(&directory, &prefix);
        let mut name = prefix;
        name.push(std::process::id().to_string());
        let path = directory.join(name);
        let make = || {
            DirBuilder::new().mode(0o700).create(&path)?;
            DirBuilder::new().mode(0o700).create(path.join(FINISHED))?;
            let lock = File::open(&path)?;
            flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
            Ok(lock)
        };
        let lock = make().map_err(|error: io::Error| Failure::io("make the control directory", &path, &error))?;
        let finished = path.join(FINISHED).join(output.file_name().unwrap_or(OsStr::new("image")));
        Ok(ControlDir { path, finished, _lock: Some(lock) })
    }

    /// A directory in this one, for a boot at the same time as another. It shares the files whose names `is_kept`
    /// accepts; no boot changes those.
    pub fn beside(&self, is_kept: impl Fn(&str) -> bool) -> Result<Self> {
        let path = self.path.join("beside");
        let make = || {
            DirBuilder::new().mode(0o700).create(&path)?;
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                if entry.file_name().to_str().is_some_and(&is_kept) {
                    fs::hard_link(entry.path(), path.join(entry.file_name()))?;
                }
            }
            Ok(())
        };
        make().map_err(|error: io::Error| Failure::io("make the control directory", &path, &error))?;
        let finished = path.join(FINISHED);
        Ok(ControlDir { path, finished, _lock: None })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file in it: `request`, `image`, `report` or `findings`.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The finished image.
    pub fn finished(&self) -> &Path {
        &self.finished
    }

    /// Writes a file in it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<()> {
        let file = self.file(name);
        fs::write(&file, content).map_err(|error| Failure::io("write", &file, &error))
    }

    /// Fails if the disk is full.
    pub fn has_space(&self) -> Result<()> {
        fs::write(self.file("space"), [0; 16384]).map_err(|error| Failure::io("write into", &self.path, &error))
    }

    /// The time by the clock of the directory's own file system (ns since 1970). Changes at this time or later are made
    /// during the boot.
    pub fn now(&self) -> Result<i64> {
        let file = self.file("now");
        let touch = || fs::write(&file, "").and_then(|()| file.metadata());
        let metadata = touch().map_err(|error| Failure::io("write", &file, &error))?;
        Ok(metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec())
    }
}

impl Drop for ControlDir {
    fn drop(&mut self) {
        // The next freeze of this output removes what cannot be removed now.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Makes a folder in a control directory, unless there is one. Not the control directory itself: somebody may have removed the
/// store that it was in.
pub fn make_folder(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn prefix(output: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(output.file_name().unwrap_or(OsStr::new("image")));
    prefix.push(FREEZING);
    prefix
}

/// Removes all control directories in this directory whose freeze has ended.
pub fn remove_all_abandoned(directory: &Path) {
    let names = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let outputs = names.filter_map(|name| {
        let (output, _) = name.to_str()?.strip_prefix('.')?.rsplit_once(FREEZING)?;
        Some(output.to_owned())
    });
    for output in outputs.collect::<std::collections::BTreeSet<_>>() {
        remove_abandoned(directory, &prefix(Path::new(&output)));
    }
}

/// Removes control directories whose freeze has ended. What cannot be removed is harmless and stays.
fn remove_abandoned(directory: &Path, prefix: &OsStr) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.as_bytes().strip_prefix(prefix.as_bytes()) else { continue };
        let Some(pid) = std::str::from_utf8(pid).ok().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw) else {
            continue;
        };
        // The process id identifies a freeze that has created its directory and not yet locked it. Otherwise only the
        // lock counts: the id may belong to another process now, or to one in another container.
        let own = pid == rustix::process::getpid();
        let path = entry.path();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(directory) = rustix::fs::open(&path, flags, Mode::empty()) else { continue };
        // Leave those of other users alone; root could remove them.
        let is_own = fstat(&directory).is_ok_and(|status| status.st_uid == geteuid().as_raw());
        let free = is_own && flock(&directory, FlockOperation::NonBlockingLockExclusive).is_ok();
        let young =
            entry.metadata().ok().and_then(|it| it.created().ok()?.elapsed().ok()).is_some_and(|age| age.as_secs() < 2);
        if free && (own || !young || test_kill_process(pid).is_err()) {
            let _ = fs::remove_dir_all(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_with_its_content_when_the_freeze_ends() {
        let top = tempfile::tempdir().unwrap();
        let dir = ControlDir::create(&top.path().join("app.img")).unwrap();
        fs::write(dir.file("request"), "x").unwrap();
        drop(dir);
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_freeze_left_is_removed_and_a_running_one_is_not() {
        let top = tempfile::tempdir().unwrap();
        let output = top.path().join("app.img");
        // No process has this id: it is above the kernel's limit.
        let abandoned = top.path().join(".app.img.freezing-4194305");
        let other = top.path().join(".app.img.freezing-mine");
        let running = top.path().join(".app.img.freezing-4194306");
        for path in [&abandoned, &other, &running] {
            fs::create_dir(path).unwrap();
        }
        let lock = File::open(&running).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        // Opening a pipe would wait for a writer.
        let pipe = top.path().join(".app.img.freezing-4194307");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        let _dir = ControlDir::create(&output).unwrap();
        assert!(pipe.symlink_metadata().is_ok());
        assert!(!abandoned.exists() && other.exists() && running.exists());
    }
}
