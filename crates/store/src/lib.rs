//! The store: images by command, so that nobody needs to remember where an image lies and when it must be made again.
//!
//! [`Command`] says which words of a command line make the program that is frozen. [`Store`] knows where its [`Folder`] is, and
//! a folder which of its images fits a start ([`fit`]). A start that finds none asks for one ([`background`]); a builder makes it ([`build`]),
//! when the machine has nothing better to do ([`machine`]) and the limits of the start leave it room ([`room`]; until then it is put off, see [`PutOff`]), and keeps the store within its limit ([`limits`]). What came of the last time
//! is in [`attempt`], what changes from start to start in [`changes`]. Where shims lead is remembered ([`Shims`]). [`tools`] puts images in front of installed commands.
#![deny(missing_docs)]

pub mod attempt;
pub mod background;
pub mod build;
pub mod changes;
mod clock;
pub mod command;
pub mod fallback;
pub mod fit;
mod folder;
pub mod learn;
pub mod limits;
pub mod machine;
mod memory;
mod place;
mod put_off;
pub mod room;
mod saved;
mod shims;
mod sys;
pub mod tools;

pub use command::Command;
pub use folder::Folder;
pub use place::Store;
pub use put_off::PutOff;
pub use saved::{Effort, StartTimes};
pub use shims::Shims;
pub use sys::{execute, execute_open};
