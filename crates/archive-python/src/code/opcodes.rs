//! The format of stored code: a head, and an instruction for each object, after those of the objects that it refers to.
//!
//! An instruction is an opcode (one byte), a size (32 bits) and that many bytes; for a constant, instead of size and bytes, its index in
//! `Types::constants`. Objects are numbered in the order of their instructions; the last is the module's code. Objects refer to others by
//! number, 16 bits each: a tuple to its items. Code has first its fields that are no objects, then the numbers of the objects of
//! `Layout::objects`, and then its `Layout::tail`, to which the size applies. All numbers are little-endian.

/// The kind of the object that an instruction makes.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum Opcode {
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

impl Opcode {
    /// The opcode with that number.
    pub fn from_number(number: u8) -> Option<Self> {
        use Opcode::{Ascii, Bytes, Code, Constant, Name, Other, Text, Tuple};
        [Name, Ascii, Text, Bytes, Tuple, Code, Constant, Other].get(usize::from(number)).copied()
    }
}

/// The number that stands for the path of the module's file, which is none of the objects.
pub const PATH: u16 = u16::MAX;

/// The head, before the instructions.
#[derive(Clone, Copy)]
pub struct Head {
    /// The memory that the objects take (bytes).
    pub memory: u32,
    /// How many objects there are.
    pub objects: u32,
}

impl Head {
    pub fn followed_by(self, instructions: Vec<u8>) -> Vec<u8> {
        let fields = [self.memory, self.objects];
        let mut bytes: Vec<u8> = fields.iter().flat_map(|field| field.to_le_bytes()).collect();
        bytes.extend(instructions);
        bytes
    }

    /// Parses the head. Returns it with the instructions after it.
    pub fn read(bytes: &[u8]) -> Option<(Self, Instructions<'_>)> {
        let mut instructions = Instructions(bytes);
        let [memory, objects] = [instructions.number()?, instructions.number()?];
        Some((Self { memory, objects }, instructions))
    }
}

/// Unread instructions.
pub struct Instructions<'a>(&'a [u8]);

impl<'a> Instructions<'a> {
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
