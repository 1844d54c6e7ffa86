//! What is written of code: a head, and a note for each object, after those of the objects that it refers to.
//!
//! A note is a byte that says what follows (and, by its highest bit, whether that is needed only until the module has run), a size (32 bits) and
//! so many bytes; a constant has its place among `Types::constants` instead.
//! Objects are numbered in the order of their notes, the last is the module's code. What refers to others has their numbers, 16 bits each: a
//! tuple those of its items; code, after what describes it without being an object, those of the objects of `Layout::objects`, and then its
//! `Layout::tail`, which the size is of. All numbers are little-endian.

/// What a note is of.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Note {
    /// An interned string, in UTF-8.
    Name,
    /// A string of ASCII, two letters at least.
    Ascii,
    /// Any other string, in UTF-8.
    Text,
    /// Two bytes at least.
    Bytes,
    Tuple,
    Code,
    Constant,
    /// What marshal has written.
    Other,
}

impl Note {
    /// The one of that number.
    pub fn of(number: u8) -> Option<Self> {
        use Note::{Ascii, Bytes, Code, Constant, Name, Other, Text, Tuple};
        [Name, Ascii, Text, Bytes, Tuple, Code, Constant, Other].get(usize::from(number)).copied()
    }
}

/// The bit of a note's first byte that says that its object is one of `bodies`.
pub const PASSING: u8 = 0x80;

/// The number that stands for the path of the module's file, which is none of the objects.
pub const PATH: u16 = u16::MAX;

/// What stands before the notes.
#[derive(Clone, Copy)]
pub struct Head {
    /// The memory that the objects take (bytes), but for those of bodies, and that of those.
    pub memory: u32,
    pub passing: u32,
    /// How many objects there are, and how many of them are code.
    pub objects: u32,
    pub codes: u32,
    /// See `versions`. 0 where code has no numbers.
    pub version_place: i32,
}

impl Head {
    pub fn followed_by(self, notes: Vec<u8>) -> Vec<u8> {
        let fields = [self.memory, self.passing, self.objects, self.codes, self.version_place as u32];
        let mut bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        bytes.extend(notes);
        bytes
    }

    /// The head, and the notes behind it.
    pub fn read(bytes: &[u8]) -> Option<(Self, Notes<'_>)> {
        let mut notes = Notes(bytes);
        let [memory, passing, objects, codes] = [notes.number()?, notes.number()?, notes.number()?, notes.number()?];
        let version_place = notes.number()? as i32;
        Some((Self { memory, passing, objects, codes, version_place }, notes))
    }
}

/// Notes that are still to be read.
pub struct Notes<'a>(&'a [u8]);

impl<'a> Notes<'a> {
    /// The next bytes.
    pub fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    /// The next 32 bits.
    pub fn number(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
