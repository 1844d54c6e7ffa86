//! Names of the files that lie beside an image: IMAGE.seen, IMAGE.thaws.

use core::fmt::Write;

use crate::sys::{self, Fd};

/// The name of such a file, with a NUL.
///
/// It is large: what makes one is not inlined, or else the stack of every start would be larger, also of those that need none.
pub struct SidecarPath {
    bytes: [u8; 4096],
    length: usize,
}

impl SidecarPath {
    /// The name of the image followed by `suffix`. None when the image has no name any more, or one that is too long.
    pub fn beside(image: Fd, suffix: &str) -> Option<SidecarPath> {
        let mut link = SidecarPath { bytes: [0; 4096], length: 0 };
        write!(link, "/proc/self/fd/{}\0", image.0).ok()?;
        let mut name = SidecarPath { bytes: [0; 4096], length: 0 };
        name.length = sys::read_link(link.bytes(), &mut name.bytes).ok()?;
        if name.bytes().ends_with(b" (deleted)") {
            return None;
        }
        write!(name, "{suffix}\0").ok()?;
        Some(name)
    }

    /// Keeps the first `length` bytes only, and a NUL.
    pub fn cut(&mut self, length: usize) {
        self.bytes[length] = 0;
        self.length = length + 1;
    }

    /// The name, its NUL included.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Write for SidecarPath {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let free = self.bytes.get_mut(self.length..self.length + text.len()).ok_or(core::fmt::Error)?;
        free.copy_from_slice(text.as_bytes());
        self.length += text.len();
        Ok(())
    }
}
