//! Where the time of a start goes: measured from within and without, put together as a tree.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod tree;

pub use tree::{Advice, Kind, Node, Report, Start};
