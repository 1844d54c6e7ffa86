//! An image's description of itself: the JSON of its info section. A thaw needs none of it.

use std::fmt;

use image::{Section, Tables};
use serde::{Deserialize, Serialize};

/// Written by `snapboot freeze`, shown by `snapboot inspect`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// Version of the command that wrote the image.
    pub snapboot: String,
    /// Time of the freeze (seconds since 1970).
    pub created: u64,
    /// Name and version of the runtime.
    pub runtime: String,
    /// The command as the user typed it.
    pub typed: Vec<String>,
    /// How to make the same image again; None if that cannot be written as text.
    pub origin: Option<Origin>,
    /// Kind of the main part: `bare`, `script`, `module` or `code`.
    pub main: String,
    /// What was loaded before the freeze point, as the user named it.
    pub preloads: Vec<String>,
    /// Number of files that were loaded.
    pub loaded: usize,
    /// What was loaded because training runs had loaded it.
    pub learnt: Vec<String>,
    /// Number of regular expressions that were compiled because training runs had compiled them.
    pub patterns: usize,
    /// What training runs had loaded and the freeze left out.
    pub left_out: Vec<LeftOut>,
    /// The CPUs that it thaws on: `native`, `v2`, `v3` or `v4`.
    pub cpu: String,
    /// Duration of the freeze (seconds).
    pub seconds: f64,
    /// Variables that were set and are compared. Only digests of their values are kept.
    pub variables: Vec<String>,
    /// What the user should know about the image's content.
    pub notes: Vec<String>,
    /// Files of the kernel that the boot read (/proc, /sys, /dev). The facts list those that are inputs.
    pub system: Vec<String>,
    /// The warnings of its freeze.
    pub warnings: Vec<String>,
    /// Inputs that the user may not expect.
    pub depends: Vec<String>,
    /// The decision about each fact that the boot read.
    pub decisions: Vec<Decision>,
}

/// A module or feature that training runs had loaded and the freeze left out. Written as a name and the words of the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(String, String)", into = "(String, String)")]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: WhyLeftOut,
}

/// Why a module or feature was left out, in words that continue its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyLeftOut {
    /// A Python module imports this one, which was left out.
    Imports(String),
    /// A feature of Ruby requires this one, which was left out.
    Requires(String),
    /// It prints something.
    Prints,
    /// What the front end has found, such as a read of a variable.
    Other(String),
}

impl WhyLeftOut {
    /// What it loads that was left out, if that is the reason.
    pub fn loads(&self) -> Option<&str> {
        match self {
            WhyLeftOut::Imports(name) | WhyLeftOut::Requires(name) => Some(name),
            WhyLeftOut::Prints | WhyLeftOut::Other(_) => None,
        }
    }
}

impl From<String> for WhyLeftOut {
    fn from(words: String) -> Self {
        if words == "prints" {
            return WhyLeftOut::Prints;
        }
        match words.split_once(' ') {
            Some(("imports", name)) => WhyLeftOut::Imports(name.to_owned()),
            Some(("requires", name)) => WhyLeftOut::Requires(name.to_owned()),
            _ => WhyLeftOut::Other(words),
        }
    }
}

impl fmt::Display for WhyLeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyLeftOut::Imports(name) => write!(f, "imports {name}"),
            WhyLeftOut::Requires(name) => write!(f, "requires {name}"),
            WhyLeftOut::Prints => f.write_str("prints"),
            WhyLeftOut::Other(words) => f.write_str(words),
        }
    }
}

impl From<(String, String)> for LeftOut {
    fn from((name, why): (String, String)) -> Self {
        LeftOut { name, why: why.into() }
    }
}

impl From<LeftOut> for (String, String) {
    fn from(left: LeftOut) -> Self {
        (left.name, left.why.to_string())
    }
}

/// The decision about a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The fact, as differences name it: a variable, `the current directory`.
    pub what: String,
    /// The verdict about it.
    pub verdict: Verdict,
    /// The reason: who read it, or what another start has shown.
    pub why: String,
}

impl Decision {
    /// A decision of these parts.
    pub fn new(what: &str, verdict: Verdict, why: String) -> Decision {
        Decision { what: what.to_owned(), verdict, why }
    }
}

/// How an image treats a fact about a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The image serves only starts with the same value.
    Input,
    /// Each thaw puts the value of its own start where the program keeps it.
    Renewed,
    /// The value makes no difference.
    NoInput,
}

impl Verdict {
    /// The heading of a list of such facts.
    pub fn heading(self) -> &'static str {
        match self {
            Verdict::Input => "inputs",
            Verdict::Renewed => "renewed in each thaw",
            Verdict::NoInput => "not inputs",
        }
    }
}

/// The call of `snapboot freeze`, without the command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Its options.
    pub options: Vec<String>,
    /// The directory in which it was called.
    pub directory: String,
    /// The value of PATH in which the command was looked up.
    pub search_path: String,
}

impl Info {
    /// The info section; the default if it is missing or damaged, since an image works without it.
    pub fn read(tables: &Tables<'_>) -> Self {
        serde_json::from_slice(tables.bytes(Section::Info)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_something_was_left_out_is_written_in_its_words() {
        for (words, loads) in [
            ("imports a.b", Some("a.b")),
            ("requires c/d", Some("c/d")),
            ("prints", None),
            ("reads LANG (at /a.py:1)", None),
        ] {
            let left: LeftOut = ("e".to_owned(), words.to_owned()).into();
            assert_eq!(left.why.loads(), loads);
            let json = serde_json::to_string(&left).unwrap();
            assert_eq!(json, format!("[\"e\",\"{words}\"]"));
            assert_eq!(serde_json::from_str::<LeftOut>(&json).unwrap(), left);
        }
    }
}
