//! What the freezer knows of the inside of the C library, behind one interface. glibc is the only one so far; for another one a module
//! like [`glibc`] would be chosen here. What is done to its malloc goes through [`crate::allocator`]. (Inside of this crate `libc::...` is the crate of that name, this is `crate::libc`.)
#![allow(unsafe_code)]

mod glibc;

pub use glibc::*;
