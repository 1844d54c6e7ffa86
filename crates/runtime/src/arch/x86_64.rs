//! Programs of x86-64.

/// The number in the header of a program.
pub const MACHINE: u16 = object::elf::EM_X86_64.0;

/// The name of the architecture.
pub const NAME: &str = "x86-64";
