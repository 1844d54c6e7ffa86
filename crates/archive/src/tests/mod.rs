mod document;
mod look_up;
mod support;
