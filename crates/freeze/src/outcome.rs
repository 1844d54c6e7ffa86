//! How a freeze ends.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use failure::Failure;
use image_file::info::LeftOut;
use image_file::starts::Starts;
use judge::findings::Finding;
use runtime::Language;

/// How a freeze ended. Unless an image was written, the file at its path is unchanged.
pub enum FreezeOutcome {
    /// The image was written, and has thawed once.
    Written(Box<Written>),
    /// The program cannot be frozen, for these reasons; at least one.
    Refused(Vec<Finding>),
    /// The freeze failed, or was not tried.
    Failed(Failure),
    /// This signal interrupted the freeze.
    Interrupted(i32),
}

/// A new image.
pub struct Written {
    /// Where it is.
    pub path: PathBuf,
    /// Its path if the request had named no output.
    pub default_path: PathBuf,
    /// Its size (bytes).
    pub size: u64,
    /// How long the freeze took.
    pub took: Duration,
    /// How long its first start took, from its execution to the end of an empty main part.
    pub thaws_in: Duration,
    /// How many frozen processes it contains.
    pub variants: u32,
    /// How many of them are for starts at a terminal, if the others are not.
    pub at_terminals: u32,
    /// How many of them are for starts in the locale C if the others are for UTF-8, or the other way round.
    pub in_other_locale: u32,
    /// How many of them are for CPUs of a higher level than the image.
    pub on_higher_level: u32,
    /// Why the image is for CPUs with all features of this one, if nobody has asked for that.
    pub only_native: Option<String>,
    /// How many files were loaded.
    pub loaded: usize,
    /// What was preloaded, as named by the user or a recipe.
    pub preloaded: Vec<String>,
    /// The first import of a Python main part that was left to each start; empty for a Ruby script of which nothing was
    /// loaded.
    pub left: Option<String>,
    /// What the program is written in.
    pub language: Language,
    /// How many modules or features were loaded because of training runs.
    pub learnt: usize,
    /// How many of these lie in each folder.
    pub learnt_in: BTreeMap<PathBuf, usize>,
    /// How many regular expressions were compiled because of training runs.
    pub patterns: usize,
    /// Whether it is an installed tool, which was run with `--version`.
    pub prints_version: bool,
    /// What training runs loaded and each start must load itself.
    pub left_out: Vec<LeftOut>,
    /// Its dependencies that the user may not expect: names of variables, and phrases.
    pub depends: Vec<String>,
    /// Whether it lacks something that another freeze may include; warnings name it.
    pub lacks: bool,
    /// Messages to the user.
    pub warnings: Vec<String>,
    /// How the starts of the replaced image went, if known.
    pub replaced: Option<Starts>,
}

/// Why a step ends the freeze.
#[derive(Clone, Debug)]
pub(crate) enum Stop {
    Refused(Vec<Finding>),
    Failed(Failure),
    Interrupted(i32),
    /// The image does not do what an ordinary start does.
    Disproved(Disproof),
    /// The program cannot be frozen for the level of CPUs that is the default, for this reason.
    BeyondLevel(String),
}

/// Why a program cannot be frozen for a level.
#[derive(Debug)]
pub(crate) struct Unfit {
    /// The reason alone.
    pub reason: String,
    /// The failure of a freeze for which the level was asked for.
    pub failure: Failure,
}

impl Unfit {
    /// `remedy` ends the failure's message.
    pub fn new(reason: String, remedy: &str) -> Unfit {
        Unfit { failure: Failure::refusal(format!("{reason}. {remedy}")), reason }
    }
}

impl From<Failure> for Unfit {
    fn from(failure: Failure) -> Unfit {
        Unfit { reason: failure.message.clone(), failure }
    }
}

/// How a start from an image differs from an ordinary one.
#[derive(Clone, Debug)]
pub(crate) enum Disproof {
    /// A boot printed something, and the first one did not.
    Prints,
    /// The training run with these arguments.
    Run(OsString, Difference),
}

/// How a training run from an image differs from the ordinary one.
#[derive(Clone, Debug)]
pub(crate) enum Difference {
    DidNotEnd,
    Ended { with: ExitStatus, ordinarily: ExitStatus, last_line: Option<String> },
    Printed { line: Option<String>, ordinarily: Option<String> },
}

/// The result of a step.
pub(crate) type Result<T> = std::result::Result<T, Stop>;

impl Stop {
    /// Whether the cause may pass.
    pub fn is_passing(&self) -> bool {
        match self {
            Stop::Failed(failure) => failure.is_passing,
            Stop::Refused(findings) => findings.iter().any(Finding::is_internal),
            Stop::Interrupted(_) | Stop::Disproved(_) | Stop::BeyondLevel(_) => false,
        }
    }
}

/// The first reason.
impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stop::Refused(findings) => findings.iter().take(1).try_for_each(|finding| finding.fmt(f)),
            Stop::Failed(failure) => failure.fmt(f),
            Stop::Interrupted(signal) => write!(f, "signal {signal}"),
            Stop::Disproved(disproof) => disproof.fmt(f),
            Stop::BeyondLevel(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for Disproof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Disproof::Run(arguments, difference) = self else {
            return f.write_str("the program prints something while it boots");
        };
        write!(f, "started from the image, {:?} ", arguments.to_string_lossy())?;
        let line = |text: &Option<String>| text.as_ref().map_or("nothing".to_owned(), |text| format!("{text:?}"));
        match difference {
            Difference::DidNotEnd => f.write_str("did not end"),
            Difference::Ended { with, ordinarily, last_line } => {
                write!(f, "ended with {with} instead of {ordinarily}")?;
                last_line.iter().try_for_each(|line| write!(f, ", saying {line:?}"))
            }
            Difference::Printed { line: printed, ordinarily } => {
                write!(f, "printed {} where an ordinary start prints {}", line(printed), line(ordinarily))
            }
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

impl From<Result<Written>> for FreezeOutcome {
    fn from(result: Result<Written>) -> Self {
        match result {
            Ok(written) => FreezeOutcome::Written(Box::new(written)),
            Err(Stop::Refused(findings)) => FreezeOutcome::Refused(findings),
            Err(Stop::Failed(failure)) => FreezeOutcome::Failed(failure),
            Err(Stop::Interrupted(signal)) => FreezeOutcome::Interrupted(signal),
            Err(disproved) => FreezeOutcome::Failed(Failure::failed(format!("cannot freeze: {disproved}."))),
        }
    }
}
