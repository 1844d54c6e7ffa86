//! Preloads of which a program complains that they were loaded before it could see to it.
//!
//! pytest rewrites the assertions of its plugins while it loads them, and warns at each start of those that are there already (its
//! documentation: "Assertion Rewriting").

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// By this pytest is known among what was loaded.
const REWRITER: &str = "_pytest/assertion/rewrite.py";
/// The section of a distribution's entry points that names its plugins.
const SECTION: &str = "[pytest11]";
/// A module that says so is not rewritten.
const NOT_REWRITTEN: &str = "PYTEST_DONT_REWRITE";

/// A warning of plugins of pytest that were loaded together with it, if there are any. `loaded`: files.
pub fn warning(loaded: &[PathBuf]) -> Option<String> {
    if !loaded.iter().any(|path| path.ends_with(REWRITER)) {
        return None;
    }
    let files: BTreeSet<&Path> = loaded.iter().map(PathBuf::as_path).collect();
    // Folders of packages, from below which nothing else is imported.
    let folders: BTreeSet<&Path> = loaded
        .iter()
        .filter(|path| path.ends_with("__init__.py"))
        .filter_map(|path| path.ancestors().nth(2))
        .filter(|folder| !files.contains(folder.join("__init__.py").as_path()))
        .collect();
    let names: BTreeSet<String> = folders.iter().flat_map(|folder| rewritten_too_late(folder, &files)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| {
        format!(
            "pytest warns at each start of {}, which it cannot rewrite once they are loaded; leave such plugins out of --preload",
            names.join(", ")
        )
    })
}

/// The plugins in a folder of distributions that were loaded and would have been rewritten.
fn rewritten_too_late(folder: &Path, loaded: &BTreeSet<&Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let texts = entries
        .filter(|path| path.extension().is_some_and(|it| it == "dist-info"))
        .filter_map(|path| trust::look::read_to_string(&path.join("entry_points.txt")).ok());
    let is_late = |name: &String| {
        [folder.join(name).join("__init__.py"), folder.join(format!("{name}.py"))].iter().any(|path| {
            let is_rewritten = |text: String| !text.contains(NOT_REWRITTEN);
            loaded.contains(path.as_path()) && trust::look::read_to_string(path).is_ok_and(is_rewritten)
        })
    };
    texts.flat_map(|text| plugins(&text)).filter(is_late).collect()
}

/// The packages of the plugins that an entry_points.txt names.
fn plugins(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).skip_while(|line| *line != SECTION).skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .filter_map(|(_, module)| module.trim().split(['.', ':']).next().map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_that_were_loaded_with_pytest_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let mut loaded = Vec::new();
        for (name, text) in [
            ("_pytest/__init__.py", ""),
            ("_pytest/assertion/__init__.py", ""),
            (REWRITER, ""),
            ("late/__init__.py", ""),
            ("single.py", ""),
            ("plain/__init__.py", "'''PYTEST_DONT_REWRITE'''"),
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, text).unwrap();
            loaded.push(path);
        }
        let info = folder.path().join("late-1.dist-info");
        fs::create_dir(&info).unwrap();
        let points = "[console_scripts]\nplain = plain:main\n\n[pytest11]\na = late.plugin\nb = plain\nc=single\nd = other\n\n[x]\ny = _pytest\n";
        fs::write(info.join("entry_points.txt"), points).unwrap();
        assert!(warning(&loaded).unwrap().contains("of late, single, which"));
        let without: Vec<PathBuf> = loaded.iter().filter(|path| !path.ends_with(REWRITER)).cloned().collect();
        assert_eq!(warning(&without), None);
    }
}
