//! Directories and all that is below them, as one thing that has changed or has not.
//!
//! Some answers depend on hundreds of directories: which libraries there are, which time zones. As inputs of an entry these would
//! be larger than the answer, so whoever remembers such an answer keeps the paths and one digest of their states.

use std::collections::HashSet;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::Identity;

/// What the names below some directories depend on: the paths of these, of all directories below them, and of all links in them,
/// each with a NUL behind it. Links are followed. An error where a directory cannot be read.
pub fn list_tree<'a>(roots: impl IntoIterator<Item = &'a Path>) -> io::Result<Vec<u8>> {
    let mut paths = Vec::new();
    let mut seen = HashSet::new();
    let mut waiting: Vec<PathBuf> = roots.into_iter().map(Path::to_path_buf).collect();
    while let Some(path) = waiting.pop() {
        paths.extend_from_slice(path.as_os_str().as_bytes());
        paths.push(0);
        let status = match fs::metadata(&path) {
            Ok(status) => status,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        if !status.is_dir() || !seen.insert((status.dev(), status.ino())) {
            continue;
        }
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() || kind.is_symlink() {
                waiting.push(entry.path());
            }
        }
    }
    Ok(paths)
}

/// The state that all the paths of a [`list_tree`] are in, and whether it has settled ([`Identity::is_settled`]): another one as soon
/// as a name is added, removed, or stands for something else. `None`: these are no paths.
pub fn tree_state(paths: &[u8]) -> Option<([u8; 32], bool)> {
    let mut digest = Sha256::new();
    let mut is_settled = true;
    let mut rest = paths;
    while !rest.is_empty() {
        let path = CStr::from_bytes_until_nul(rest).ok()?;
        rest = &rest[path.count_bytes() + 1..];
        let stat = match rustix::fs::stat(path) {
            Ok(stat) => stat,
            Err(error) => {
                digest.update(error.raw_os_error().to_le_bytes());
                continue;
            }
        };
        // What is in a file makes no difference, only that it is none of the directories.
        match Identity::from_stat(&stat) {
            Ok(identity) if identity.is_directory => {
                is_settled &= identity.is_settled;
                // A path through a link may lead to another directory of the same age.
                digest.update(stat.st_ino.to_le_bytes());
                digest.update(identity.mtime.to_le_bytes());
                digest.update(identity.ctime.to_le_bytes());
            }
            _ => digest.update(stat.st_mode.to_le_bytes()),
        }
    }
    Some((digest.finalize().into(), is_settled))
}
