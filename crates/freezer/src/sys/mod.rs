//! All unsafe code of the freezer, except assembly ([`crate::arch`]) and C library internals ([`crate::libc`]): calls
//! into the C library and the kernel, entry points, memory.
#![allow(unsafe_code)]

mod account_hooks;
pub mod arena;
mod argv_buffer;
mod attribute_calls;
pub mod attributes;
pub mod channel;
mod cpython;
mod entry;
pub mod events;
mod exit;
mod file;
mod hash_seed;
pub mod image_memory;
mod layout;
pub mod libc_hooks;
mod locale_hooks;
mod locales;
mod on_demand;
mod process;
mod renewal;
mod ruby_code;
mod ruby_text;
mod setter_hooks;
pub mod sockets;

pub use argv_buffer::ArgvBuffer;
pub use file::*;
pub use process::*;
