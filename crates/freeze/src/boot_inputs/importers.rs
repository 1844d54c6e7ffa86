//! What Python's importers looked up, and others that look up certain names in a directory list of their own
//! (`importlib.metadata`, RubyGems). The kernel sees only the listing, not the names. But only these names count, or a
//! new file beside others would make every image stale.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use image::answer_kind;
use judge::entries::Entries;
use recorder::{Paths, State};

/// A directory in which modules were looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Importer {
    /// Absolute path.
    pub directory: PathBuf,
    /// How often code that reports its look-ups listed it: importers, `site`, `importlib.metadata`, RubyGems.
    pub lists: usize,
    /// How often its real name was resolved, if it is a directory.
    pub named: usize,
    /// Endings of the names that `site` looks for (`.pth`).
    pub endings: BTreeSet<OsString>,
    /// Distributions that `importlib.metadata` looked up; an empty name stands for all.
    pub distributions: BTreeSet<OsString>,
    /// Patterns of names, each with one `*`.
    pub patterns: BTreeSet<OsString>,
    /// Features that RubyGems looked up in all gems.
    pub features: BTreeSet<OsString>,
    /// The last components of modules' names, and whether each was found somewhere.
    pub names: Vec<(OsString, bool)>,
    /// Endings of module files, in the order in which they are tried.
    suffixes: Vec<OsString>,
}

impl Importer {
    /// All importers of a report: one `suffix` for each ending, and one `importer` for each importer. The latter is a
    /// record of its directory followed by pairs of a kind and a value: `lists`, `named`, `ending`, `distribution`,
    /// `pattern`, `feature`, and `found` or `sought` (looked up and not found).
    pub fn parse_all(report: &Entries) -> Vec<Importer> {
        let suffixes: Vec<OsString> = report.all("suffix").map(OsStr::to_owned).collect();
        let mut paths = Paths::default();
        let importer = |fields: Vec<OsString>| {
            let (directory, said) = fields.split_first()?;
            let directory = paths.absolute(Path::new("/"), directory);
            let mut importer = Importer { directory, suffixes: suffixes.clone(), ..Importer::default() };
            said.chunks_exact(2).for_each(|pair| importer.add_answer(&pair[0], &pair[1]));
            Some(importer)
        };
        report.records("importer").filter_map(importer).collect()
    }

    fn add_answer(&mut self, key: &OsStr, value: &OsStr) {
        let count = || value.to_str().and_then(|it| it.parse().ok()).unwrap_or(0);
        match key.as_bytes() {
            b"lists" => self.lists = count(),
            b"named" => self.named = count(),
            b"ending" => drop(self.endings.insert(value.to_owned())),
            b"distribution" => drop(self.distributions.insert(value.to_owned())),
            b"feature" => drop(self.features.insert(value.to_owned())),
            b"pattern" => drop(self.patterns.insert(value.to_owned())),
            b"found" | b"sought" => self.names.push((value.to_owned(), key == "found")),
            _ => {}
        }
    }

    /// Merges them to one for each directory: several reports, or several names of a directory, may describe it.
    pub fn merged(all: Vec<Importer>) -> Vec<Importer> {
        let mut merged: BTreeMap<PathBuf, Importer> = BTreeMap::new();
        for one in all {
            let directory = one.directory.clone();
            match merged.get_mut(&directory) {
                None => drop(merged.insert(directory, one)),
                Some(known) => {
                    known.lists += one.lists;
                    known.named += one.named;
                    known.names.extend(one.names);
                    known.distributions.extend(one.distributions);
                    known.patterns.extend(one.patterns);
                    known.features.extend(one.features);
                    known.endings.extend(one.endings);
                }
            }
        }
        merged.into_values().collect()
    }

    /// The names of its lists that count: kinds of answers, and selections.
    pub fn selections(&self) -> Vec<(u32, OsString)> {
        let mut all: Vec<_> = self.endings.iter().map(|ending| (answer_kind::LISTING, ending.clone())).collect();
        if !self.distributions.is_empty() {
            let is_all = self.distributions.contains(OsStr::new(""));
            let some = (!is_all).then(|| one_selection(&self.distributions)).flatten();
            all.push((answer_kind::DISTRIBUTIONS, some.unwrap_or_default()));
        }
        let several = [(answer_kind::MATCHING, &self.patterns, "/"), (answer_kind::FEATURES, &self.features, "\n")];
        for (kind, parts, separator) in several {
            // Gems are looked up beside the specifications.
            let can_look = kind != answer_kind::FEATURES || self.is_plain();
            match several_selections(parts, separator).filter(|some| some.is_empty() || can_look) {
                Some(some) => all.extend(some.into_iter().map(|it| (kind, it))),
                None => all.push((answer_kind::LISTING, OsString::new())),
            }
        }
        all
    }

