//! What is wrong in a recipe.toml.

/// A mistake in a recipe.toml.
#[derive(Debug)]
pub struct Mistake {
    /// Its line, from 1.
    pub line: usize,
    /// What was expected, and what was found.
    pub what: String,
}

/// The number of the line that contains a byte of a text, from 1.
pub(crate) fn line(text: &str, byte: usize) -> usize {
    text.get(..byte).unwrap_or_default().matches('\n').count() + 1
}
