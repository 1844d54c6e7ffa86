//! Which interpreter and which program a command line of Python names, by the rules of python/snapboot/archive/images.py.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::command_line::in_path;

/// Flags of the interpreter that take no word of their own, and those that do.
const PLAIN: &[u8] = b"BEIOPbdqsuvx";
const WITH_WORD: &[u8] = b"WX";

/// What Python will say in `sys.executable`; None if that is no path to this entry. `name`: the first word; `search_path`: the value of PATH;
/// `entry`: this program.
pub fn executable(name: &OsStr, search_path: Option<&OsStr>, entry: &Path) -> Option<PathBuf> {
    let path = if name.as_bytes().contains(&b'/') {
        // How `.` and `..` look there depends on the version.
        let is_plain =
            Path::new(name).components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        std::env::current_dir().ok().filter(|_| is_plain)?.join(name)
    } else {
        in_path(name, search_path?)?
    };
    let identity = |path: &Path| fs::metadata(path).ok().map(|status| (status.dev(), status.ino()));
    // A link from elsewhere leads out of the environment: Python looks for that beside the path by which it was called.
    let is_here = path.is_absolute() && fs::canonicalize(path.parent()?).ok()? == *entry.parent()?;
    (is_here && identity(&path)? == identity(entry)?).then_some(path)
}

/// What identifies the program that the words behind the interpreter's name start; None if it can have no image.
pub fn program(words: &[&OsStr]) -> Option<OsString> {
    program_of(words, Some(code_here))
}

/// `code`: what identifies a start of code.
fn program_of(words: &[&OsStr], code: Option<fn(&OsStr) -> Option<OsString>>) -> Option<OsString> {
    let mut words = words.iter().map(|word| word.as_bytes());
    while let Some(word) = words.next() {
        let Some(letters) = word.strip_prefix(b"-") else {
            return Some(if word.starts_with(b"/") { OsStr::from_bytes(word).to_owned() } else { below_here(word)? });
        };
        if letters.is_empty() || letters.starts_with(b"-") {
            return None;
        }
        for (index, letter) in letters.iter().enumerate() {
            let rest = Some(&letters[index + 1..]).filter(|rest| !rest.is_empty());
            match letter {
                b'm' => return Some(joined(&[b"-m ", rest.or_else(|| words.next()).filter(|name| !name.is_empty())?])),
                b'c' if index == 0 => return code?(OsStr::from_bytes(rest.or_else(|| words.next())?)),
                letter if WITH_WORD.contains(letter) => {
                    if rest.is_none() {
                        words.next();
                    }
                    break;
                }
                letter if PLAIN.contains(letter) => {}
                _ => return None,
            }
        }
    }
    None
}

fn below_here(name: &[u8]) -> Option<OsString> {
    Some(joined(&[std::env::current_dir().ok()?.as_os_str().as_bytes(), b"/", name]))
}

/// What identifies a start of code: it without its numbers, the current directory and the parent's program.
fn code_here(code: &OsStr) -> Option<OsString> {
    let mut text: Vec<u8> =
        code.as_bytes().iter().map(|byte| if byte.is_ascii_digit() { b'0' } else { *byte }).collect();
    text.dedup_by(|next, before| *next == b'0' && *before == b'0');
    let here = std::env::current_dir().ok()?;
    let parent = parents_program().unwrap_or_default();
    Some(joined(&[b"-c ", &text, b"\0", here.as_os_str().as_bytes(), b"\0", parent.as_bytes()]))
}

/// What identifies the program of the parent, as far as that needs no parent of its own.
fn parents_program() -> Option<OsString> {
    let parent = rustix::process::getppid()?.as_raw_nonzero();
    let line = fs::read(format!("/proc/{parent}/cmdline")).ok()?;
    let words: Vec<&OsStr> = line.strip_suffix(b"\0")?.split(|byte| *byte == 0).map(OsStr::from_bytes).collect();
    program_of(words.get(1..)?, None)
}

fn joined(parts: &[&[u8]]) -> OsString {
    OsString::from_vec(parts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(words: &[&str]) -> Option<String> {
        let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        Some(program_of(&words, Some(|code| Some(joined(&[b"code ", code.as_bytes()]))))?.into_string().unwrap())
    }

    #[test]
    fn a_program_is_a_script_a_module_or_code() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(program(&["/a/b.py", "-m", "c"]).as_deref(), Some("/a/b.py"));
        assert_eq!(program(&["-I", "-Xdev", "-W", "error", "b.py"]), Some(format!("{}/b.py", here.display())));
        assert_eq!(program(&["-Im", "black", "x"]).as_deref(), Some("-m black"));
        assert_eq!(program(&["-mblack"]).as_deref(), Some("-m black"));
        assert_eq!(program(&["-c", "pass"]).as_deref(), Some("code pass"));
        assert_eq!(program(&["-cpass"]).as_deref(), Some("code pass"));
    }

    #[test]
    fn what_else_there_is_has_no_program() {
        for words in [
            &[][..],
            &["-"],
            &["-i", "a.py"],
            &["--version"],
            &["-V"],
            &["-S", "a.py"],
            &["-Bc", "pass"],
            &["-m"],
            &["-c"],
        ] {
            assert_eq!(program(words), None, "{words:?}");
        }
    }

    #[test]
    fn an_executable_is_a_path_to_the_entry_in_its_folder() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let entry = top.join("bin/python");
        fs::create_dir(top.join("bin")).unwrap();
        fs::copy("/bin/true", &entry).unwrap();
        fs::hard_link(&entry, top.join("bin/python3")).unwrap();
        std::os::unix::fs::symlink(&entry, top.join("python")).unwrap();
        let found = |name: &str, path: &Path| executable(OsStr::new(name), Some(path.as_os_str()), &entry);
        assert_eq!(found(entry.to_str().unwrap(), &top), Some(entry.clone()));
        assert_eq!(found("python3", &top.join("bin")), Some(top.join("bin/python3")));
        assert_eq!(found("python", &top), None);
        assert_eq!(found("python4", &top.join("bin")), None);
        assert_eq!(found("bin/../bin/python", &top), None);
    }
}
