//! Directories and everything below them, as one input that has changed or has not.
//!
//! Some answers depend on hundreds of directories: which libraries exist, which time zones. As inputs of an entry these would be larger
//! than the answer, so such an entry stores the paths and one digest of their states.

use std::collections::HashSet;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::identity;

/// The paths of a larger tree are not worth storing.
const MAX_PATHS: usize = 10_000;

/// The paths that the names below some directories depend on, and their state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The paths of these directories, of all directories below them, and of the links in them if these are followed, each with a NUL after
    /// it.
    pub paths: Vec<u8>,
    /// The result of [`tree_state`] for them.
    pub state: [u8; 32],
}

impl Tree {
    /// Lists the directories below `roots`; with `links`, also those that links lead to. `None` if something has changed so recently, or
    /// changes meanwhile, that a later change might not show. An error if a directory cannot be read, or there are too many.
    pub fn list<'a>(roots: impl IntoIterator<Item = &'a Path>, links: bool) -> io::Result<Option<Self>> {
        let began = identity::now();
        let paths = list(roots, links)?;
        Ok(state_before(&paths, began).map(|state| Tree { paths, state }))
    }
}

/// The state of the paths of a [`Tree`]: it differs as soon as a name is added or removed, or a path leads to another file. `None` if that
/// has just happened, or these are no paths.
pub fn tree_state(paths: &[u8]) -> Option<[u8; 32]> {
    state_before(paths, identity::now())
}

fn list<'a>(roots: impl IntoIterator<Item = &'a Path>, links: bool) -> io::Result<Vec<u8>> {
    let (mut paths, mut count) = (Vec::new(), 0);
    let mut add = |path: &Path| {
        paths.extend_from_slice(path.as_os_str().as_bytes());
        paths.push(0);
        count += 1;
        if count > MAX_PATHS {
            return Err(io::Error::other("too many directories"));
        }
        Ok(())
    };
    let mut seen = HashSet::new();
    let mut waiting: Vec<PathBuf> = roots.into_iter().map(Path::to_path_buf).collect();
    while let Some(path) = waiting.pop() {
        add(&path)?;
        let status = match fs::metadata(&path) {
            Ok(status) => status,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // It may come and go: its directory changes then.
                let there = path.ancestors().skip(1).find(|above| above.exists());
                there.map_or(Ok(()), &mut add)?;
                continue;
            }
            Err(error) => return Err(error),
        };
        if !status.is_dir() || !seen.insert((status.dev(), status.ino())) {
            continue;
        }
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() || (links && kind.is_symlink()) {
                waiting.push(entry.path());
            }
        }
    }
    Ok(paths)
}

/// The state, if all of it is older than that moment by the time a change takes to show (nanoseconds since 1970).
fn state_before(paths: &[u8], moment: i64) -> Option<[u8; 32]> {
    let mut digest = Sha256::new();
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
        let (mtime, ctime) = identity::times(&stat);
        if !identity::is_settled(ctime, moment) {
            return None;
        }
        digest.update(stat.st_mode.to_le_bytes());
        digest.update(stat.st_ino.to_le_bytes());
        digest.update(mtime.to_le_bytes());
        digest.update(ctime.to_le_bytes());
    }
    Some(digest.finalize().into())
}
