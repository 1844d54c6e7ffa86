//! Digests of files, as images hold them.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use image::ContentDigest;

/// How much is read at a time (bytes).
pub(crate) const PIECE: usize = 1 << 18;

/// The digest of a part of a file, as the head has it for the data pages.
pub fn digest_pages(file: &File, offset: u64, size: u64) -> io::Result<[u8; 16]> {
    let (mut digest, mut buffer) = (ContentDigest::default(), vec![0; PIECE]);
    let (mut at, end) = (offset, offset + size);
    while at < end {
        let piece = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        file.read_exact_at(&mut buffer[..piece], at)?;
        digest.update(&buffer[..piece]);
        at += piece as u64;
    }
    Ok(digest.finish())
}

/// The digest of a file's content, as in records.
pub fn content_digest(path: &Path) -> io::Result<[u8; 16]> {
    let mut file = trust::look::open(path)?;
    let (mut digest, mut buffer) = (ContentDigest::default(), vec![0; PIECE]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(digest.finish()),
            count => digest.update(&buffer[..count]),
        }
    }
}
