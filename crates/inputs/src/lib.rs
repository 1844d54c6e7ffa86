//! The inputs of an image: machine, environment, facts, files and directories, and how they are compared.
//!
//! Each kind of input has a module with its record, its comparison and its messages. [`differences`] runs all of them,
//! and decides for everyone whether an image is stale. The crate needs neither an operating system nor a heap, so the
//! command shares it with the launcher, which runs below any library; both implement the system calls of
//! [`system::System`] and [`facts::Kernel`].
#![no_std]
#![deny(unsafe_code)]
#![deny(missing_docs)]

mod arch;
pub mod attributes;
pub mod cgroups_and_mounts;
pub mod cpu;
pub mod differences;
pub mod directories;
pub mod environment;
mod errno;
pub mod facts;
pub mod files;
pub mod lookups;
pub mod on_stale;
pub mod secret;
pub mod system;
mod words;

pub use differences::Difference;
pub use errno::Errno;
pub use words::Words;
