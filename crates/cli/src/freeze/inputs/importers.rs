//! What Python's importers were asked for. They list a directory and remember the names, so that the kernel sees one list and none
//! of the names; but of the list only these names count, or a new file beside others would make every image stale.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use recorder::{Paths, State};

use crate::entries::Entries;

/// One directory that modules were looked for in.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Importer {
    /// Absolute path.
    pub directory: PathBuf,
    /// How often the importer listed it.
    pub lists: usize,
    /// Endings of names that something else looked for in a list of its own (`.pth`).
    pub endings: Vec<OsString>,
    /// The last parts of the names of modules, and whether each was found somewhere.
    pub names: Vec<(OsString, bool)>,
    /// Endings of module files, in the order in which they are tried.
    suffixes: Vec<OsString>,
}

impl Importer {
    /// All importers of a report: `suffix=` as often as there are some, then, for each, `importer=`, `lists=`, `ending=`, and
    /// `found=` or `sought=` (in vain).
    pub fn all(report: &Entries) -> Vec<Importer> {
        let suffixes: Vec<OsString> = report.all("suffix").map(OsStr::to_owned).collect();
        let mut all: Vec<Importer> = Vec::new();
        let mut paths = Paths::default();
        for (key, value) in report.iter() {
            match (key, all.last_mut()) {
                ("importer", _) => {
                    let directory = paths.absolute(Path::new("/"), value);
                    all.push(Importer { directory, suffixes: suffixes.clone(), ..Importer::default() });
                }
                ("lists", Some(last)) => last.lists = value.to_str().and_then(|it| it.parse().ok()).unwrap_or(0),
                ("ending", Some(last)) => last.endings.push(value.to_owned()),
                ("found" | "sought", Some(last)) => last.names.push((value.to_owned(), key == "found")),
                _ => {}
            }
        }
        all
    }

    /// One for each directory: several reports, or several names for one directory, may tell of it.
    pub fn merged(all: Vec<Importer>) -> Vec<Importer> {
        let mut merged: BTreeMap<PathBuf, Importer> = BTreeMap::new();
        for one in all {
            let directory = one.directory.clone();
            match merged.get_mut(&directory) {
                None => drop(merged.insert(directory, one)),
                Some(known) => {
                    known.lists += one.lists;
                    known.names.extend(one.names);
                    if known.endings.is_empty() {
                        known.endings = one.endings;
                    }
                }
            }
        }
        merged.into_values().collect()
    }

    /// The names that would have been found earlier, or at all, had they been there: relative to the directory.
    pub fn absent(&self) -> impl Iterator<Item = OsString> + '_ {
        self.names.iter().flat_map(|(name, is_found)| self.absent_for(name, *is_found))
    }

    /// A package comes before a file, and of files the suffixes tell. A directory that is no package counts only where there is
    /// neither.
    fn absent_for(&self, name: &OsStr, is_found_somewhere: bool) -> Vec<OsString> {
        let mut absent = Vec::new();
        let mut is_found = |name: OsString| {
            let state = State::behind(&self.directory.join(&name));
            if state == State::Absent {
                absent.push(name);
            }
            matches!(state, State::File(_))
        };
        let init = |suffix| Path::new(name).join(joined(OsStr::new("__init__"), suffix)).into_os_string();
        if self.suffixes.iter().any(|suffix| is_found(init(suffix))) {
            return absent;
        }
        if !self.suffixes.iter().any(|suffix| is_found(joined(name, suffix))) && !is_found_somewhere {
            is_found(name.to_owned());
        }
        absent
    }
}

fn joined(name: &OsStr, suffix: &OsStr) -> OsString {
    let mut joined = name.to_owned();
    joined.push(suffix);
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_have_been_found_before_is_absent() {
        let top = tempfile::tempdir().unwrap();
        let write = |name: &str| std::fs::write(top.path().join(name), "").unwrap();
        std::fs::create_dir_all(top.path().join("package")).unwrap();
        std::fs::create_dir_all(top.path().join("plain")).unwrap();
        for name in ["package/__init__.py", "module.py", "native.abi3.so", "plain.py"] {
            write(name);
        }
        let mut report = Entries::default();
        [".abi3.so", ".py", ".pyc"].iter().for_each(|suffix| report.push("suffix", suffix));
        report.push("importer", top.path());
        report.push("lists", "2");
        let absent = |key: &str, name: &str| {
            let mut report = Entries::parse(&report.to_bytes());
            report.push(key, name);
            let all = Importer::all(&report);
            assert_eq!((all.len(), all[0].lists), (1, 2));
            let absent: Vec<String> = all[0].absent().map(|name| name.into_string().unwrap()).collect();
            absent.join(" ")
        };
        let no_package =
            |name: &str| [".abi3.so", ".py", ".pyc"].map(|suffix| format!("{name}/__init__{suffix}")).join(" ");
        assert_eq!(absent("found", "module"), no_package("module") + " module.abi3.so");
        assert_eq!(absent("found", "native"), no_package("native"));
        assert_eq!(absent("found", "package"), "package/__init__.abi3.so");
        assert_eq!(absent("found", "plain"), no_package("plain") + " plain.abi3.so", "a directory that is no package");
        let none = no_package("none") + " none.abi3.so none.py none.pyc";
        assert_eq!(absent("found", "none"), none, "elsewhere");
        assert_eq!(absent("sought", "none"), none + " none");
    }
}
