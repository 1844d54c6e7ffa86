//! Which interpreter and which program a command line of Ruby names, by the rules of ruby/lib/snapboot/enabled.rb; and where `snapboot enable`
//! puts the Ruby whose place the entry takes. It stays in its folder: a Ruby that was built to be moved finds its files from there.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::command_line::in_path;

/// The name of the interpreter.
pub const NAME: &str = "ruby";
/// Ends the name of the one that was moved.
pub const MOVED: &str = ".snapboot";
/// Flags of the interpreter that may stand together, flags with a word behind them or in the same word, and what begins long ones. Of all
/// others, Ruby itself knows better.
const PLAIN: &[u8] = b"adlUvwy";
const WITH_WORD: &[u8] = b"IrE";
const LONG: [&[u8]; 5] = [b"--enable", b"--yjit", b"--jit", b"--rjit", b"--verbose"];

/// Whether an entry stands in the place of a Ruby. `entry`: its path.
pub fn is_ruby(entry: &Path) -> bool {
    entry.file_name().is_some_and(|name| name.as_bytes().starts_with(NAME.as_bytes()))
}

/// The path of a Ruby that was moved. `ruby`: its own, or now that of the entry.
pub fn moved(ruby: &Path) -> PathBuf {
    let mut path = ruby.as_os_str().to_owned();
    path.push(MOVED);
    PathBuf::from(path)
}

/// The file of the Ruby behind this entry; None if the first word of the command line leads to another one. `name`: that word;
/// `search_path`: the value of PATH; `entry`: this program, without links.
pub fn executable(name: &OsStr, search_path: Option<&OsStr>, entry: &Path) -> Option<PathBuf> {
    let is_this = name.as_bytes().contains(&b'/')
        || fs::canonicalize(in_path(name, search_path?)?).is_ok_and(|found| found == *entry);
    Some(moved(entry)).filter(|moved| is_this && moved.is_file())
}

/// The path of the script that the words behind the interpreter's name start; None if it can have no image, or only Ruby knows.
pub fn program(words: &[&OsStr]) -> Option<OsString> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(letters) = word.as_bytes().strip_prefix(b"-") else { return absolute(word) };
        match letters {
            [letter] if WITH_WORD.contains(letter) => _ = words.next(),
            [letter, ..] if WITH_WORD.contains(letter) || is_plain(word.as_bytes()) => {}
            _ => return None,
        }
    }
    None
}

/// Whether a word is an option that changes nothing of which program is started, and where it is found.
fn is_plain(word: &[u8]) -> bool {
    let is_one = word.iter().all(|byte| !byte.is_ascii_whitespace());
    word[1..].iter().all(|letter| PLAIN.contains(letter))
        || is_one && (word.starts_with(b"-W") || LONG.iter().any(|option| word.starts_with(option)))
}

/// The absolute path, without the parts `.` and `..`, as File.absolute_path has it.
fn absolute(name: &OsStr) -> Option<OsString> {
    let mut path = PathBuf::from("/");
    for part in std::env::current_dir().ok()?.join(name).components() {
        match part {
            Component::Normal(part) => path.push(part),
            Component::ParentDir => _ = path.pop(),
            _ => {}
        }
    }
    Some(path.into_os_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_a_script_behind_options_that_do_not_matter() {
        let here = std::env::current_dir().unwrap();
        for (words, expected) in [
            (&["/a/b.rb", "-e"][..], Some("/a/b.rb".to_owned())),
            (&["./x/../a.rb"], Some(format!("{}/a.rb", here.display()))),
            (&["-w", "-Ilib", "//a.rb"], Some("/a.rb".to_owned())),
            (&["-I", "lib", "-r", "json", "/a.rb"], Some("/a.rb".to_owned())),
            (&["-W0", "--yjit", "--enable=frozen-string-literal", "-ruri", "/a.rb"], Some("/a.rb".to_owned())),
        ] {
            let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
            assert_eq!(program(&words), expected.map(OsString::from), "{words:?}");
        }
    }

    #[test]
    fn what_else_there_is_is_left_to_ruby() {
        for words in [
            &[][..],
            &["-"],
            &["-e", "1"],
            &["-n", "/a.rb"],
            &["-C", "/", "a.rb"],
            &["-C/", "a.rb"],
            &["-x", "/a.rb"],
            &["-S", "rake"],
            &["--disable=gems", "/a.rb"],
            &["--version"],
            &["--", "/a.rb"],
            &["-W 0", "/a.rb"],
            &["-I"],
        ] {
            let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
            assert_eq!(program(&words), None, "{words:?}");
        }
    }

    #[test]
    fn a_name_leads_to_the_entry_by_links_too() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let entry = top.join("ruby");
        fs::copy("/bin/true", &entry).unwrap();
        std::os::unix::fs::symlink(&entry, top.join("ruby3")).unwrap();
        let found = |name: &str| executable(OsStr::new(name), Some(top.as_os_str()), &entry);
        assert_eq!(found("ruby"), None, "nothing was moved");
        fs::copy("/bin/true", moved(&entry)).unwrap();
        assert_eq!([found("ruby"), found("ruby3"), found("/any/ruby")], [(); 3].map(|()| Some(moved(&entry))));
        assert_eq!([found("ruby4"), found("ruby.snapboot")], [None, None]);
    }
}
