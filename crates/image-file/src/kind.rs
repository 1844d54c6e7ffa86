//! Whether a file is an image, and otherwise what it is, for messages to users who named the wrong file.

use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use image::{HEAD_OFFSET, RESERVED_END, RESERVED_START};

/// The entry point's place in an ELF header.
const ENTRY: std::ops::Range<usize> = 24..32;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An image, maybe a damaged one, which still contains its original command.
    Image,
    /// An empty file.
    Empty,
    /// A file with a shebang.
    Script,
    /// An ELF file that is not an image.
    Program,
    /// Any other file.
    Other,
}

impl Kind {
    /// The kind of a file, judging by its start.
    pub fn detect(path: &Path) -> io::Result<Kind> {
        let file = trust::look::open(path)?;
        let mut magic = [0; 7];
        // An unfinished image lacks the first byte.
        let has_magic = file.read_exact_at(&mut magic, HEAD_OFFSET as u64 + 1).is_ok() && &magic == b"SNAPBT\n";
        let mut start = Vec::new();
        file.take(ENTRY.end as u64).read_to_end(&mut start)?;
        let entry = start.get(ENTRY).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
        let is_elf = start.starts_with(b"\x7fELF");
        // Only the launcher has its entry point in that range.
        Ok(if has_magic || is_elf && (RESERVED_START..RESERVED_END).contains(&entry) {
            Kind::Image
        } else if start.is_empty() {
            Kind::Empty
        } else if is_elf {
            Kind::Program
        } else if start.starts_with(b"#!") {
            Kind::Script
        } else {
            Kind::Other
        })
    }

    /// Whether a file is an image; false if it cannot be read.
    pub fn is_image(path: &Path) -> bool {
        matches!(Kind::detect(path), Ok(Kind::Image))
    }

    /// The kind in words.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Image => "an image",
            Kind::Empty => "an empty file",
            Kind::Script => "a script",
            Kind::Program => "a program that is no image",
            Kind::Other => "a file of another kind",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_start() {
        let top = tempfile::tempdir().unwrap();
        let kind = |content: &[u8]| {
            let path = top.path().join("file");
            std::fs::write(&path, content).unwrap();
            Kind::detect(&path).unwrap()
        };
        let elf = |entry: u64| [b"\x7fELF".as_slice(), &[0; 20], &entry.to_le_bytes()].concat();
        let unfinished = [vec![0; HEAD_OFFSET + 1], b"SNAPBT\n".to_vec()].concat();
        assert_eq!(kind(&unfinished), Kind::Image);
        assert_eq!([elf(RESERVED_START + 0x6000), elf(0x6000)].map(|bytes| kind(&bytes)), [Kind::Image, Kind::Program]);
        assert_eq!([&b""[..], b"#!/bin/sh\n", b"text"].map(kind), [Kind::Empty, Kind::Script, Kind::Other]);
        assert!(Kind::detect(&top.path().join("nosuch")).is_err() && !Kind::is_image(top.path()));
    }
}
