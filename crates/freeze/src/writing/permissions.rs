//! Who may read a file made from others: nobody who could not read each of them.
//!
//! An image contains anything that its boot read, such as a password from `~/.netrc` or a private key. So it gets no
//! permission bit that is missing in a file that was read, or in a directory above such a file.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use recorder::{Accesses, State};
use rustix::fs::getxattr;

use crate::boot_inputs::{Ignored, Reason};

const READ: u32 = 0o4;
const ENTER: u32 = 0o1;
/// In a file with an access control list, the group bits are the list's mask and say nothing about the group.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Who may read all of some files: the members of a group, and others.
#[derive(Clone, Debug)]
pub struct Readers {
    group: u32,
    /// The permission bits of those who may.
    may: u32,
    closed: Option<PathBuf>,
    directories: HashMap<PathBuf, u32>,
}

/// The permission bits of a group, of others, and of both.
const GROUP: u32 = 0o070;
const OTHERS: u32 = 0o007;
const ALL: u32 = GROUP | OTHERS;

impl Readers {
    /// Everybody: no file has been added. `group` is the group of the file that is made.
    pub fn new(group: u32) -> Self {
        Readers { group, may: ALL, closed: None, directories: HashMap::new() }
    }

    /// Restricts to those who may read that file, too. A file that is gone was not readable for others.
    pub fn add(&mut self, path: &Path) {
        let may = self.who_may(path);
        if self.may & may != self.may {
            self.may &= may;
            // Report the most restrictive one.
            self.closed = Some(path.to_owned());
        }
    }

    /// Restricts to those who may read each file that the boot read.
    pub fn add_boot(&mut self, accesses: &Accesses, ignored: &Ignored) {
        let mut files: Vec<&PathBuf> = accesses
            .places
            .iter()
            .filter(|(path, access)| {
                let is_read = (access.read || access.written) && matches!(access.target_state(), State::File(_));
                is_read
                    && match ignored.reason(path, access, &accesses.places) {
                        Some(Reason::Image | Reason::FrontEnd) => false,
                        // Created by the boot itself; a file that it only wrote to may have been read before.
                        Some(Reason::Written) => access.written,
                        Some(Reason::Bytecode | Reason::Script | Reason::Unknown) | None => true,
                    }
            })
            .map(|(path, _)| path)
            .collect();
        files.sort_unstable();
        files.into_iter().for_each(|path| self.add(path));
    }

    /// The permission bits of `mode` that the files leave.
    pub fn permitted_bits(&self, mode: u32) -> u32 {
        mode & (!ALL | self.may)
    }

    /// A file that restricts; None if everybody may read everything.
    pub fn restrictive_file(&self) -> Option<&Path> {
        self.closed.as_deref()
    }

    /// Whether those who may not read the files cannot read this file, or enter this directory, either.
    pub fn restricts(&mut self, path: &Path) -> bool {
        self.who_may(path) & !self.may == 0
    }

    /// Who may read a file, or enter a directory. Devices and the like do not restrict.
    fn who_may(&mut self, path: &Path) -> u32 {
        match path.canonicalize().and_then(|real| Ok((real.metadata()?, real))) {
            Ok((metadata, real)) if metadata.is_dir() => self.directory(&real),
            Ok((metadata, real)) if metadata.is_file() => {
                let above = real.parent().map_or(ALL, |parent| self.directory(parent));
                above & self.classes(&real, &metadata, READ)
            }
            Ok(_) => ALL,
            Err(_) => 0,
        }
    }

    /// Who may pass through a directory and all above it. `path` has no links.
    fn directory(&mut self, path: &Path) -> u32 {
        if let Some(known) = self.directories.get(path) {
            return *known;
        }
        let above = path.parent().map_or(ALL, |parent| self.directory(parent));
        let own = path.metadata().map_or(0, |metadata| self.classes(path, &metadata, ENTER));
        self.directories.insert(path.to_owned(), above & own);
        above & own
    }

    fn classes(&self, path: &Path, metadata: &Metadata, bit: u32) -> u32 {
        let mode = metadata.mode();
        let others = mode & bit != 0;
        let is_of_group = metadata.gid() == self.group;
        let has_list = is_of_group && getxattr(path, ACCESS_LIST, &mut [0u8; 0]).is_ok();
        let group = if is_of_group { mode & bit << 3 != 0 && !has_list } else { others };
        (if group { GROUP } else { 0 }) | (if others { OTHERS } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, set_permissions, write, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// The bits of 0755 that a file of that mode, in a directory of that mode, leaves to a group.
    fn remaining_bits(file: u32, directory: u32, is_of_group: bool) -> u32 {
        let top = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir_in("/tmp").unwrap();
        let folder = top.path().join("folder");
        create_dir(&folder).unwrap();
        write(folder.join("file"), "secret").unwrap();
        set_permissions(folder.join("file"), Permissions::from_mode(file)).unwrap();
        set_permissions(&folder, Permissions::from_mode(directory)).unwrap();
        let gid = folder.metadata().unwrap().gid();
        let mut readers = Readers::new(if is_of_group { gid } else { gid + 1 });
        readers.add(&folder.join("file"));
        readers.permitted_bits(0o755)
    }

    #[test]
    fn bits_of_files_and_of_directories_above_them_count() {
        assert_eq!(remaining_bits(0o644, 0o755, true), 0o755);
        assert_eq!(remaining_bits(0o600, 0o755, true), 0o700);
        assert_eq!(remaining_bits(0o640, 0o755, true), 0o750);
        assert_eq!(remaining_bits(0o640, 0o755, false), 0o700, "of another group");
        assert_eq!(remaining_bits(0o644, 0o700, true), 0o700);
        assert_eq!(remaining_bits(0o644, 0o711, true), 0o755, "who knows the name may read it");
        assert_eq!(remaining_bits(0o644, 0o750, true), 0o750);
    }

    #[test]
    fn what_is_gone_was_for_nobody_else() {
        let mut readers = Readers::new(0);
        readers.add(Path::new("/nowhere/at/all"));
        assert_eq!(readers.permitted_bits(0o755), 0o700);
        assert_eq!(readers.restrictive_file(), Some(Path::new("/nowhere/at/all")));
    }
}