    /// Whether `..` leads from the directory to its parent by name.
    fn is_plain(&self) -> bool {
        let Ok(above) = self.directory.join("..").canonicalize() else { return true };
        self.directory.parent().and_then(|parent| parent.canonicalize().ok()) == Some(above)
    }

    /// The names that would have been found earlier, or at all, if they had existed: relative to the directory.
    pub fn absent(&self) -> impl Iterator<Item = OsString> + '_ {
        self.names.iter().flat_map(|(name, is_found)| self.absent_for(name, *is_found))
    }

    /// A package takes precedence over a file; the suffixes order files. A directory that is not a package counts only
    /// if there is neither.
    fn absent_for(&self, name: &OsStr, is_found_somewhere: bool) -> Vec<OsString> {
        let mut absent = Vec::new();
        let mut is_found = |name: OsString| {
            let state = State::read_target(&self.directory.join(&name));
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

/// All parts of a selection as one text; None if it is longer than an answer's name may be.
fn one_selection(parts: &BTreeSet<OsString>) -> Option<OsString> {
    let parts: Vec<&OsStr> = parts.iter().map(OsString::as_os_str).collect();
    let all = parts.join(OsStr::new("/"));
    (all.as_bytes().len() <= image::MAX_NAME).then_some(all)
}

/// All parts in as few selections as possible; None if one of them is too long.
fn several_selections(parts: &BTreeSet<OsString>, separator: &str) -> Option<Vec<OsString>> {
    let mut all: Vec<OsString> = Vec::new();
    for part in parts {
        match all.last_mut() {
            Some(last) if last.len() + 1 + part.len() <= image::MAX_NAME => {
                last.push(separator);
                last.push(part);
            }
            _ if part.len() > image::MAX_NAME => return None,
            _ => all.push(part.clone()),
        }
    }
    Some(all)
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
        let absent = |key: &str, name: &str| {
            let mut report = Entries::parse(&report.to_bytes());
            let fields = [OsStr::new("lists"), OsStr::new("2"), OsStr::new(key), OsStr::new(name)];
            report.push_record("importer", &[&[top.path().as_os_str()][..], &fields].concat());
            let all = Importer::parse_all(&report);
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

    #[test]
    fn what_was_looked_for_in_lists_is_put_together_by_directory() {
        let told = |said: &[(&str, &str)]| {
            let fields = said.iter().flat_map(|(key, value)| [OsStr::new(key), OsStr::new(value)]);
            let mut report = Entries::default();
            report.push_record("importer", &[OsStr::new("/lib")].into_iter().chain(fields).collect::<Vec<_>>());
            report
        };
        let report = told(&[
            ("lists", "2"),
            ("ending", ".pth"),
            ("ending", ".start"),
            ("distribution", "b"),
            ("pattern", "a-*.x"),
        ]);
        let selections = |more: &[(&str, &str)]| {
            let child = told(&[&[("ending", ".pth")], more].concat());
            let all = Importer::merged([Importer::parse_all(&report), Importer::parse_all(&child)].concat());
            assert_eq!((all.len(), all[0].lists), (1, 2));
            all[0].selections().into_iter().map(|(kind, text)| (kind, text.into_string().unwrap())).collect::<Vec<_>>()
        };
        let (ending, distributions, matching) =
            (answer_kind::LISTING, answer_kind::DISTRIBUTIONS, answer_kind::MATCHING);
        let is = |kind: u32, text: &str| (kind, text.to_owned());
        let both = [is(ending, ".pth"), is(ending, ".start")];
        assert_eq!(selections(&[]), [&both[..], &[is(distributions, "b"), is(matching, "a-*.x")]].concat());
        let more = [("distribution", "a"), ("pattern", "b-*.x")];
        assert_eq!(selections(&more)[2..], [is(distributions, "a/b"), is(matching, "a-*.x/b-*.x")]);
        assert_eq!(selections(&[("distribution", "")])[2], is(distributions, ""));
        let long = "n".repeat(image::MAX_NAME);
        let more = [("distribution", long.as_str()), ("pattern", long.as_str())];
        assert_eq!(selections(&more)[2..], [is(distributions, ""), is(matching, "a-*.x"), is(matching, &long)]);
        let longer = long + "n";
        assert_eq!(selections(&[("pattern", &longer)])[3..], [is(ending, "")]);
    }
}
