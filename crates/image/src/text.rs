//! Strings in tables.

use record::Scalar;

/// A string in the strings section. A NUL follows each string, so it can be passed to the kernel in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// Offset in the strings section.
    pub offset: u32,
    /// Length in bytes, without the NUL.
    pub length: u32,
}

impl Scalar for Text {
    const SIZE: usize = 8;
    fn get(bytes: &[u8]) -> Self {
        Text { offset: u32::get(bytes), length: u32::get(&bytes[4..]) }
    }
    fn put(&self, bytes: &mut [u8]) {
        self.offset.put(bytes);
        self.length.put(&mut bytes[4..]);
    }
}
