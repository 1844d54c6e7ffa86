//! Writes what the crate `image` reads: the tables of an image and the answers of directories.
//!
//! It is a separate crate because writing needs a heap, and the launcher, which only reads, has none.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

extern crate alloc;

mod answers;
mod tables;

pub use answers::AnswersWriter;
pub use tables::TablesWriter;
