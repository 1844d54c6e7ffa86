//! Makes the names that the kernel gets absolute and normal, so that each path has one entry.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Normalises names.
#[derive(Default)]
pub struct Paths {
    /// Directories checked before: whether no link is on the way.
    direct: HashMap<PathBuf, bool>,
}

impl Paths {
    /// `name` relative to `directory`, which is absolute: without `.`, empty parts and, where no link is on the way,
    /// `..`.
    pub fn absolute(&mut self, directory: &Path, name: &OsStr) -> PathBuf {
        let bytes = name.as_bytes();
        if bytes.first() == Some(&b'/') && is_plain(bytes) {
            return PathBuf::from(name);
        }
        let joined = directory.join(name);
        let mut path = PathBuf::with_capacity(joined.as_os_str().len());
        for part in joined.components() {
            match part {
                Component::ParentDir if !ends_upwards(&path) && self.is_direct(&path) => {
                    path.pop();
                }
                part => path.push(part),
            }
        }
        path
    }

    fn is_direct(&mut self, path: &Path) -> bool {
        if let Some(known) = self.direct.get(path) {
            return *known;
        }
        let direct = path.canonicalize().is_ok_and(|real| real == path);
        self.direct.insert(path.to_owned(), direct);
        direct
    }
}

/// Whether an absolute name has neither `.` nor `..` nor empty parts.
fn is_plain(name: &[u8]) -> bool {
    !name.ends_with(b"/")
        && !name.ends_with(b"/.")
        && !name.ends_with(b"/..")
        && !name.windows(2).any(|pair| pair == b"//")
        && !name.windows(3).any(|part| part == b"/./" || part == b"/..")
}

fn ends_upwards(path: &Path) -> bool {
    path.components().next_back() == Some(Component::ParentDir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_for_each_place() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::os::unix::fs::symlink("a/b", top.join("link")).unwrap();
        let mut paths = Paths::default();
        let mut form = |name: &str| paths.absolute(&top, OsStr::new(name)).strip_prefix(&top).unwrap().to_owned();
        assert_eq!(form("a//b/./c/"), Path::new("a/b/c"));
        assert_eq!(form("a/b/../x"), Path::new("a/x"));
        assert_eq!(form("a/b/../../x"), Path::new("x"));
        assert_eq!(form("link/../x"), Path::new("link/../x"), "which is a/x");
        assert_eq!(form("link/../../x"), Path::new("link/../../x"));
        assert_eq!(form("gone/../x"), Path::new("gone/../x"));
        for name in ["/etc/./x", "/etc//x", "/etc/x/", "/etc/x/.", "/etc/x", "/proc/../etc/x", "//etc/x"] {
            assert_eq!(paths.absolute(Path::new("/"), OsStr::new(name)), Path::new("/etc/x"), "{name}");
        }
        assert_eq!(paths.absolute(Path::new("/"), OsStr::new("/etc/..x/.y")), Path::new("/etc/..x/.y"));
    }
}
