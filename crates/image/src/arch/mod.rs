//! What an image holds only for one architecture.
//!
//! There are images of x86-64 processes so far. A record is data: every machine can read it, whatever it can run.

mod x86_64;

pub use x86_64::Registers;
