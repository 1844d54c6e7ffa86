//! Text that is put together without a heap.

use core::fmt::{self, Write};

/// Up to `MAX` bytes. What does not fit is cut.
pub struct Text<const MAX: usize> {
    bytes: [u8; MAX],
    length: usize,
    is_cut: bool,
}

impl<const MAX: usize> Text<MAX> {
    /// An empty one.
    pub const fn new() -> Self {
        Text { bytes: [0; MAX], length: 0, is_cut: false }
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let taken = bytes.len().min(MAX - self.length);
        self.bytes[self.length..self.length + taken].copy_from_slice(&bytes[..taken]);
        self.length += taken;
        self.is_cut |= taken < bytes.len();
    }

    /// What was written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Replaces what a terminal would obey, except a newline at the end: names of files and variables may be anybody's.
    pub fn make_harmless(&mut self) {
        let end = self.length - usize::from(self.bytes().ends_with(b"\n"));
        for at in 0..end {
            let after = at.checked_sub(1).map(|before| self.bytes[before]);
            // The last one of those that UTF-8 has in two bytes: the controls from U+0080 on.
            let is_second = after == Some(0xc2) && (0x80..0xa0).contains(&self.bytes[at]);
            if is_second {
                self.bytes[at - 1] = b'?';
            }
            if self.bytes[at] < b' ' || self.bytes[at] == 0x7f || is_second {
                self.bytes[at] = b'?';
            }
        }
    }

    /// What was written; None when something did not fit.
    pub fn complete(&self) -> Option<&[u8]> {
        (!self.is_cut).then_some(self.bytes())
    }
}

impl<const MAX: usize> Write for Text<MAX> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}
