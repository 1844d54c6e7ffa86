//! Preloads that a program complains about because it had to see them load: the tables `late_plugins` of recipes.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use recipes::LatePlugins;

/// Warnings about plugins that were loaded together with their program. `loaded` are files.
pub fn warnings(loaded: &[PathBuf]) -> impl Iterator<Item = String> + use<'_> {
    let rules = recipes::all().filter_map(|recipe| recipe.rules.late_plugins.as_ref());
    rules.filter_map(|rules| warning(rules, loaded))
}

fn warning(rules: &LatePlugins, loaded: &[PathBuf]) -> Option<String> {
    if !loaded.iter().any(|path| path.ends_with(&rules.loaded)) {
        return None;
    }
    let files: BTreeSet<&Path> = loaded.iter().map(PathBuf::as_path).collect();
    // Package folders; no import comes from below them.
    let folders: BTreeSet<&Path> = loaded
        .iter()
        .filter(|path| path.ends_with("__init__.py"))
        .filter_map(|path| path.ancestors().nth(2))
        .filter(|folder| !files.contains(folder.join("__init__.py").as_path()))
        .collect();
    let names: BTreeSet<String> = folders.iter().flat_map(|folder| loaded_early(rules, folder, &files)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    (!names.is_empty()).then(|| rules.warning.replace("{plugins}", &names.join(", ")))
}

/// The plugins in a folder of distributions that were loaded too early.
fn loaded_early(rules: &LatePlugins, folder: &Path, loaded: &BTreeSet<&Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let texts = entries
        .filter(|path| path.extension().is_some_and(|it| it == "dist-info"))
        .filter_map(|path| trust::look::read_to_string(&path.join("entry_points.txt")).ok());
    let is_early = |name: &String| {
        [folder.join(name).join("__init__.py"), folder.join(format!("{name}.py"))].iter().any(|path| {
            let minds = |text: String| !text.contains(&rules.unless);
            loaded.contains(path.as_path()) && trust::look::read_to_string(path).is_ok_and(minds)
        })
    };
    texts.flat_map(|text| plugins(&text, &rules.group)).filter(is_early).collect()
}

/// The packages of the plugins in an entry_points.txt.
fn plugins(text: &str, group: &str) -> Vec<String> {
    let lines = text
        .lines()
        .map(str::trim)
        .skip_while(|line| line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) != Some(group))
        .skip(1);
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
            ("_pytest/assertion/rewrite.py", ""),
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
        assert!(warnings(&loaded).next().unwrap().contains("of late, single, which"));
        let without: Vec<PathBuf> = loaded.iter().filter(|path| !path.ends_with("rewrite.py")).cloned().collect();
        assert_eq!(warnings(&without).next(), None);
    }
}
