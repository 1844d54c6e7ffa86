//! Whether the data pages are what was written, for those who ask: reading all of them costs more than a thaw.

use image::{settings_flag, ContentDigest, Error, Head, Settings};

use crate::argument_block::Block;
use crate::reason::Reason;
use crate::sys::{self, Fd};

/// How much is read at a time (bytes): half of the launcher's stack.
const PIECE: usize = 32 * 1024;

/// Whether the image wants it (`snapboot freeze --check-pages`), or the environment (SNAPBOOT_VERIFY=1).
pub fn are_to_be_checked(settings: &Settings, block: &Block) -> bool {
    settings.flags & settings_flag::CHECK_PAGES != 0 || block.asks_for(b"SNAPBOOT_VERIFY")
}

/// Reads and digests all data pages; what cannot be read or differs is the reason for the fallback.
///
/// Not inlined: its buffer would make the stack of every start larger.
#[inline(never)]
pub fn check(file: Fd, head: &Head) -> Result<(), Reason> {
    let (mut digest, mut buffer) = (ContentDigest::default(), [0; PIECE]);
    let (mut at, end) = (head.pages_offset, head.pages_offset + head.pages_size);
    while at < end {
        let size = PIECE.min((end - at) as usize);
        match sys::read_at(file, &mut buffer[..size], at) {
            Ok(0) => break,
            Ok(count) => {
                digest.update(&buffer[..count]);
                at += count as u64;
            }
            Err(errno) => return Err(Reason::new("cannot read the data pages").errno(errno)),
        }
    }
    if digest.finish() == head.pages_digest {
        return Ok(());
    }
    Err(Reason::image(Error::Damaged { what: "data pages" }))
}
