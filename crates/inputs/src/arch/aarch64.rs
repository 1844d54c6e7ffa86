//! The CPU as an input, on aarch64: not supported yet. No image is made here, and an image of x86-64 never matches.

/// Whether images can be made and thawed on this architecture.
pub const IS_SUPPORTED: bool = false;

/// A leaf and subleaf, and bits of its four registers.
pub type Bits = (u32, u32, [u32; 4]);

/// Nothing is recorded.
pub const FEATURES: [Bits; 0] = [];

/// There are no levels.
pub const LEVELS: [&[Bits]; 3] = [&[]; 3];

/// Reads CPU leaves.
#[derive(Default)]
pub struct Cpu;

impl Cpu {
    /// The registers of a leaf: all zero, so the CPU has no feature that an image requires.
    pub fn read(&mut self, _leaf: u32, _subleaf: u32) -> [u32; 4] {
        [0; 4]
    }
}

/// The name of a feature bit: none is known.
pub fn bit_name(_leaf: u32, _subleaf: u32, _register: usize, _bit: u32) -> Option<&'static str> {
    None
}
