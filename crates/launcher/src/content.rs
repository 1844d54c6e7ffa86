//! What is in a file, as a digest.

use image::ContentDigest;
use inputs::cgroups_and_mounts::Sieve;

use crate::sys::{self, Fd};

/// Reads a file from its start to its end. Returns the digest, and how much there was (bytes).
pub fn digest(file: Fd) -> sys::Result<([u8; 16], u64)> {
    let mut digest = ContentDigest::default();
    let size = read(file, |piece| digest.update(piece))?;
    Ok((digest.finish(), size))
}

/// What counts in a file of the kernel's.
#[inline(never)]
pub fn sieved(path: &[u8], file: Fd) -> sys::Result<[u8; 16]> {
    let mut sieve = Sieve::for_path(path);
    read(file, |piece| sieve.update(piece))?;
    Ok(sieve.finish())
}

/// Passes all of a file on, piece by piece. Returns how much there was (bytes).
///
/// Not inlined: its buffer would make the stack of every start larger.
#[inline(never)]
fn read(file: Fd, mut piece: impl FnMut(&[u8])) -> sys::Result<u64> {
    let (mut buffer, mut size) = ([0; 8192], 0);
    loop {
        match sys::read_at(file, &mut buffer, size)? {
            0 => return Ok(size),
            count => {
                piece(&buffer[..count]);
                size += count as u64;
            }
        }
    }
}
