//! Tests of the format: what a head may hold, and that the document says what the code does. Those that write tables are with
//! image-writer.

extern crate snapboot_image as image;

mod document;
mod format_document;
mod head;
