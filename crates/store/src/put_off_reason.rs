//! Why an image is put off (put_off.rs): the machine is busy, has too little memory for it, or another machine makes it.

use std::fmt;

use serde::{Deserialize, Serialize};

const MB: u64 = 1 << 20;

/// Why an image is put off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Delay {
    /// The machine runs on battery.
    Battery,
    /// Little memory is left, or processes wait for it.
    Pressure,
    /// Less memory is free than an image needs.
    Memory {
        /// How much is free (bytes).
        free: u64,
        /// Of what.
        of: MemoryOf,
        /// How much it may need (bytes).
        needed: u64,
    },
    /// Memory ran short while an image was made.
    RanShort,
    /// Another machine makes it, and gives it to the remote store.
    MadeElsewhere,
}

/// What has the least free memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MemoryOf {
    /// The machine.
    Machine,
    /// A control group that this process is in.
    Group,
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Delay::Battery => f.write_str("the machine runs on battery"),
            Delay::Pressure => f.write_str("memory is short"),
            Delay::Memory { free, of, needed } => write!(
                f,
                "memory is short: {} MB {of} are free, and an image may need {} MB",
                free / MB,
                needed.div_ceil(MB)
            ),
            Delay::RanShort => f.write_str("memory ran short while an image was made"),
            Delay::MadeElsewhere => f.write_str("another machine is making it for the remote store"),
        }
    }
}

impl fmt::Display for MemoryOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MemoryOf::Machine => "of the machine's memory",
            MemoryOf::Group => "of the memory of its control group",
        })
    }
}
