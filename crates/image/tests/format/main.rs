//! Tests of the format: what a head may contain, and that the document agrees with the code. Tests that write tables
//! are in image-writer.

extern crate snapboot_image as image;

mod document;
mod format_document;
mod head;
mod sources;
