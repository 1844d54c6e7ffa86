//! CRuby's command line: separates the interpreter's own options from the program.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use failure::{Failure, Result};

use super::jit;
use super::locate::locate;
use super::options::{refused, Letter};
use super::{readable_script, Main, MainKind};

fn letter(letter: u8) -> Option<Letter> {
    Some(match letter {
        b'a' | b'd' | b'l' | b'n' | b'p' | b'S' | b'U' | b'w' => Letter::Flag,
        b'I' | b'r' | b'E' => Letter::Value,
        b'0' | b'F' | b'i' | b'K' | b'T' | b'W' => Letter::Attached,
        b'e' => Letter::Main,
        b'c' | b'h' | b'v' | b'y' => Letter::Refused(refused::PRINTS),
        b's' | b'x' => Letter::Refused(refused::READS),
        b'C' | b'X' => Letter::Refused(refused::DIRECTORY),
        _ => return None,
    })
}

/// Long options that may have their value in the next argument.
const LONG_WITH_VALUE: [&str; 5] = ["disable", "enable", "encoding", "external-encoding", "internal-encoding"];
/// Long options that apply to the boot, with or without `=VALUE`.
const LONG: [&str; 6] =
    ["debug", "debug-frozen-string-literal", "backtrace-limit", "verbose", "parser", "crash-report"];
/// Splits the argv of a CRuby call. `-S` looks scripts up in `search_path`, the value of PATH.
pub fn split(argv: Vec<OsString>, search_path: &OsStr) -> Result<Main> {
    let mut index = 1;
    let mut in_path = false;
    let kind = loop {
        let Some(argument) = argv.get(index) else { break MainKind::Bare };
        let bytes = argument.as_bytes();
        if bytes == b"-" {
            break MainKind::Bare;
        }
        if bytes == b"--" {
            index += 1;
            break if argv.len() > index { MainKind::Script } else { MainKind::Bare };
        }
        if let Some(long) = bytes.strip_prefix(b"--") {
            index += long_option(argument, &String::from_utf8_lossy(long))?;
        } else if let Some(letters) = bytes.strip_prefix(b"-") {
            match short_options(argument, letters)? {
                Some(taken) => index += taken,
                None => break MainKind::Code,
            }
            in_path |= letters.first() == Some(&b'S');
        } else {
            break MainKind::Script;
        }
        if index > argv.len() {
            return Err(Failure::refusal(format!(
                "Ruby's option {} needs a value after it, and the command ends there.",
                argv[argv.len() - 1].display()
            )));
        }
    };
    let script = match kind {
        MainKind::Script if in_path && !argv[index].as_bytes().contains(&b'/') => {
            Some(readable_script(locate(&argv[index], search_path)?.as_os_str())?)
        }
        MainKind::Script => Some(readable_script(&argv[index])?),
        _ => None,
    };
    Ok(Main { kind, argv, index, script })
}

/// The number of arguments that a long option takes, including itself.
fn long_option(argument: &OsStr, long: &str) -> Result<usize> {
    let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
    if let Some(option) = jit::option(argument) {
        return option.refused().map_or(Ok(1), |why| Err(refusal(argument, &why.to_string())));
    }
    if LONG_WITH_VALUE.contains(&name) {
        return Ok(if value.is_some() { 1 } else { 2 });
    }
    if LONG.contains(&name) || name.starts_with("disable-") || name.starts_with("enable-") {
        return Ok(1);
    }
    Err(refusal(argument, "it is unknown here, or it prints something and ends"))
}

/// The number of arguments that a group of one-letter options takes, including itself; None if it starts the main part.
fn short_options(argument: &OsStr, letters: &[u8]) -> Result<Option<usize>> {
    for (position, name) in letters.iter().enumerate() {
        match letter(*name) {
            Some(Letter::Flag) => {}
            Some(Letter::Attached) => break,
            Some(Letter::Value) if position + 1 < letters.len() => break,
            Some(Letter::Value) => return Ok(Some(2)),
            // Options combined with -e stay with it: Ruby reads all of them before it runs anything.
            Some(Letter::Main) => return Ok(None),
            Some(Letter::Refused(why)) => return Err(refusal(argument, why)),
            None => return Err(refusal(argument, "CRuby does not know it")),
        }
    }
    Ok(Some(1))
}

fn refusal(argument: &OsStr, why: &str) -> Failure {
    Failure::refusal(format!("an image cannot be made with Ruby's option {}: {why}.", argument.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_words(words: &str) -> Result<Main> {
        split(words.split(' ').map(OsString::from).collect(), OsStr::new("/usr/bin:/bin"))
    }

    #[test]
    fn options_end_where_the_main_part_begins() {
        use MainKind::*;
        let cases = [
            ("ruby", Bare, 1),
            ("ruby -W0 -", Bare, 2),
            ("ruby -e 1 -w", Code, 1),
            ("ruby -Ilib -I test -rjson -r set -W:no-deprecated -e 1", Code, 8),
            ("ruby -wne 1", Code, 1),
            ("ruby --disable=gems --disable did_you_mean --enable-frozen-string-literal -e 1", Code, 5),
            ("ruby --encoding utf-8 -E utf-8:utf-8 -Ku -e 1", Code, 6),
            ("ruby -w Cargo.toml -e 1", Script, 2),
            ("ruby -w -- Cargo.toml", Script, 3),
            ("ruby --yjit --yjit-exec-mem-size=8 --enable=yjit --enable-yjit --enable yjit -e 1", Code, 7),
            ("ruby --jit --disable-yjit Cargo.toml", Script, 3),
            ("ruby -S env x", Script, 2),
        ];
        for (words, kind, index) in cases {
            let main = split_words(words).unwrap();
            assert_eq!((main.kind, main.index), (kind, index), "{words}");
        }
    }

    #[test]
    fn a_script_gets_its_absolute_path() {
        let main = split_words("ruby -w Cargo.toml a").unwrap();
        assert_eq!(main.script, Some(std::env::current_dir().unwrap().join("Cargo.toml")));
        assert!(split_words("ruby -S env").unwrap().script.unwrap().ends_with("bin/env"));
    }

    #[test]
    fn what_an_image_cannot_honour_is_refused() {
        for words in [
            "ruby -v",
            "ruby -C /tmp -e 1",
            "ruby --mjit -e 1",
            "ruby --rjit-call-threshold=1 -e 1",
            "ruby --yjit --yjit-perf -e 1",
            "ruby -x a",
            "ruby -s a",
            "ruby --version",
            "ruby --enable-rjit -e 1",
            "ruby --enable=gems,mjit -e 1",
            "ruby missing.rb",
            "ruby -I",
            "ruby -j",
        ] {
            assert_eq!(split_words(words).unwrap_err().kind, failure::Kind::Refused, "{words}");
        }
    }
}
