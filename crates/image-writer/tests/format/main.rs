//! Tests of the format that write: a round trip works, and damage is refused.

extern crate snapboot_image_writer as image_writer;

mod answers;
mod tables;
mod validate;
