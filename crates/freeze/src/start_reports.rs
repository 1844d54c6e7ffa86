//! What thawed starts report that they load and their image lacks: entries of a file to which they append. See
//! docs/internals/protocol.md.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use judge::entries::{fields, Entries};
use runtime::Main;
use rustix::process::geteuid;

/// Starts add nothing to a file of more than 1 MB, and each of them adds little.
const MAX_SIZE: u64 = 16 << 20;

/// What starts and training runs report by name alone. Each kind has a key:
///
/// - `changed`: variables that the program sets in its own environment
/// - `searched`: folders that a Ruby program adds to its load path
/// - `ran`: files that a Ruby program loads, and that are not features
/// - `activated`: gems that a Ruby program activates, and that may be active earlier: `NAME VERSION`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names([BTreeSet<OsString>; 4]);

impl Names {
    const KEYS: [&str; 4] = ["changed", "searched", "ran", "activated"];

    /// Adds a name, if this is the key of one.
    pub fn add(&mut self, key: &str, name: &OsStr) {
        if let Some(kind) = Self::KEYS.iter().position(|known| *known == key) {
            self.0[kind].insert(name.to_owned());
        }
    }

    /// Adds those of others.
    pub fn extend(&mut self, others: &Names) {
        self.0.iter_mut().zip(&others.0).for_each(|(own, other)| own.extend(other.iter().cloned()));
    }

    /// Adds them to entries.
    pub fn push_to(&self, entries: &mut Entries) {
        let keyed = Self::KEYS.iter().zip(&self.0);
        keyed.for_each(|(key, names)| names.iter().for_each(|name| entries.push(key, name)));
    }
}

/// The content of the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StartReports {
    path: PathBuf,
    /// The script to which all of this applies, see [`script_behind_links`]; None if the program has no script.
    script: Option<PathBuf>,
    /// Each module or feature and the file that it came from, in the order of the reports.
    pub loaded: Vec<(OsString, OsString)>,
    /// What they reported by name.
    pub names: Names,
    /// Names with which no image could be made.
    pub useless: BTreeSet<OsString>,
}

/// The script's file with all links resolved. If a link on the way to it is switched, as with each release of an
/// application, reports of another release no longer count: the files that they loaded may still exist.
pub fn script_behind_links(main: &Main) -> Option<PathBuf> {
    main.script.as_ref().map(|script| script.canonicalize().unwrap_or_else(|_| script.clone()))
}

impl StartReports {
    /// Reads a file that only this user can have written; any other counts as empty. Drops repeated entries, and those
    /// of scripts other than `script`.
    pub fn read(path: &Path, script: Option<PathBuf>) -> StartReports {
        let mut reports = StartReports { path: path.to_owned(), script, ..StartReports::default() };
        let is_own =
            |status: fs::Metadata| status.is_file() && status.uid() == geteuid().as_raw() && status.len() <= MAX_SIZE;
        // Does not follow a link.
        if !path.symlink_metadata().is_ok_and(is_own) {
            return reports;
        }
        let entries = Entries::parse(&trust::read(path).unwrap_or_default());
        let count = entries.iter().count();
        reports.add(&entries);
        if reports.to_entries().iter().count() < count {
            let _ = reports.write();
        }
        reports
    }

    fn add(&mut self, entries: &Entries) {
        let mut known = BTreeSet::new();
        let mut counts = self.script.is_none();
        for (key, value) in entries.iter() {
            match key {
                "script" => counts = self.script.as_deref().is_none_or(|script| script == Path::new(value)),
                _ if !counts => {}
                // A truncated entry has no file.
                "module" => {
                    if let Ok([name, file]) = <[OsString; 2]>::try_from(fields(value)) {
                        if known.insert(name.clone()) {
                            self.loaded.push((name, file));
                        }
                    }
                }
                "useless" => drop(self.useless.insert(value.to_owned())),
                _ => self.names.add(key, value),
            }
        }
        self.loaded.retain(|(name, _)| !self.useless.contains(name));
    }

