//! A regular expression of a recipe.

use std::sync::OnceLock;

use regex::Regex;
use serde::Deserialize;
use toml::Spanned;

use crate::rules::Mistake;

/// A regular expression, compiled when it is needed.
#[derive(Debug, Deserialize)]
#[serde(from = "Spanned<String>")]
pub struct Pattern {
    text: Spanned<String>,
    compiled: OnceLock<Regex>,
}

impl From<Spanned<String>> for Pattern {
    fn from(text: Spanned<String>) -> Self {
        Pattern { text, compiled: OnceLock::new() }
    }
}

impl Pattern {
    /// The regular expression.
    pub fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| Regex::new(self.text.get_ref()).expect("it was tried when it was read"))
    }

    /// Fails if it is none. `file`: the text of the recipe.toml.
    pub(crate) fn check(&self, file: &str) -> Result<(), Mistake> {
        Regex::new(self.text.get_ref()).map(drop).map_err(|error| Mistake {
            line: crate::rules::line(file, self.text.span().start),
            what: format!("this is not a regular expression: {error}"),
        })
    }
}
