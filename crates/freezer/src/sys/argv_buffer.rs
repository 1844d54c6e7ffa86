//! A buffer in an object of the front end's language, to which a thaw writes its arguments and its environment. Reading
//! /proc takes longer than everything else that a front end does with them.

use core::ops::Range;
use core::slice;

use image::Handover;

/// Address and size of the buffer. The front end never frees it.
///
/// A thaw writes the size of the arguments (u16, little endian), the size of the environment, and then both, with a NUL
/// between two strings. If they do not fit, the buffer stays all zeros, and the front end reads /proc.
#[derive(Clone, Copy)]
pub struct ArgvBuffer {
    /// Its address.
    pub address: u64,
    /// Its size (bytes).
    pub size: u64,
}

const SIZES: usize = 2 * size_of::<u16>();

impl ArgvBuffer {
    /// Call it in the thawed process, before the launcher's leftovers are unmapped.
    pub fn fill(self, handover: &Handover) {
        let arguments = strings(handover.arguments_start..handover.arguments_end);
        let environment = strings(handover.environment_start..handover.environment_end);
        let (Ok(arguments_size), Ok(environment_size)) =
            (u16::try_from(arguments.len()), u16::try_from(environment.len()))
        else {
            return;
        };
        if (SIZES + arguments.len() + environment.len()) as u64 > self.size {
            return;
        }
        // SAFETY: the front end reserved these bytes for this, and reads them only after it resumes.
        let buffer = unsafe { slice::from_raw_parts_mut(self.address as *mut u8, self.size as usize) };
        let parts = [&arguments_size.to_le_bytes(), &environment_size.to_le_bytes(), arguments, environment];
        let mut end = 0;
        for part in parts {
            buffer[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
    }
}

/// The strings in a range, without the last NUL.
fn strings(place: Range<u64>) -> &'static [u8] {
    // SAFETY: the launcher wrote strings there, and they stay unchanged until the front end resumes.
    unsafe { slice::from_raw_parts(place.start as *const u8, (place.end - place.start).saturating_sub(1) as usize) }
}
