//! What an image depends on: facts about machine, environment and files, and how they are compared.
//!
//! The freezer records these facts, the command completes them, the launcher compares them. Everything here
//! works without an operating system, so that all three use the same code.
#![no_std]
#![deny(unsafe_code)]
#![deny(missing_docs)]

mod arch;
pub mod attributes;
pub mod cpu;
pub mod environment;
pub mod facts;
pub mod lookups;
pub mod on_stale;
pub mod place;
pub mod secret;
