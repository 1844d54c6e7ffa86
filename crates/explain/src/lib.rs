//! Where the time of a start goes: measured from inside and outside, combined into a tree.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arch;
mod archived;
mod count;
mod events;
mod json;
mod measure;
mod merge;
mod outside;
mod page;
mod saved_report;
mod spans;
mod start_tree;
mod thaw;
mod tree;

pub use archived::{NoArchive, WITH_ARCHIVE};
pub use events::has_run;
pub use json::json;
pub use measure::{Measurement, Subject, FILE};
pub use page::page;
pub use saved_report::saved_report;
pub use start_tree::EXECUTED;
pub use tree::{Advice, Kind, Node, Report, Start};
