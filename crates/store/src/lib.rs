//! The store: images by command, so that nobody needs to remember where an image lies and when it must be made again.
//!
//! [`Command`] decides which words of a command line name the program that is frozen. [`Store`] finds its [`Folder`], and a folder finds
//! the image that fits a start ([`fit`]). A start that finds none asks for one ([`background`]). A builder makes it ([`build`]) when the
//! machine is not busy ([`machine`]) and the limits of the start leave it room ([`room`]); until then the image is postponed ([`PutOff`]).
//! The builder also keeps the store within its limit ([`limits`]). [`attempt`] records the outcome of the last attempt, and [`changes`] the
//! inputs that change from start to start. [`remote`] asks a store that machines share, also for images
//! elsewhere ([`SharedFile`]), as the environment or [`remote_settings`] name it, and counts what that is good for ([`RemoteMetrics`]). [`Shims`] remembers where shims lead. [`tools`] puts
//! images in front of installed commands, and in the place of those that do not look around there ([`own_place`]).
#![deny(missing_docs)]

pub mod attempt;
pub mod background;
pub mod build;
pub mod builder;
pub mod builder_limits;
mod builder_memory;
pub mod busy;
pub mod changes;
mod clock;
pub mod command;
pub mod eviction;
pub mod fallback;
pub mod fit;
mod folder;
pub mod hash_seed;
pub mod learn;
mod location;
mod no_image_reason;
mod own_place;
mod put_off;
mod put_off_reason;
pub mod remote;
mod remote_file;
mod remote_metrics;
pub mod remote_settings;
mod shims;
mod sys;
mod time_saved;
pub mod tools;

pub use command::Command;
pub use folder::{Folder, Lock};
pub use location::Store;
pub use no_image_reason::{Ended, Fruitless, NoImageReason};
pub use put_off::PutOff;
pub use put_off_reason::{Delay, MemoryOf};
pub use remote_file::{PulledFile, SharedFile};
pub use remote_metrics::RemoteMetrics;
pub use shims::Shims;
pub use sys::{execute, execute_open};
pub use time_saved::{Effort, StartTimes};
