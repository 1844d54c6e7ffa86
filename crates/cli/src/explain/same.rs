//! Checks before an image is advised whether its start does what an ordinary one does: its output, and its exit status.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};

use failure::{Failure, Result};
use runtime::{locate, search_path};

use crate::human;

/// The output and exit status of a start.
#[derive(PartialEq)]
struct Said {
    status: ExitStatus,
    output: Vec<u8>,
    errors: Vec<u8>,
}

/// How a start of an image compares with an ordinary one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// It does the same.
    Same,
    /// It omits this many lines on standard error.
    Silent(usize),
    /// It prints something else, or ends differently.
    Differs,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Comparison::Same => f.write_str("A start of such an image does the same."),
            Comparison::Silent(lines) => write!(
                f,
                "An ordinary start writes {} to standard error, and a start from the image does not: code that the freeze loads printed \
                 them, once, during the freeze.",
                human::count(*lines, "line")
            ),
            Comparison::Differs => {
                f.write_str("A start of such an image was tried, and prints something else or ends differently.")
            }
        }
    }
}

/// Compares a start of the image `thawed` with one of `ordinary`. Two ordinary starts that differ from each other show nothing.
pub fn compare(ordinary: &[OsString], thawed: &[OsString]) -> Result<Comparison> {
    let (one, other) = (said(ordinary)?, said(thawed)?);
    if (one.status, &one.output) != (other.status, &other.output) {
        let again = said(ordinary)?;
        if (one.status, &one.output) == (again.status, &again.output) {
            return Ok(Comparison::Differs);
        }
    }
    let lines = |said: &Said| said.errors.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).count();
    Ok(match lines(&one).saturating_sub(lines(&other)) {
        0 => Comparison::Same,
        silent => Comparison::Silent(silent),
    })
}

fn said(words: &[OsString]) -> Result<Said> {
    let program = locate(&words[0], &search_path()).or_else(|_| locate(&words[0], OsStr::new("")))?;
    // Files and not pipes, which processes that a program leaves behind may keep open.
    let file = || tempfile::tempfile().map_err(|error| Failure::io("make a file in", &std::env::temp_dir(), &error));
    let (mut output, mut errors) = (file()?, file()?);
    let failed = |error: std::io::Error| Failure::io("start", &program, &error);
    let standard = |file: &File| file.try_clone().map(Stdio::from).map_err(failed);
    let mut command = Command::new(&program);
    command
        .arg0(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(standard(&output)?)
        .stderr(standard(&errors)?);
    let status = command.status().map_err(failed)?;
    Ok(Said { status, output: content(&mut output).map_err(failed)?, errors: content(&mut errors).map_err(failed)? })
}

fn content(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Vec<OsString> {
        ["/bin/sh", "-c", script].map(OsString::from).to_vec()
    }

    #[test]
    fn what_differs_is_told() {
        let compared = |one: &str, other: &str| compare(&shell(one), &shell(other)).unwrap();
        assert_eq!(compared("echo a", "echo a"), Comparison::Same);
        assert_eq!(compared("echo a", "echo b"), Comparison::Differs);
        assert_eq!(compared("exit 3", "exit 4"), Comparison::Differs);
        assert_eq!(compared("echo a; echo b >&2", "echo a"), Comparison::Silent(1));
        assert!(Comparison::Silent(1).to_string().contains("1 line to standard error"));
        // A program that prints its process number differs from itself.
        assert_eq!(compared("echo $$", "echo $$"), Comparison::Same);
    }
}
