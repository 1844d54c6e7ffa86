//! CPython's command line: separates the interpreter's own options from the program.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use failure::{Failure, Result};

use super::options::{refused, Letter};
use super::{readable_script, Main, MainKind};

fn letter(letter: u8) -> Option<Letter> {
    Some(match letter {
        b'b' | b'B' | b'd' | b'E' | b'i' | b'I' | b'O' | b'P' | b'q' | b'R' | b's' | b'S' | b't' | b'u' | b'v' => {
            Letter::Flag
        }
        b'W' | b'X' => Letter::Value,
        b'c' | b'm' => Letter::Main,
        b'h' | b'?' | b'V' => Letter::Refused(refused::PRINTS),
        b'x' => Letter::Refused(refused::READS),
        _ => return None,
    })
}

/// Whether the interpreter's options ask for an interactive session (`-i`).
pub fn is_interactive(options: &[OsString]) -> bool {
    has_flag(options, b"i")
}

/// Whether an interpreter with these options runs modules from PYTHONPATH at its start: not with -I, -E and -S.
pub fn runs_site(options: &[OsString]) -> bool {
    !has_flag(options, b"IES")
}

/// Whether one of these flags is among the options.
fn has_flag(options: &[OsString], wanted: &[u8]) -> bool {
    options.iter().filter_map(|option| option.as_bytes().strip_prefix(b"-")).any(|letters| {
        let mut flags = letters.iter().take_while(|letter| !b"-WX".contains(letter));
        flags.any(|letter| wanted.contains(letter))
    })
}

/// Splits the argv of a CPython call.
pub fn split(argv: Vec<OsString>) -> Result<Main> {
    let mut given = argv.into_iter();
    let mut done: Vec<OsString> = given.by_ref().take(1).collect();
    let main = |kind, mut done: Vec<OsString>, first: Option<OsString>, rest: std::vec::IntoIter<OsString>| {
        let index = done.len();
        done.extend(first.into_iter().chain(rest));
        Main { kind, argv: done, index, script: None }
    };
    while let Some(argument) = given.next() {
        let bytes = argument.as_bytes();
        if bytes == b"-" {
            return Ok(main(MainKind::Bare, done, Some(argument), given));
        }
        if bytes == b"--" {
            done.push(argument);
            return match given.next() {
                Some(script) => with_script(main(MainKind::Script, done, Some(script), given)),
                None => Ok(main(MainKind::Bare, done, None, given)),
            };
        }
        if bytes == b"--check-hash-based-pycs" {
            done.push(argument);
            done.push(given.next().ok_or_else(|| needs_value("--check-hash-based-pycs"))?);
            continue;
        }
        if bytes.starts_with(b"--") {
            return Err(refusal(&argument, "it is unknown here, or it prints something and ends"));
        }
        if !bytes.starts_with(b"-") {
            return with_script(main(MainKind::Script, done, Some(argument), given));
        }
        let mut position = 1;
        while position < bytes.len() {
            let name = bytes[position];
            match letter(name) {
                Some(Letter::Main) => {
                    // From here on, flags combined with it stand alone, so that all options precede the main part.
                    if position > 1 {
                        done.push(OsString::from_vec(bytes[..position].to_vec()));
                    }
                    let mut part = vec![b'-'];
                    part.extend_from_slice(&bytes[position..]);
                    if part.len() == 2 && given.len() == 0 {
                        return Err(needs_value(if name == b'c' { "-c" } else { "-m" }));
                    }
                    let kind = if name == b'c' { MainKind::Code } else { MainKind::Module };
                    return Ok(main(kind, done, Some(OsString::from_vec(part)), given));
                }
                Some(Letter::Value) => {
                    let attached = position + 1 < bytes.len();
                    done.push(argument.clone());
                    if !attached {
                        done.push(given.next().ok_or_else(|| needs_value(if name == b'W' { "-W" } else { "-X" }))?);
                    }
                    break;
                }
                Some(Letter::Refused(why)) => return Err(refusal(&argument, why)),
                Some(Letter::Flag | Letter::Attached) => position += 1,
                None => return Err(refusal(&argument, "CPython does not know it")),
            }
            if position == bytes.len() {
                done.push(argument.clone());
            }
        }
    }
    Ok(main(MainKind::Bare, done, None, given))
}

fn with_script(mut main: Main) -> Result<Main> {
    main.script = Some(readable_script(&main.argv[main.index])?);
    Ok(main)
}

fn refusal(argument: &OsStr, why: &str) -> Failure {
    Failure::refusal(format!("an image cannot be made with Python's option {}: {why}.", argument.display()))
}

fn needs_value(option: &str) -> Failure {
    Failure::refusal(format!("Python's option {option} needs a value after it, and the command ends there."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_words(words: &str) -> Result<Main> {
        split(words.split(' ').map(OsString::from).collect())
    }

    /// Kind, options and the rest, for short tables.
    fn parts(words: &str) -> (MainKind, String, String) {
        let main = split_words(words).unwrap();
        let join = |words: &[OsString]| words.join(OsStr::new(" ")).into_string().unwrap();
        (main.kind, join(main.options()), join(main.rest()))
    }

    #[test]
    fn options_end_where_the_main_part_begins() {
        use MainKind::*;
        let cases = [
            ("python", Bare, "", ""),
            ("python -I -", Bare, "-I", "- "),
            ("python -c pass -I", Code, "", "-c pass -I"),
            ("python -cpass", Code, "", "-cpass"),
            ("python -X utf8 -W error -m http.server --help", Module, "-X utf8 -W error", "-m http.server --help"),
            ("python -Xutf8 -Werror -bb -m x", Module, "-Xutf8 -Werror -bb", "-m x"),
            ("python -Im http.server", Module, "-I", "-m http.server"),
            ("python -IBc pass", Code, "-IB", "-c pass"),
            ("python -BX dev -c pass", Code, "-BX dev", "-c pass"),
            ("python --check-hash-based-pycs never -c pass", Code, "--check-hash-based-pycs never", "-c pass"),
            ("python --", Bare, "--", ""),
        ];
        for (words, kind, options, rest) in cases {
            assert_eq!(parts(words), (kind, options.to_owned(), rest.trim_end().to_owned()), "{words}");
        }
    }

    #[test]
    fn a_script_gets_its_absolute_path_and_keeps_its_words() {
        let main = split_words("python -B -- Cargo.toml -c x").unwrap();
        assert_eq!((main.kind, main.index), (MainKind::Script, 3));
        assert_eq!(main.script, Some(std::env::current_dir().unwrap().join("Cargo.toml")));
        assert_eq!(main.rest(), ["Cargo.toml", "-c", "x"]);
    }

    #[test]
    fn a_session_is_asked_for_by_a_letter_among_others() {
        let asks = |words: &str| is_interactive(split_words(words).unwrap().options());
        assert!(asks("python -i") && asks("python -Bi -c 1") && asks("python -u -im json"));
        assert!(!asks("python") && !asks("python -Wignore -X importtime -c 1") && !asks("python -c -i"));
    }

    #[test]
    fn what_an_image_cannot_honour_is_refused() {
        for words in [
            "python -V",
            "python -h",
            "python -Ix a.py",
            "python --version",
            "python -Z",
            "python -c",
            "python -W",
            "python missing.py",
        ] {
            assert_eq!(split_words(words).unwrap_err().kind, failure::Kind::Refused, "{words}");
        }
    }
}
