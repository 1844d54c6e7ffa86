//! Reads that do not make what was read an input, or not all of it: rules of recipes, each with its reason there. variables.rs says which list
//! is for which variables.
//!
//! What a front end renews after a thaw needs such a rule, or a row in RENEWED_VARIABLES: without one the image stays bound to what it was at the
//! freeze, or the freeze is refused.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use recipes::{Read, ReadOf};
use runtime::Language;

/// What C code of a runtime reads at its own start, and the front end renews after a thaw: environment.rb sets it anew (in Python, where the
/// runtime's own reads do not count, environment.py calls `tzset`).
pub const RENEWED_VARIABLES: &[&str] = &["TZ"];

/// Facts about a start, in the front ends' words.
const FACTS_OF_A_START: &[&str] = &["cwd", "hostname", "terminal", "window"];

/// What is known of a reader: a file, or nothing for C code, of which nobody knows who calls it.
pub fn of_reader(language: Language, reader: Option<&str>) -> impl Iterator<Item = &'static ReadOf> + use<'_> {
    let is_by = move |row: &&Read| match reader {
        None => row.reader.is_empty(),
        Some(reader) => !row.reader.is_empty() && reader.ends_with(&row.reader),
    };
    recipes::reads(language).filter(|row| !row.only_in_trials).filter(is_by).map(|row| &row.of)
}

/// Whether a variable has one of these name patterns.
pub fn is_one_of(patterns: &[String], name: &OsStr) -> bool {
    patterns.iter().any(|pattern| inputs::environment::matches(pattern.as_bytes(), name.as_bytes()))
}

/// What is no reason to leave a module out of training: what a recipe says of reads of the start, and of the whole environment, which is `*`.
/// Each reader, and what it may read in the front ends' words.
pub fn harmless(language: Language) -> impl Iterator<Item = (&'static str, &'static str)> {
    recipes::reads(language).filter_map(|row| {
        let what = match &row.of {
            ReadOf::AtStart { what, .. } => what,
            ReadOf::Environment(_) => "*",
            ReadOf::Fact { word, unless_unset: None, .. } => FACTS_OF_A_START.iter().find(|of| *of == word)?,
            ReadOf::Fact { .. } | ReadOf::Variable(_) => return None,
        };
        (!row.reader.is_empty()).then_some((row.reader.as_str(), what))
    })
}
