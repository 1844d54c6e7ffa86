//! The CPU as an input, on aarch64: not yet. No image is made here, and one of x86-64 differs in all that it wants.

/// Whether images are made and thawed on this architecture.
pub const IS_SUPPORTED: bool = false;

/// Nothing is recorded.
pub const LEAVES: [(u32, u32, [u32; 4]); 0] = [];

/// There is no baseline.
pub const BASELINE: [(u32, u32, [u32; 4]); 0] = [];

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