    /// Records that no image could be made with any of it. If that fails, the next freeze tries again.
    pub fn give_up(&mut self) {
        self.useless.extend(self.loaded.drain(..).map(|(name, _)| name));
        let _ = self.write();
    }

    fn to_entries(&self) -> Entries {
        let mut entries = Entries::default();
        self.script.iter().for_each(|script| entries.push("script", script));
        for (name, file) in &self.loaded {
            entries.push_record("module", &[name, file]);
        }
        self.names.push_to(&mut entries);
        self.useless.iter().for_each(|name| entries.push("useless", name));
        entries
    }

    /// Reports that arrive meanwhile are lost; starts will repeat them.
    fn write(&self) -> io::Result<()> {
        let new = self.path.with_extension(format!("{}.new", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        let written = file.write_all(&self.to_entries().to_bytes()).and_then(|()| fs::rename(&new, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_reports(content: &[u8]) -> (tempfile::TempDir, StartReports) {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("profile");
        fs::write(&path, content).unwrap();
        let reports = StartReports::read(&path, None);
        (top, reports)
    }

    fn names(reports: &StartReports) -> Vec<(&str, &str)> {
        reports.loaded.iter().map(|(name, file)| (name.to_str().unwrap(), file.to_str().unwrap())).collect()
    }

    #[test]
    fn what_was_cut_off_takes_nothing_with_it() {
        let (_top, reports) =
            read_reports(b"module=1:a2:/a\0changed=X\0module=3:cut5:/c\0\0module=1:b2:/b\0other=1\0module=1:d2:");
        assert_eq!(names(&reports), [("a", "/a"), ("b", "/b")]);
        assert_eq!(reports.names.0[0], BTreeSet::from(["X".into()]));
    }

    #[test]
    fn what_was_reported_again_is_kept_once() {
        let (_top, reports) = read_reports(&b"module=1:a2:/a\0module=1:b2:/b\0".repeat(3));
        assert_eq!(names(&reports), [("a", "/a"), ("b", "/b")]);
        assert_eq!(fs::read(&reports.path).unwrap(), b"module=1:a2:/a\0module=1:b2:/b\0");
    }

    #[test]
    fn what_was_given_up_is_not_tried_again() {
        let (_top, mut first) = read_reports(b"module=1:a2:/a\0changed=X\0");
        first.give_up();
        let next = StartReports::read(&first.path, None);
        assert_eq!(next, first);
        assert_eq!((names(&next), next.useless.len()), (vec![], 1));
        let mut file = OpenOptions::new().append(true).open(&first.path).unwrap();
        file.write_all(b"module=1:a2:/a\0module=1:b2:/b\0").unwrap();
        assert_eq!(names(&StartReports::read(&first.path, None)), [("b", "/b")]);
    }

    #[test]
    fn what_starts_of_another_release_reported_does_not_count() {
        let content = b"module=1:z2:/z\0script=/1/app\0module=1:a2:/a\0ran=/r\0script=/2/app\0module=1:b2:/b\0";
        let (_top, first) = read_reports(content);
        fs::write(&first.path, content).unwrap();
        let second = StartReports::read(&first.path, Some("/2/app".into()));
        assert_eq!((names(&second), second.names.0[2].len()), (vec![("b", "/b")], 0));
        assert_eq!(fs::read(&first.path).unwrap(), b"script=/2/app\0module=1:b2:/b\0");
    }

    #[test]
    fn only_a_file_is_read() {
        let top = tempfile::tempdir().unwrap();
        let [link, fifo] = ["link", "fifo"].map(|name| top.path().join(name));
        fs::write(top.path().join("file"), b"module=1:a2:/a\0").unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
        for path in [&link, &fifo, top.path(), &top.path().join("none")] {
            assert!(StartReports::read(path, None).loaded.is_empty());
        }
    }
}
