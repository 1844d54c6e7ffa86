//! Programs of aarch64.

/// The number in the header of a program.
pub const MACHINE: u16 = object::elf::EM_AARCH64.0;

/// The name of the architecture.
pub const NAME: &str = "aarch64";
