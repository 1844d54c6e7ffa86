//! Decides what an image depends on, and what cannot be frozen. Each fact about a start is an input, is renewed in each
//! thaw, or makes no difference.
//!
//! [`events`] holds what sensors recorded of a boot's reads, parsed from [`entries`]. [`Reads`](reads::Reads) collects
//! these, except reads of which known readers keep nothing ([`exceptions`]) and settings of a runtime that are left to
//! starts ([`renewals`]). [`evidence`] adjusts them by what other starts have shown. An image compares the rest.
//! [`environment_inputs`] writes the variables among them, out of those that [`environment`] showed the boot
//! ([`variables`] selects these, [`secrets`] makes placeholders for secrets). [`decisions`] and [`depends`] explain an
//! image to the user, [`findings`] a refusal.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod decisions;
pub mod depends;
pub mod entries;
pub mod environment;
pub mod environment_inputs;
pub mod events;
pub mod evidence;
pub mod exceptions;
pub mod findings;
pub mod reads;
pub mod renewals;
pub mod secret_names;
pub mod secrets;
pub mod source_locations;
pub mod variables;
