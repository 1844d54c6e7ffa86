//! What is in a file, as a digest.

use image::ContentDigest;

use crate::sys::{self, Fd};

/// Reads a file from its start to its end. Returns the digest, and how much there was (bytes).
///
/// Not inlined: its buffer would make the stack of every start larger.
#[inline(never)]
pub fn digest(file: Fd) -> sys::Result<([u8; 16], u64)> {
    let (mut digest, mut buffer, mut size) = (ContentDigest::default(), [0; 8192], 0);
    loop {
        match sys::read_at(file, &mut buffer, size)? {
            0 => return Ok((digest.finish(), size)),
            count => {
                digest.update(&buffer[..count]);
                size += count as u64;
            }
        }
    }
}
