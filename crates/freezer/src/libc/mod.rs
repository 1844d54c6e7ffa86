//! The freezer's knowledge of C library internals, behind one interface. Only glibc is supported; another library would
//! get a module like [`glibc`], selected here. Its malloc is adjusted through [`crate::allocator`]. (In this crate
//! `libc::...` is the crate of that name, and this module is `crate::libc`.)
#![allow(unsafe_code)]

mod glibc;

pub use glibc::*;
