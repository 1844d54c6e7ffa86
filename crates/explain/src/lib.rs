//! Where the time of a start goes: measured from within and without, put together as a tree.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod page;
mod spans;
mod trace;
mod tree;

pub use page::page;
pub use trace::trace;
pub use tree::{Advice, Kind, Node, Report, Start};
