//! How an environment looks whose interpreter's place the entry has taken (`snapboot enable`): `bin/python` is the entry, and
//! `.snapboot/python`, beside `bin`, is what was there. In a Ruby's prefix, `.snapboot/ruby` leads to what was `bin/ruby` ([`ruby::moved`]).
//! `.snapboot/snapboot` leads to the command. And what the entry decides by: the command line ([`python`], [`ruby`]), and the store's files
//! about starts ([`starts`]).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod command_line;
pub mod python;
pub mod ruby;
pub mod starts;

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The folder beside `bin` with what was there.
pub const FOLDER: &str = ".snapboot";
/// Its link to the command.
pub const COMMAND: &str = "snapboot";
/// Its folder of links to the interpreter by other names: the kernel names a process after the file that it executes.
pub const NAMES: &str = "names";
/// In the first [`START`] bytes of each entry, of whatever version.
pub const MARK: [u8; 20] = *b"snapboot's entry\0\0\0\0";
/// How much of a file tells whether it is an entry (bytes).
pub const START: usize = 4096;

/// Whether a file that begins like this is an entry.
pub fn is_entry(start: &[u8]) -> bool {
    start.starts_with(b"\x7fELF") && start.windows(MARK.len()).take(START).any(|part| part == MARK)
}

/// The interpreter in whose place an entry is. `path`: of the entry, or a link to it with the interpreter's name; of a Ruby's, any link. None
/// if it is not where `snapboot enable` puts entries.
pub fn interpreter_behind(path: &Path) -> Option<PathBuf> {
    let beside = |path: &Path| Some(path.parent()?.parent()?.join(FOLDER).join(path.file_name()?));
    // A Python of an environment looks for that beside the path by which it was called.
    let real = std::fs::canonicalize(path).ok().filter(|real| ruby::is_ruby(real));
    let behind = [beside(path), real.as_deref().and_then(beside), real.as_deref().map(ruby::moved)];
    behind.into_iter().flatten().find(|path| path.is_file())
}

/// What a regular file begins with; None if it cannot be read.
pub fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut start = Vec::new();
    let file = path.is_file().then(|| File::open(path).ok()).flatten()?;
    file.take(START as u64).read_to_end(&mut start).ok()?;
    Some(start)
}

/// Paths where the interpreter behind an entry should be if its link is missing, the best first: of a Ruby, beside the entry; of a Python,
/// that from which the environment was made. `entry`: its path; `name`: by which it is called.
pub fn interpreters_elsewhere(entry: &Path, name: &OsStr) -> Vec<PathBuf> {
    if ruby::is_ruby(entry) {
        return vec![ruby::moved(entry)];
    }
    let names = [name, OsStr::new("python3"), OsStr::new("python")];
    let environment = entry.parent().and_then(Path::parent);
    environment.and_then(home).map_or_else(Vec::new, |home| names.map(|name| home.join(name)).into())
}

/// The folder of the interpreter that a virtual environment was made from, as its pyvenv.cfg says (PEP 405).
fn home(environment: &Path) -> Option<PathBuf> {
    let text = std::fs::read_to_string(environment.join("pyvenv.cfg")).ok()?;
    let settings = text.lines().filter_map(|line| line.split_once('='));
    let home =
        settings.filter(|(key, _)| key.trim().eq_ignore_ascii_case("home")).map(|(_, value)| value.trim()).next();
    home.map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_told_by_its_start() {
        let own = [b"\x7fELF....".as_slice(), &MARK].concat();
        assert!(is_entry(&own));
        assert!(!is_entry(&own[1..]) && !is_entry(b"\x7fELF") && !is_entry(&MARK));
        assert!(!is_entry(&[b"\x7fELF".as_slice(), &[0; START], &MARK].concat()));
    }

    #[test]
    fn the_interpreter_is_beside_bin() {
        let top = tempfile::tempdir().unwrap();
        let (entry, behind) = (top.path().join("bin/python3"), top.path().join(".snapboot/python3"));
        std::fs::create_dir_all(behind.parent().unwrap()).unwrap();
        assert_eq!(interpreter_behind(&entry), None);
        std::fs::write(&behind, "").unwrap();
        assert_eq!(interpreter_behind(&entry), Some(behind));
        assert_eq!(interpreter_behind(Path::new("python3")), None);
    }

    #[test]
    fn a_ruby_is_found_by_a_link_from_elsewhere_and_without_the_folder() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let [entry, link, python] = ["bin/ruby", "ruby", "python"].map(|name| top.join(name));
        std::fs::create_dir(top.join("bin")).unwrap();
        for path in [&entry, &ruby::moved(&entry), &top.join("bin/python"), &ruby::moved(&top.join("bin/python"))] {
            std::fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink(&entry, &link).unwrap();
        std::os::unix::fs::symlink(top.join("bin/python"), &python).unwrap();
        assert_eq!([&entry, &link].map(|path| interpreter_behind(path)), [(); 2].map(|()| Some(ruby::moved(&entry))));
        assert_eq!(interpreter_behind(&python), None);
        assert_eq!(interpreters_elsewhere(&entry, OsStr::new("any")), [ruby::moved(&entry)]);
    }

    #[test]
    fn an_environment_says_what_it_was_made_from() {
        let top = tempfile::tempdir().unwrap();
        assert_eq!(home(top.path()), None);
        std::fs::write(top.path().join("pyvenv.cfg"), "version = 3\nHome=/a b/bin\nhome = /c\n").unwrap();
        assert_eq!(home(top.path()), Some(PathBuf::from("/a b/bin")));
    }
}
