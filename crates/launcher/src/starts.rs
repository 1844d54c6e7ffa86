//! Counts how often an image thaws and falls back, so that `snapboot inspect` can tell of one that never thaws.
//!
//! `snapboot freeze` has made the file for that, see docs/internals/image-format.md. It is nobody's input: whatever stands in the way, the start goes on
//! without a word. A thaw writes sixteen bytes in place. To append a byte, as for `--max-thaws`, would count exactly, and never end.

use core::fmt::{Display, Write};

use image::{Record, StartsHead};
use inputs::environment::value_of;
use linux_raw_sys::general::{O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK, O_RDWR, RLIMIT_FSIZE, S_IFMT, S_IFREG};

use crate::argument_block::Block;
use crate::sys::{self, Fd};
use crate::text::Text;

const TEXT_SIZE: usize = StartsHead::FILE_SIZE - StartsHead::SIZE;

/// Where the numbers begin that a thaw writes, and where they end: thaws, and fallbacks since.
const THAWS: core::ops::Range<usize> = 16..32;

/// Counts a start that thaws. `image_id`: see [`StartsHead::image`].
#[inline(never)]
pub fn count_thaw(image_id: u64, block: &Block) {
    with_file(image_id, block, |file, head| {
        head.thaws = head.thaws.wrapping_add(1);
        head.since = 0;
        let mut bytes = [0; StartsHead::SIZE];
        head.encode(&mut bytes);
        // That it fails is no matter, here and below.
        let _ = sys::write_at(file, &bytes[THAWS], THAWS.start as u64);
    });
}

/// Counts a start that falls back, and notes why.
#[inline(never)]
pub fn count_fallback(image_id: u64, block: &Block, reason: &impl Display) {
    with_file(image_id, block, |file, head| {
        let mut text = Text::<TEXT_SIZE>::new();
        let _ = write!(text, "{reason}");
        head.fallbacks = head.fallbacks.wrapping_add(1);
        head.since = head.since.wrapping_add(1);
        head.last = sys::now().unwrap_or(0);
        head.reason = text.bytes().len() as u64;
        let mut bytes = [0; StartsHead::FILE_SIZE];
        head.encode(&mut bytes);
        bytes[StartsHead::SIZE..][..text.bytes().len()].copy_from_slice(text.bytes());
        let _ = sys::write_at(file, &bytes, 0);
    });
}

/// Opens the file of an image and reads its head. Does nothing where there is none, or one that is not to be written.
fn with_file(image_id: u64, block: &Block, count: impl FnOnce(Fd, &mut StartsHead)) {
    let Some(path) = path(image_id, block) else { return };
    let Some(path) = path.complete() else { return };
    let Ok(file) = sys::open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) else { return };
    if let Some(mut head) = head_of(file, image_id) {
        count(file, &mut head);
    }
    sys::close(file);
}

fn head_of(file: Fd, image_id: u64) -> Option<StartsHead> {
    let status = sys::fstat(file).ok()?;
    let is_right = status.mode & S_IFMT == S_IFREG && status.size == StartsHead::FILE_SIZE as u64;
    // To write beyond the limit would be the end of this process.
    let [limit, _] = sys::limit(RLIMIT_FSIZE).ok()?;
    if !is_right || status.owner != sys::euid() || limit < status.size {
        return None;
    }
    let mut bytes = [0; StartsHead::SIZE];
    sys::read_at(file, &mut bytes, 0).ok().filter(|&size| size == bytes.len())?;
    Some(StartsHead::decode(&bytes)).filter(|head| head.magic == StartsHead::MAGIC && head.image == image_id)
}

/// Where the file would be, with a NUL. None where nothing is to be counted.
fn path(image_id: u64, block: &Block) -> Option<Text<512>> {
    let value = |name: &str| value_of(name.as_bytes(), block.environment());
    let (state, below) = match value(StartsHead::VARIABLE) {
        Some(state) => (state, ""),
        None => {
            let absolute = |name| value(name).filter(|value| value.starts_with(b"/"));
            StartsHead::PLACES.into_iter().find_map(|(name, below)| Some((absolute(name)?, below)))?
        }
    };
    let mut path = Text::new();
    path.push(state);
    let _ = write!(path, "{below}/starts/{image_id:016x}\0");
    state.starts_with(b"/").then_some(path)
}
