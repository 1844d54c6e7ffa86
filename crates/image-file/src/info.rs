//! What an image tells people about itself: the JSON of its info section. Nothing in it is needed to thaw.

use image::{Section, Tables};
use serde::{Deserialize, Serialize};

/// Written by `snapboot freeze`, shown by `snapboot inspect`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// Version of the command that wrote the image.
    pub snapboot: String,
    /// When it was written (seconds since 1970).
    pub created: u64,
    /// Name and version of the runtime.
    pub runtime: String,
    /// The command as the user typed it.
    pub typed: Vec<String>,
    /// What makes the same image again; None where it cannot be written down as text.
    pub origin: Option<Origin>,
    /// What kind of main part it has: `bare`, `script`, `module` or `code`.
    pub main: String,
    /// What was loaded before the freeze point, as the user named it.
    pub preloads: Vec<String>,
    /// Files that were loaded.
    pub loaded: usize,
    /// What was loaded because training runs have shown it.
    pub learnt: Vec<String>,
    /// How many regular expressions were compiled because training runs have compiled them.
    pub patterns: usize,
    /// What they have shown and was not loaded: each name, and why.
    pub left_out: Vec<(String, String)>,
    /// On which CPUs it thaws: `native` or `baseline`.
    pub cpu: String,
    /// How long the freeze took (seconds).
    pub seconds: f64,
    /// Variables that were set and are compared; their values are kept only as digests.
    pub variables: Vec<String>,
    /// What the user should know about what was frozen.
    pub notes: Vec<String>,
    /// Files of the kernel that the boot read (/proc, /sys, /dev); what of it is an input is among the facts.
    pub system: Vec<String>,
    /// What its freeze warned of.
    pub warnings: Vec<String>,
    /// What it depends on that the user may not expect.
    pub depends: Vec<String>,
    /// What was decided about all that the boot has looked at.
    pub decisions: Vec<Decision>,
}

/// What was decided about a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The fact, as differences name it: a variable, `the current directory`.
    pub what: String,
    /// What it is.
    pub verdict: Verdict,
    /// Why: who has read it, what another start has shown.
    pub why: String,
}

impl Decision {
    /// See the fields.
    pub fn new(what: &str, verdict: Verdict, why: String) -> Decision {
        Decision { what: what.to_owned(), verdict, why }
    }
}

/// What a fact about a start is to an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The image is for starts where it is the same.
    Input,
    /// Each thaw puts that of its own start where the program keeps it.
    Renewed,
    /// It makes no difference.
    NoInput,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Input => "an input",
            Verdict::Renewed => "renewed in each thaw",
            Verdict::NoInput => "no input",
        }
    }
}

/// What `snapboot freeze` was called with, besides the command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Its options.
    pub options: Vec<String>,
    /// The directory that it was called in.
    pub directory: String,
    /// PATH, where the command was looked for.
    pub search_path: String,
}

impl Info {
    /// The info section, or an empty one: an image can be used without it.
    pub fn of(tables: &Tables<'_>) -> Self {
        serde_json::from_slice(tables.bytes(Section::Info)).unwrap_or_default()
    }
}
