mod batch;
mod bounds;
mod damage;
mod document;
#[path = "../../../image/tests/format/format_document.rs"]
mod format_document;
mod locations;
mod look_up;
mod opening;
mod session;
#[path = "../../../image/tests/format/sources.rs"]
mod sources;
mod support;
mod tree;
mod writers;
