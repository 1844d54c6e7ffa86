//! Where the time of a start goes: measured from within and without, put together as a tree.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arch;
mod build;
mod count;
mod events;
mod measure;
mod merge;
mod tree;

pub use measure::{Measurement, Subject};
pub use tree::{Advice, Kind, Node, Report, Start};
