//! What command lines of both languages have in common: the script that the kernel has executed, and the program that PATH leads to.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Of the kernel's names for processes (bytes; TASK_COMM_LEN in linux/sched.h, with a NUL).
pub const COMM: usize = 15;

/// The first program of a name in PATH. `search_path`: its value.
pub fn in_path(name: &OsStr, search_path: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok();
    std::env::split_paths(search_path).map(|folder| folder.join(name)).find(is_program)
}

/// The place in a command line of the script that the kernel has executed, which then names the process: behind the interpreter that its first
/// line names, and maybe one word more (execve(2)). None where a shell or another program has executed the interpreter. `name`: of the process.
pub fn executed_script(words: &[&OsStr], name: &OsStr) -> Option<usize> {
    let (interpreter, more) = words.split_first()?;
    let is_it = |script: &OsStr, word: Option<&OsStr>| {
        let own = Path::new(script).file_name().unwrap_or_default().as_bytes();
        if own[..own.len().min(COMM)] != *name.as_bytes() {
            return false;
        }
        let line = first_line(Path::new(script)).unwrap_or_default();
        let mut parts =
            line.strip_prefix(b"#!".as_slice()).unwrap_or_default().trim_ascii().splitn(2, u8::is_ascii_whitespace);
        parts.next() == Some(interpreter.as_bytes())
            && parts.next().map(|rest| rest.trim_ascii()) == word.map(OsStr::as_bytes)
    };
    match more {
        [script, ..] if is_it(script, None) => Some(1),
        [word, script, ..] if is_it(script, Some(word)) => Some(2),
        _ => None,
    }
}

/// The first line of a file, as far as the kernel reads it (bytes; BINPRM_BUF_SIZE of linux/binfmts.h).
fn first_line(path: &Path) -> Option<Vec<u8>> {
    let mut start = Vec::new();
    fs::File::open(path).ok()?.take(256).read_to_end(&mut start).ok()?;
    start.split(|byte| *byte == b'\n').next().map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_the_kernel_executes_names_the_process() {
        let top = tempfile::tempdir().unwrap();
        let script = top.path().join("a rather long name");
        let found = |line: &str, words: &[&str], name: &str| {
            fs::write(&script, format!("{line}\nimport x\n")).unwrap();
            let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
            executed_script(&words, OsStr::new(name))
        };
        let (path, name) = (script.to_str().unwrap(), "a rather long n");
        assert_eq!(found("#!/v/bin/python", &["/v/bin/python", path, "x"], name), Some(1));
        assert_eq!(found("#! /v/bin/python  -I -u ", &["/v/bin/python", "-I -u", path], name), Some(2));
        assert_eq!(found("#!/v/bin/python", &["/v/bin/python", path], "python"), None);
        assert_eq!(found("#!/v/bin/python", &["/v/bin/python", "-I", path], name), None);
        assert_eq!(found("#!/usr/bin/env python", &["python", path], name), None);
        assert_eq!(found("#!/v/bin/python", &["/v/bin/python"], name), None);
    }
}
