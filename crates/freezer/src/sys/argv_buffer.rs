//! A buffer in the front end's own memory, an object of its language, from which a thawed process reads the arguments and the
//! environment that it was started with. Reading /proc takes longer than all else that a front end does with them.

use core::ops::Range;
use core::slice;

use image::Handover;

/// Where the buffer is: its address, and its size (bytes). The front end keeps it for good.
///
/// A thaw fills it with the size of the arguments (u16, little endian), that of the environment, and then both, a NUL between two
/// strings. Where they are too many it stays as it is, all zeros, and the front end reads /proc.
#[derive(Clone, Copy)]
pub struct ArgvBuffer {
    /// Its address.
    pub address: u64,
    /// Its size (bytes).
    pub size: u64,
}

const SIZES: usize = 2 * size_of::<u16>();

impl ArgvBuffer {
    /// To be called in the thawed process, before anything of what the launcher has left is dropped.
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
        // SAFETY: the front end has reserved these bytes for this, and nothing reads them before it goes on.
        let buffer = unsafe { slice::from_raw_parts_mut(self.address as *mut u8, self.size as usize) };
        let parts = [&arguments_size.to_le_bytes(), &environment_size.to_le_bytes(), arguments, environment];
        let mut end = 0;
        for part in parts {
            buffer[end..end + part.len()].copy_from_slice(part);
            end += part.len();
        }
    }
}

/// The strings that lie there, without the last NUL.
fn strings(place: Range<u64>) -> &'static [u8] {
    // SAFETY: the launcher has put strings there, which stay as they are until the front end goes on.
    unsafe { slice::from_raw_parts(place.start as *const u8, (place.end - place.start).saturating_sub(1) as usize) }
}
