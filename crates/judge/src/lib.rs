//! Decides what an image depends on: of each fact about a start, whether it is an input, is renewed in each thaw, or makes no difference; and what
//! cannot be frozen.
//!
//! [`events`] says what sensors have seen a boot read, in [`entries`]. [`Reads`](reads::Reads) gathers that, less what known readers keep nothing of
//! ([`exceptions`]) and the settings of a runtime that are left to starts ([`renewals`]); [`evidence`] changes it by what other starts have shown. What is
//! left, the image compares: [`environment_inputs`] writes that down, of the variables that [`environment`] has shown the boot
//! ([`variables`] says which, [`secrets`] what it has in the place of secrets). [`decisions`] and [`depends`] tell people, [`findings`] why not.
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
pub mod places;
pub mod reads;
pub mod renewals;
pub mod secret_names;
pub mod secrets;
pub mod variables;
