//! Where the time of a start goes: measured from inside and outside, combined into a tree.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arch;
mod archived;
mod build;
mod count;
mod events;
mod measure;
mod merge;
mod outside;
mod page;
mod saved;
mod spans;
mod thaw;
mod trace;
mod tree;

pub use archived::{NoArchive, WITH_ARCHIVE};
pub use build::EXECUTED;
pub use events::has_run;
pub use measure::{Measurement, Subject, FILE};
pub use page::page;
pub use saved::saved;
pub use trace::trace;
pub use tree::{Advice, Kind, Node, Report, Start};
