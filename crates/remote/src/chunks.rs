//! Chunks: the pieces of an image that travel by themselves, each under the digest of its content, compressed.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use failure::{Failure, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::CHUNKS;

/// The size of all chunks of an image but the last (bytes). Two images have few pages in common that are equal (decision 96), so what counts is
/// the number of requests, and how much a reader fetches before it sees whether an image is for it.
pub const SIZE: usize = 256 << 10;
/// How much a chunk is compressed: zstd's default.
const LEVEL: i32 = 3;

/// Bytes that lie in the remote store as chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunked {
    /// How many there are.
    pub size: u64,
    /// The digests of the chunks, in order. All but the last have [`SIZE`] bytes.
    pub chunks: Vec<String>,
}

/// A chunk of such bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// The digest of its content.
    pub digest: &'a str,
    /// Where it begins (bytes).
    pub offset: u64,
    /// How long it is (bytes).
    pub length: usize,
}

impl Chunked {
    /// Its chunks.
    pub fn iter(&self) -> impl Iterator<Item = Chunk<'_>> {
        let offsets = (0..).map(|number: u64| number * SIZE as u64);
        self.chunks.iter().zip(offsets).map(|(digest, offset)| Chunk {
            digest,
            offset,
            length: SIZE.min(usize::try_from(self.size - offset).unwrap_or(SIZE)),
        })
    }

    /// Whether it has as many chunks as its size says, and their digests are digests: they become paths.
    pub fn is_consistent(&self) -> bool {
        let is_digest =
            |text: &String| text.len() == 64 && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        self.size > 0
            && self.size.div_ceil(SIZE as u64) == self.chunks.len() as u64
            && self.chunks.iter().all(is_digest)
    }
}

/// The SHA-256 of these bytes, in hexadecimal digits.
pub fn hex_digest(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The path of a chunk in the remote store.
pub fn path_of(digest: &str) -> String {
    format!("{CHUNKS}{}/{digest}", &digest[..2])
}

/// Calls `each` with the content of each chunk of a file, in order.
pub fn cut(file: &File, size: u64, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let cannot =
        |error: io::Error| Failure::failed(format!("cannot read what is to be pushed: {}.", failure::reason(&error)));
    let (mut buffer, mut at) = (vec![0; SIZE], 0);
    while at < size {
        let length = SIZE.min(usize::try_from(size - at).unwrap_or(SIZE));
        file.read_exact_at(&mut buffer[..length], at).map_err(cannot)?;
        each(&buffer[..length])?;
        at += length as u64;
    }
    Ok(())
}

/// A chunk as it is stored.
pub fn pack(content: &[u8]) -> Result<Vec<u8>> {
    zstd::bulk::compress(content, LEVEL)
        .map_err(|error| Failure::failed(format!("cannot compress a chunk: {}.", failure::reason(&error))))
}

/// The most bytes that a stored chunk may have.
pub fn most_bytes_of(length: usize) -> usize {
    zstd::zstd_safe::compress_bound(length)
}

/// The content of a stored chunk. Fails if it is not the one of this digest and length.
pub fn unpack(stored: &[u8], digest: &str, length: usize) -> Result<Vec<u8>> {
    let wrong = |found: String| {
        Failure::failed(format!(
            "the chunk {digest} should have {length} bytes and this digest, and {found}: it was damaged or exchanged in the remote store. \
             snapboot remote verify finds all such chunks."
        ))
    };
    let content = zstd::bulk::decompress(stored, length).map_err(|_| wrong("cannot be decompressed".to_owned()))?;
    let found = hex_digest(&content);
    if content.len() != length || found != digest {
        return Err(wrong(format!("has {} bytes and the digest {found}", content.len())));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_is_what_was_cut() {
        let mut file = tempfile::tempfile().unwrap();
        let content: Vec<u8> = (0..SIZE * 2 + 7).map(|at| (at / 11) as u8).collect();
        io::Write::write_all(&mut file, &content).unwrap();
        let mut back = Vec::new();
        cut(&file, content.len() as u64, |chunk| {
            let stored = pack(chunk)?;
            assert!(stored.len() <= most_bytes_of(chunk.len()));
            back.extend(unpack(&stored, &hex_digest(chunk), chunk.len())?);
            Ok(())
        })
        .unwrap();
        assert!(back == content);
    }

    #[test]
    fn a_chunk_that_was_changed_is_refused() {
        let (content, other) = (vec![7; 5000], vec![8; 5000]);
        let digest = hex_digest(&content);
        let stored = pack(&content).unwrap();
        assert!(unpack(&stored, &digest, 5000).is_ok());
        for (stored, length) in [
            (pack(&other).unwrap(), 5000),
            (stored.clone(), 4999),
            (stored.clone(), 5001),
            (stored[..stored.len() - 1].to_vec(), 5000),
            (Vec::new(), 5000),
            (content.clone(), 5000),
        ] {
            assert!(unpack(&stored, &digest, length).is_err(), "{length}");
        }
    }
}
