//! Parses first lines of scripts: shebangs, `env` commands and installers' shell tricks.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The kernel's reading of a script: the interpreter and at most one argument.
#[derive(Debug, PartialEq, Eq)]
pub struct Shebang {
    /// Path of the interpreter, as written.
    pub interpreter: OsString,
    /// The rest of the line, as one argument.
    pub argument: Option<OsString>,
}

/// The kernel reads at most this many bytes of a script.
const KERNEL_READS: usize = 256;

impl Shebang {
    /// Parses the start of a file. None if it is not a script, or if the interpreter's path exceeds what the kernel
    /// reads.
    pub fn parse(file: &[u8]) -> Option<Self> {
        let read = &file[..file.len().min(KERNEL_READS)];
        let line = read.strip_prefix(b"#!")?;
        let line = match line.iter().position(|&byte| byte == b'\n') {
            Some(end) => &line[..end],
            // Truncated by the kernel's limit: usable only if the interpreter itself is complete.
            None if read.len() == KERNEL_READS && !trim(line).iter().any(|byte| is_blank(*byte)) => return None,
            None => line,
        };
        let line = trim(line);
        let end = line.iter().position(|&byte| is_blank(byte)).unwrap_or(line.len());
        let (interpreter, argument) = line.split_at(end);
        let argument = trim(argument);
        let to_owned = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        (!interpreter.is_empty()).then(|| Shebang {
            interpreter: to_owned(interpreter),
            argument: (!argument.is_empty()).then(|| to_owned(argument)),
        })
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes {
        if !is_blank(*first) {
            break;
        }
        bytes = rest;
    }
    while let [rest @ .., last] = bytes {
        if !is_blank(*last) {
            break;
        }
        bytes = rest;
    }
    bytes
}

/// The command that `env ARGS` starts, or the part of ARGS that Snapboot does not support.
///
/// Supports `env PROGRAM ARGS`, `env -- PROGRAM` and `env -S 'PROGRAM ARGS'` (also `-SPROGRAM`, `--split-string=...`,
/// `-vS`).
pub fn env_command(arguments: &[OsString]) -> Result<Vec<OsString>, OsString> {
    let mut rest: Vec<OsString> = arguments.to_vec();
    loop {
        let Some(first) = rest.first().cloned() else { return Err(OsString::from("env")) };
        let bytes = first.as_bytes();
        let split = [b"--split-string=".as_slice(), b"-vS", b"-S"].into_iter().find_map(|it| bytes.strip_prefix(it));
        if bytes == b"--" {
            rest.remove(0);
            return if rest.is_empty() { Err(OsString::from("env")) } else { Ok(rest) };
        } else if let Some(attached) = split {
            // The string is the rest of this argument, or the next one.
            let taken = if attached.is_empty() { 2 } else { 1 };
            let string =
                if attached.is_empty() { rest.get(1).cloned() } else { Some(OsString::from_vec(attached.to_vec())) };
            let words = string.as_deref().and_then(|string| words(string.as_bytes())).ok_or(first)?;
            rest.splice(..taken.min(rest.len()), words);
        } else if bytes.starts_with(b"-") || bytes.contains(&b'=') {
            return Err(first);
        } else {
            return Ok(rest);
        }
    }
}

/// Splits a line into words like a shell: blanks, quotes and backslashes. None if a quote is not closed or something
/// needs expansion (`$`, a backquote).
pub fn words(line: &[u8]) -> Option<Vec<OsString>> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<Vec<u8>>, None);
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (None, b'\'' | b'"') => {
                quote = Some(byte);
                word.get_or_insert_default();
            }
            (Some(open), _) if byte == open => quote = None,
            (None | Some(b'"'), b'\\') => word.get_or_insert_default().push(bytes.next()?),
            (None | Some(b'"'), b'$' | b'`') => return None,
            (None, b' ' | b'\t' | b'\n') => all.extend(word.take().map(OsString::from_vec)),
            _ => word.get_or_insert_default().push(byte),
        }
    }
    all.extend(word.map(OsString::from_vec));
    quote.is_none().then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shebang(line: &str) -> Option<(String, Option<String>)> {
        let text = |string: OsString| string.into_string().unwrap();
        Shebang::parse(line.as_bytes()).map(|it| (text(it.interpreter), it.argument.map(text)))
    }

    fn os(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_kernel_gives_one_argument_at_most() {
        assert_eq!(shebang("#!/bin/python3\nx"), Some(("/bin/python3".into(), None)));
        assert_eq!(shebang("#! /bin/python3 -I -E \t\nx"), Some(("/bin/python3".into(), Some("-I -E".into()))));
        assert_eq!(shebang("#!/bin/python3"), Some(("/bin/python3".into(), None)));
        assert_eq!(shebang("#!\n"), None);
        assert_eq!(shebang("print()"), None);
    }

    #[test]
    fn a_path_beyond_the_kernels_limit_is_none() {
        assert_eq!(shebang(&format!("#!/{}/python\n", "x".repeat(300))), None);
        assert!(shebang(&format!("#!/bin/python {}\n", "x".repeat(300))).is_some());
    }

    #[test]
    fn env_is_followed_as_far_as_it_changes_nothing() {
        let cases: [(&[&str], &[&str]); 6] = [
            (&["python3", "a.py"], &["python3", "a.py"]),
            (&["--", "python3"], &["python3"]),
            (&["-S", "python3 -I", "a.py"], &["python3", "-I", "a.py"]),
            (&["-S python3 -X 'a b'", "a.py"], &["python3", "-X", "a b", "a.py"]),
            (&["-vSruby -W0", "a.rb"], &["ruby", "-W0", "a.rb"]),
            (&["--split-string=-- ruby", "a.rb"], &["ruby", "a.rb"]),
        ];
        for (arguments, expected) in cases {
            assert_eq!(env_command(&os(arguments)), Ok(os(expected)), "{arguments:?}");
        }
        for refused in [&["-i", "python3"][..], &["A=1", "python3"], &["-u", "A", "python3"], &[], &["-S $X"], &["-S"]]
        {
            assert!(env_command(&os(refused)).is_err(), "{refused:?}");
        }
    }

    #[test]
    fn words_know_quotes() {
        assert_eq!(words(br#"'''exec' "/a b/python" -x"#), Some(os(&["exec", "/a b/python", "-x"])));
        assert_eq!(words(br#"a\ b '' "c'd""#), Some(os(&["a b", "", "c'd"])));
        assert_eq!(words(b"'open"), None);
        assert_eq!(words(b"\"$HOME\""), None);
    }
}
