//! Reads that are not inputs, or only in part: rules of recipes, with their reasons there. variables.rs says which list
//! is for which variables.
//!
//! What a front end renews after a thaw needs such a rule, or a row in RENEWED_VARIABLES. Otherwise the image stays
//! bound to the value at the freeze, or the freeze is refused.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use recipes::{Read, ReadOf};
use runtime::Language;

/// Variables that C code of a runtime reads at its own start, and the front end renews after a thaw: environment.rb
/// sets them anew (in Python, where the runtime's own reads do not count, environment.py calls `tzset`).
pub const RENEWED_VARIABLES: &[&str] = &["TZ"];

/// Facts about a start, by their names in the front ends.
const FACTS_OF_A_START: &[&str] = &["cwd", "hostname", "terminal", "window"];

/// The rules about a reader: a file, or nothing for C code, whose callers are unknown.
pub fn rules_of_reader(language: Language, reader: Option<&str>) -> impl Iterator<Item = &'static ReadOf> + use<'_> {
    let is_by = move |row: &&Read| match reader {
        None => row.reader.is_empty(),
        Some(reader) => !row.reader.is_empty() && reader.ends_with(&row.reader),
    };
    recipes::reads(language).filter(|row| !row.only_in_trials).filter(is_by).map(|row| &row.of)
}

/// Whether a variable matches one of these name patterns.
pub fn is_one_of(patterns: &[String], name: &OsStr) -> bool {
    patterns.iter().any(|pattern| inputs::environment::matches(pattern.as_bytes(), name.as_bytes()))
}

/// Reads that are no reason to exclude a module from training: those of the start and of the whole environment (`*`)
/// for which a recipe has a rule. Each reader, with the names of its reads in the front ends.
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
