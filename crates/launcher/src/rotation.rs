//! Rotation: an image that was used long enough, or often enough, is stale.

use image::{Record, Settings, ThawsHead};
use linux_raw_sys::general::{O_APPEND, O_CLOEXEC, O_NOFOLLOW, O_NONBLOCK, O_RDWR, S_IFMT, S_IFREG};

use crate::reason::Reason;
use crate::sidecar::SidecarPath;
use crate::sys::{self, Fd};

/// Compares the image's age with the maximum. If the clock is behind the time when the image was made, the image is stale, as its age is unknown.
///
/// `is_of_store`: whether the store has made the image. The store gives an age only to images that lack something.
pub fn check_age(settings: &Settings, is_of_store: bool) -> Result<(), Reason> {
    if settings.max_age == 0 {
        return Ok(());
    }
    let now = sys::now().map_err(|errno| Reason::new("cannot read the clock").errno(errno))?;
    match u64::try_from(now.saturating_sub(settings.made)) {
        Err(_) => {
            Err(Reason::new("stale: the clock is behind the time when the image was made, so its age is unknown"))
        }
        Ok(age) if age > settings.max_age && is_of_store => {
            Err(Reason::new("stale: the image lacks something, and is due to be made again"))
        }
        Ok(age) if age > settings.max_age => Err(Reason::new("stale: the image is older than --max-age allows")),
        Ok(_) => Ok(()),
    }
}

/// Counts this thaw in IMAGE.thaws, if there is a limit. `image_id` tells whether that file belongs to this image.
pub fn count_thaw(settings: &Settings, image: Fd, image_id: u64) -> Result<(), Reason> {
    match settings.max_thaws {
        0 => Ok(()),
        most => count_up_to(most, image, image_id),
    }
}

/// A thaw that cannot be counted might be one too many.
#[inline(never)]
fn count_up_to(most: u64, image: Fd, image_id: u64) -> Result<(), Reason> {
    let uncounted = Reason::new(
        "stale: the thaws of the image cannot be counted, because IMAGE.thaws is missing or cannot be written",
    );
    let name = SidecarPath::beside(image, ".thaws").ok_or(uncounted)?;
    let file = sys::open(name.bytes(), O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        .map_err(|errno| uncounted.errno(errno))?;
    let number = number_of_thaw(most, file, image_id);
    sys::close(file);
    match number? {
        number if number > most => Err(Reason::new("stale: the image was thawed as often as --max-thaws allows")),
        _ => Ok(()),
    }
}

/// Appends a byte and tells which one it is, counted from 1. Of thaws at the same time each gets another one: where an appended
/// byte comes to lie, and where its descriptor is then, the kernel settles in one step. Beyond `most` nothing is appended.
fn number_of_thaw(most: u64, file: Fd, image_id: u64) -> Result<u64, Reason> {
    const HEAD: u64 = ThawsHead::SIZE as u64;
    let failed = |errno| Reason::new("stale: the thaws of the image cannot be counted in IMAGE.thaws").errno(errno);
    let status = sys::fstat(file).map_err(failed)?;
    let is_own = status.owner == 0 || status.owner == sys::euid();
    let mut bytes = [0; ThawsHead::SIZE];
    let is_whole = sys::read_at(file, &mut bytes, 0) == Ok(bytes.len());
    let head = ThawsHead::decode(&bytes);
    let is_counter = is_whole && head.magic == ThawsHead::MAGIC && head.image == image_id;
    if !is_own || status.mode & S_IFMT != S_IFREG || !is_counter {
        return Err(Reason::new("stale: IMAGE.thaws does not count this image's thaws, or belongs to another user"));
    }
    if status.size - HEAD >= most {
        return Ok(most + 1);
    }
    sys::write_all(file, &[1]).map_err(failed)?;
    Ok(sys::position(file).map_err(failed)?.saturating_sub(HEAD))
}
