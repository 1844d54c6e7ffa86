//! Checks whether the parts of this installation are complete: an upgrade may have been interrupted, or a disk full.
//!
//! `make install` writes a list of all parts with their sizes. Their contents are not compared: that would take a start
//! longer than the archive saves.

use std::fs::{self, File};
use std::io::Read;
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;

use failure::{Failure, Result};

use crate::AGAIN;

/// The list, in the directory of the parts: a line with the version, and one with size and path for each file. A source
/// tree has none.
const LIST: &str = "parts";
/// From a 64-bit ELF header (see elf(5)): its size, and the offsets of the section headers' offset, size and number.
const ELF_HEADER: usize = 64;
const ELF_MAGIC: &[u8] = b"\x7fELF";

/// Fails if a part whose path begins with one of these differs in length from its installation, or cannot be read. A
/// library must be complete in any case.
pub fn check(directory: &Path, beginnings: &[&str]) -> Result<()> {
    let list = match fs::read_to_string(directory.join(LIST)) {
        Ok(list) => list,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let libraries = beginnings.iter().filter(|path| path.ends_with(".so")).map(|path| directory.join(path));
            return libraries.filter(|library| library.exists()).try_for_each(|library| check_program(&library));
        }
        Err(error) => return Err(Failure::io("read", &directory.join(LIST), &error)),
    };
    let mut lines = list.lines();
    let version = lines.next().unwrap_or_default();
    if version != env!("CARGO_PKG_VERSION") {
        return Err(Failure::refusal(format!(
            "{} holds parts of version {version}, and this is version {}: {AGAIN}",
            directory.display(),
            env!("CARGO_PKG_VERSION")
        )));
    }
    let parts = lines.filter_map(|line| line.split_once(' '));
    for (size, path) in parts.filter(|(_, path)| beginnings.iter().any(|beginning| path.starts_with(beginning))) {
        let path = directory.join(path);
        let found = File::open(&path).and_then(|file| file.metadata()).map(|status| status.len().to_string());
        match found {
            Ok(found) if found == size => {}
            Ok(found) => return Err(damaged(&path, &format!("{size} bytes long, and has {found}"))),
            Err(error) => return Err(damaged(&path, &format!("readable ({})", failure::reason(&error)))),
        }
    }
    Ok(())
}

/// Fails if a file does not end as expected, because it was cut off.
pub fn ends_with(path: &Path, end: &str) -> Result<()> {
    let read = || {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-(end.len() as i64)))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        io::Result::Ok(text)
    };
    match read() {
        Ok(text) if text == end.as_bytes() => Ok(()),
        _ => Err(damaged(path, "whole, and its end is not there")),
    }
}

/// Fails if a program or library was cut off. The kernel and the dynamic linker would map it, and the process would
/// crash.
pub fn check_program(path: &Path) -> Result<()> {
    let is_whole = || {
        let file = File::open(path)?;
        let mut header = [0; ELF_HEADER];
        file.read_exact_at(&mut header, 0)?;
        let number = |at: usize, size: usize| {
            header[at..at + size].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        // A linker writes this last.
        let (sections, size, count) = (number(40, 8), number(58, 2), number(60, 2));
        io::Result::Ok(header.starts_with(ELF_MAGIC) && file.metadata()?.len() >= sections.saturating_add(size * count))
    };
    match is_whole() {
        Ok(true) => Ok(()),
        Ok(false) => Err(damaged(path, "whole, and its end is not there")),
        Err(error) => Err(damaged(path, &format!("readable ({})", failure::reason(&error)))),
    }
}

fn damaged(path: &Path, expected: &str) -> Failure {
    Failure::refusal(format!("{} should be {expected}: {AGAIN}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(result: Result<()>) -> String {
        result.err().map(|failure| failure.message).unwrap_or_default()
    }

    #[test]
    fn parts_are_compared_with_the_list() {
        let top = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(top.path().join(name), text).unwrap();
        write("one.py", "1234");
        write("two.py", "12");
        write(LIST, concat!(env!("CARGO_PKG_VERSION"), "\n4 one.py\n3 two.py\n5 gone.py\n"));
        assert_eq!(said(check(top.path(), &["one"])), "");
        assert!(said(check(top.path(), &["one", "two"])).contains("two.py should be 3 bytes long, and has 2"));
        assert!(said(check(top.path(), &["gone"])).contains("gone.py should be readable (no such file"));
        write(LIST, "0.0.1\n4 one.py\n");
        assert!(said(check(top.path(), &["one"])).contains("parts of version 0.0.1"));
    }

    #[test]
    fn what_was_cut_off_is_noticed() {
        let top = tempfile::tempdir().unwrap();
        let script = top.path().join("run.py");
        fs::write(&script, "import sys\nstart()\n").unwrap();
        assert!(ends_with(&script, "start()\n").is_ok());
        for text in ["import sys\n", "", "start(", "import sys\nstart()\n#"] {
            fs::write(&script, text).unwrap();
            assert!(ends_with(&script, "start()\n").is_err(), "{text}");
        }
        let own = std::env::current_exe().unwrap();
        assert_eq!(said(check_program(&own)), "");
        let content = fs::read(own).unwrap();
        let copy = top.path().join("program");
        for length in [0, 4, 64, content.len() / 2, content.len() - 1] {
            fs::write(&copy, &content[..length]).unwrap();
            assert!(check_program(&copy).is_err(), "{length}");
        }
    }
}
