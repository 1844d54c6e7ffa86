//! Facts of a start that differ from those that an image recorded, and how messages tell them.

use core::fmt::{self, Write};

use image::{Error, HostFact, Section, Tables};

use super::{fact_kind, is_of_terminal, is_unchanged, name, recorded_path, searched, Kernel, Value, NO_TERMINAL};
use crate::words::{Lossy, Words};

/// A fact that differs from what an image recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference<'t> {
    /// The fact.
    pub fact: HostFact,
    /// Its recorded text.
    pub recorded: &'t [u8],
}

impl<'t> Difference<'t> {
    pub(crate) fn words<'n>(&self) -> Words<'t, 'n> {
        let Difference { fact, recorded } = self;
        if let Some(text) = terminal_message(fact, recorded) {
            return Words::about(text, b"");
        }
        if fact.kind == fact_kind::SEARCHED {
            let text =
                "stale: a directory of this variable may contain a module that the boot looked up and did not find";
            return Words::about(text, searched::variable(recorded));
        }
        match recorded_path(fact, recorded) {
            Some(path) if fact.kind == fact_kind::FOUND => {
                Words::about("stale: the result of this look-up has changed since the boot", path)
            }
            Some(path) => Words::about("stale: this file of the kernel has changed since the boot", path),
            None => {
                let subject = name(fact.kind, fact.of).as_bytes();
                Words { was: recorded, ..Words::about("stale: this has changed since the boot", subject) }
            }
        }
    }

    pub(crate) fn write_details(&self, kernel: &impl Kernel, out: &mut dyn Write) -> fmt::Result {
        let Difference { fact, recorded } = self;
        if fact.kind == fact_kind::SEARCHED {
            let obstacle = Value::read_obstacle(kernel, recorded);
            return write!(
                out,
                "{}: {}",
                Lossy(searched::variable(recorded)),
                obstacle.as_ref().map_or(Lossy(b""), Value::shown)
            );
        }
        let now = Value::read_again(kernel, fact, recorded);
        let now = now.as_ref().map_or(&b"unknown"[..], Value::bytes);
        out.write_str(name(fact.kind, fact.of))?;
        // Both texts of a path start with it.
        match recorded_path(fact, recorded) {
            Some(path) => write!(out, " {} -> {}", Lossy(recorded), Lossy(now.get(path.len() + 2..).unwrap_or(now))),
            None => write!(out, ": {} -> {}", Lossy(recorded), Lossy(now)),
        }
    }
}

/// Passes each fact that differs from the recorded one to `differs`, until that fails. Fails if the tables are damaged.
pub fn pass_differences<'t, E: From<Error>>(
    tables: &Tables<'t>,
    kernel: &impl Kernel,
    mut differs: impl FnMut(Difference<'t>) -> Result<(), E>,
) -> Result<(), E> {
    for fact in tables.rows::<HostFact>(Section::Facts)? {
        let recorded = tables.text(fact.value)?;
        if !is_unchanged(&fact, recorded, kernel) {
            differs(Difference { fact, recorded })?;
        }
    }
    Ok(())
}

/// The first fact about terminals that differs from the recorded one.
pub fn first_terminal_difference<'t>(
    tables: &Tables<'t>,
    kernel: &impl Kernel,
) -> Result<Option<Difference<'t>>, Error> {
    for fact in tables.rows::<HostFact>(Section::Facts)?.filter(|fact| is_of_terminal(fact.kind)) {
        let recorded = tables.text(fact.value)?;
        if !is_unchanged(&fact, recorded, kernel) {
            return Ok(Some(Difference { fact, recorded }));
        }
    }
    Ok(None)
}

/// The message if a standard stream has become a terminal, or is no longer one. None for other facts.
fn terminal_message(fact: &HostFact, recorded: &[u8]) -> Option<&'static str> {
    let was_none = recorded == NO_TERMINAL;
    (fact.kind == fact_kind::TERMINAL).then_some(match (fact.of, was_none) {
        (0, true) => "stale: standard input is a terminal; it was not when the image was made",
        (0, false) => "stale: standard input is not a terminal; it was one when the image was made",
        (1, true) => "stale: standard output is a terminal; it was not (a pipe, a file) when the image was made",
        (1, false) => "stale: standard output is not a terminal; it was one when the image was made",
        (_, true) => "stale: standard error is a terminal; it was not (a pipe, a file) when the image was made",
        (_, false) => "stale: standard error is not a terminal; it was one when the image was made",
    })
}
