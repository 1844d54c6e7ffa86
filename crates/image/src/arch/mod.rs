//! The part of an image that is specific to an architecture: `Registers` and their section.
//!
//! A record is data, so every machine can read those of all architectures. What has no module in its path is that of
//! the machine this code runs on.

use crate::{Error, Record, Tables};

pub mod aarch64;
pub mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::*;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

/// The architecture of the process in an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// x86-64.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
}

impl Architecture {
    /// That of an image, by its registers.
    pub fn from_tables(tables: &Tables<'_>) -> Result<Architecture, Error> {
        if !tables.bytes(aarch64::SECTION).is_empty() {
            return Ok(Architecture::Aarch64);
        }
        match tables.bytes(x86_64::SECTION) {
            [] => Err(Error::Missing { what: x86_64::SECTION.name() }),
            _ => Ok(Architecture::X86_64),
        }
    }

    /// Its name, as `uname -m` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Architecture::X86_64 => x86_64::NAME,
            Architecture::Aarch64 => aarch64::NAME,
        }
    }

    /// Whether this code runs on it.
    pub fn is_here(self) -> bool {
        self.name() == NAME
    }

    /// End of the address space of its processes.
    pub fn address_end(self) -> u64 {
        match self {
            Architecture::X86_64 => x86_64::ADDRESS_END,
            Architecture::Aarch64 => aarch64::ADDRESS_END,
        }
    }

    /// Stack pointer and next instruction of an image of this architecture.
    pub fn resume_at(self, tables: &Tables<'_>) -> Result<(u64, u64), Error> {
        Ok(match self {
            Architecture::X86_64 => tables.one::<x86_64::Registers>(x86_64::SECTION)?.resume_at(),
            Architecture::Aarch64 => tables.one::<aarch64::Aarch64Registers>(aarch64::SECTION)?.resume_at(),
        })
    }
}

// Told apart by more than the number of their section.
const _: () = assert!(x86_64::Registers::SIZE != aarch64::Aarch64Registers::SIZE);
