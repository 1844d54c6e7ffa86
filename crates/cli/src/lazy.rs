//! `snapboot run --lazy`: an ordinary start of a Python program that imports modules when they are used.

use std::ffi::OsString;

use failure::{Failure, Result};
use runtime::{language_of, search_path, Language, Main};
use store::command::BootArchive;
use store::{Command, Shims, Store};

use crate::{ordinary, run};

/// Read and taken out of the environment by `sitecustomize.py` of the Python package `snapboot`.
const VARIABLE: &str = "SNAPBOOT_LAZY";

/// Becomes the program; returns only when that fails. `filter`: which modules may be imported lazily.
pub fn main(words: &[OsString], filter: &str) -> Result<u8> {
    let store = Store::find();
    let shims = store.as_ref().map(Shims::of);
    // What is no command at all is told as it is without --lazy.
    let Ok(line) = Command::split(words, &search_path(), shims.as_ref()) else { return run::main(words, 0, true) };
    if line.archive != BootArchive::Python {
        if is_for_python_to_refuse(words) {
            return ordinary::start(&line.program, words, BootArchive::None);
        }
        return Err(Failure::refusal(format!(
            "--lazy is for commands that CPython runs, with its module site and its environment, and {} is none. Leave out --lazy.",
            words[0].display()
        )));
    }
    // One that is empty could not be told from one that is not there.
    std::env::set_var(VARIABLE, if filter.is_empty() { "*" } else { filter });
    ordinary::start(&line.program, words, line.archive)
}

/// Whether it is a Python with a script that is not there, or with options with which it prints something and ends.
fn is_for_python_to_refuse(words: &[OsString]) -> bool {
    language_of(words) == Some(Language::Python)
        && Main::split(Language::Python, words.to_vec(), &search_path()).is_err()
}
