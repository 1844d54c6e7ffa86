//! Tests of the format: what is written is read back, what is damaged is refused, and the document says what the code does.

extern crate snapboot_image as image;

mod answers;
mod document;
mod format_document;
mod head;
mod tables;
mod validate;
