//! Tests of the format that write: what is written is read back, and what is damaged is refused.

extern crate snapboot_image_writer as image_writer;

mod answers;
mod tables;
mod validate;
