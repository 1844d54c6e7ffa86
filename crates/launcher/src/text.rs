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
