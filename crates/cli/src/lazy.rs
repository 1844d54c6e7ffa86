//! `snapboot run --lazy`: an ordinary start of a Python program that imports modules when they are used.

use std::ffi::OsString;

use failure::{Failure, Result};
use runtime::search_path;
use store::command::BootArchive;
use store::{Command, Shims, Store};

use crate::ordinary;

/// Read and taken out of the environment by `sitecustomize.py` of the Python package `snapboot`.
const VARIABLE: &str = "SNAPBOOT_LAZY";

/// Becomes the program; returns only when that fails. `filter`: which modules may be imported lazily.
pub fn main(words: &[OsString], filter: &str) -> Result<u8> {
    let store = Store::find();
    let shims = store.as_ref().map(Shims::of);
    let line =
        Command::split(words, &search_path(), shims.as_ref()).ok().filter(|line| line.archive == BootArchive::Python);
    let Some(line) = line else {
        return Err(Failure::refusal(format!(
            "--lazy is for commands that CPython runs, with its module site and its environment, and {} is none. Leave out --lazy.",
            words[0].display()
        )));
    };
    // One that is empty could not be told from one that is not there.
    std::env::set_var(VARIABLE, if filter.is_empty() { "*" } else { filter });
    ordinary::start(&line.program, words, line.archive)
}
