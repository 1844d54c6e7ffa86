//! How a freeze ends.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use failure::Failure;
use image_file::starts::Starts;
use judge::findings::Finding;
use runtime::Language;

/// How a freeze ended. Whatever was there under the image's name is untouched, unless an image was written.
pub enum FreezeOutcome {
    /// The image is there, and has thawed once.
    Written(Box<Written>),
    /// The program cannot be frozen, for these reasons; at least one.
    Refused(Vec<Finding>),
    /// It was not tried, or did not come so far.
    Failed(Failure),
    /// A signal came, of this number.
    Interrupted(i32),
}

/// A new image.
pub struct Written {
    /// Where it is.
    pub path: PathBuf,
    /// Where it would be had the request named no output.
    pub default_path: PathBuf,
    /// Its size (bytes).
    pub size: u64,
    /// How long the freeze took.
    pub took: Duration,
    /// How long its first start took, from its execution to the end of an empty main part.
    pub thaws_in: Duration,
    /// How many processes it holds.
    pub variants: u32,
    /// How many of them are for starts at a terminal, where the others are not.
    pub at_terminals: u32,
    /// How many of them are for starts in the locale C, where the others are for text in UTF-8, or the other way round.
    pub in_other_locale: u32,
    /// How many files were loaded.
    pub loaded: usize,
    /// What was preloaded, as the user or a recipe named it.
    pub preloaded: Vec<String>,
    /// The first import of a Python main part that was left to each start; empty for a Ruby script of which nothing was loaded.
    pub left: Option<String>,
    /// What the program is written in.
    pub language: Language,
    /// How many modules or features are in it because training runs have shown them.
    pub learnt: usize,
    /// How many of these lie in each folder.
    pub learnt_in: BTreeMap<PathBuf, usize>,
    /// How many compiled regular expressions are in it for that reason.
    pub patterns: usize,
    /// Whether it is an installed tool, which was run with `--version`.
    pub tells_version: bool,
    /// What else they have shown and must be left to each start: each name, and why.
    pub left_out: Vec<(String, String)>,
    /// What it depends on that its user may not expect: names of variables, and phrases.
    pub depends: Vec<String>,
    /// Whether it has less than it should have, as warnings tell: another freeze may do better.
    pub lacks: bool,
    /// What the user should know about it.
    pub warnings: Vec<String>,
    /// How the starts of the image that it has replaced have gone, as far as that is known.
    pub replaced: Option<Starts>,
}

/// Why a step of a freeze ends it.
pub(crate) enum Stop {
    Refused(Vec<Finding>),
    Failed(Failure),
    Interrupted(i32),
}

/// What a step of a freeze returns.
pub(crate) type Result<T> = std::result::Result<T, Stop>;

impl Stop {
    /// Whether it comes of a state that need not last.
    pub fn is_passing(&self) -> bool {
        match self {
            Stop::Failed(failure) => failure.is_passing,
            Stop::Refused(findings) => findings.iter().any(Finding::is_internal),
            Stop::Interrupted(_) => false,
        }
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Stop::Failed(failure)
    }
}

impl From<image::Error> for Stop {
    fn from(error: image::Error) -> Self {
        Stop::Failed(error.into())
    }
}

impl From<std::result::Result<Written, Stop>> for FreezeOutcome {
    fn from(result: std::result::Result<Written, Stop>) -> Self {
        match result {
            Ok(written) => FreezeOutcome::Written(Box::new(written)),
            Err(Stop::Refused(findings)) => FreezeOutcome::Refused(findings),
            Err(Stop::Failed(failure)) => FreezeOutcome::Failed(failure),
            Err(Stop::Interrupted(signal)) => FreezeOutcome::Interrupted(signal),
        }
    }
}
