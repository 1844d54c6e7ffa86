//! Whether a script finds other files by its own place: then a copy of it elsewhere would not find them.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};

/// By these words a script of Python or Ruby asks where it lies. Scripts that package managers make for commands have none of them.
const QUESTIONS: [&str; 5] = ["__file__", "__dir__", "__FILE__", "require_relative", "sys.path[0]"];
/// The endings of files that Python imports from the folder of a script.
const IMPORTED: [&str; 3] = ["py", "pyc", "so"];

/// How a script finds other files by its place.
#[derive(Debug, PartialEq, Eq)]
pub enum ByPlace {
    /// It asks for it, by one of [`QUESTIONS`].
    Question(&'static str),
    /// It names this module beside it.
    Module(PathBuf),
}

impl fmt::Display for ByPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ByPlace::Question(word) => f.write_str(word),
            ByPlace::Module(path) => write!(f, "{}", path.display()),
        }
    }
}

/// How the script of this path does so; None if it does not, as far as its text tells.
pub fn finding_by_place(script: &Path) -> Result<Option<ByPlace>> {
    let text = fs::read(script).map_err(|error| Failure::io("read", script, &error))?;
    let text = String::from_utf8_lossy(&text);
    let question = QUESTIONS.into_iter().find(|word| text.contains(word)).map(ByPlace::Question);
    let module = || {
        let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        modules_beside(script).into_iter().find(|path| words.contains(&module_name(path))).map(ByPlace::Module)
    };
    Ok(question.or_else(module))
}

fn modules_beside(script: &Path) -> Vec<PathBuf> {
    let entries = script.parent().and_then(|folder| fs::read_dir(folder).ok());
    let paths = entries.into_iter().flatten().flatten().map(|entry| entry.path());
    let is_module = |path: &PathBuf| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        path != script && (path.is_dir() || ending.is_some_and(|ending| IMPORTED.contains(&ending)))
    };
    paths.filter(is_module).collect()
}

/// The name of a file up to its first dot.
fn module_name(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.split('.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in a script of this text beside these files and folders (with a slash).
    fn found(text: &str, beside: &[&str]) -> Option<String> {
        let top = tempfile::tempdir().unwrap();
        for name in beside {
            match name.strip_suffix('/') {
                Some(folder) => fs::create_dir(top.path().join(folder)).unwrap(),
                None => fs::write(top.path().join(name), "").unwrap(),
            }
        }
        let script = top.path().join("tool");
        fs::write(&script, text).unwrap();
        let found = finding_by_place(&script).unwrap().map(|found| found.to_string());
        found.map(|found| found.trim_start_matches(&*format!("{}/", top.path().display())).to_owned())
    }

    #[test]
    fn a_script_that_asks_for_its_place_or_imports_from_it_does_so() {
        assert_eq!(found("open(os.path.dirname(__file__))", &[]).as_deref(), Some("__file__"));
        assert_eq!(found("require_relative 'lib'", &[]).as_deref(), Some("require_relative"));
        assert_eq!(found("from part import main", &["part.py"]).as_deref(), Some("part.py"));
        assert_eq!(found("import one.two", &["one/"]).as_deref(), Some("one"));
        assert_eq!(
            found("import fast", &["fast.cpython-311-x86_64-linux-gnu.so"]).as_deref(),
            Some("fast.cpython-311-x86_64-linux-gnu.so")
        );
    }

    #[test]
    fn a_script_that_a_package_manager_has_made_does_not() {
        let python =
            "import re\nimport sys\nfrom black import patched_main\nsys.argv[0] = re.sub('x', '', sys.argv[0])\n";
        assert_eq!(found(python, &["blackd", "activate_this.py", "__pycache__/", ".snapboot/"]), None);
        assert_eq!(
            found(
                "require 'rubygems'\nload Gem.activate_bin_path('rake', 'rake', version)\n",
                &["rake", "rake.rb.txt"]
            ),
            None
        );
    }
}
