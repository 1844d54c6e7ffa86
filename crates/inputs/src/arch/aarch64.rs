//! The CPU as an input, on aarch64: not yet. No image is made here, and one of x86-64 differs in all that it wants.

/// Whether images are made and thawed on this architecture.
pub const IS_SUPPORTED: bool = false;

/// A leaf and subleaf, and bits of its four registers.
pub type Bits = (u32, u32, [u32; 4]);

/// Nothing is recorded.
pub const FEATURES: [Bits; 0] = [];

/// There are no levels.
pub const LEVELS: [&[Bits]; 3] = [&[]; 3];

/// Reads leaves.
#[derive(Default)]
pub struct Cpu;

impl Cpu {
    /// A leaf that an image wants, of which this CPU has nothing.
    pub fn read(&mut self, _leaf: u32, _subleaf: u32) -> [u32; 4] {
        [0; 4]
    }
}

/// What a bit stands for is not known.
pub fn bit_name(_leaf: u32, _subleaf: u32, _register: usize, _bit: u32) -> Option<&'static str> {
    None
}
