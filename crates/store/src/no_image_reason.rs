//! Why no image is made for a start.

use std::fmt;
use std::io;
use std::path::PathBuf;

use failure::Failure;

use crate::put_off_reason::Delay;

/// Why no image is made for a start.
#[derive(Debug)]
pub enum NoImageReason {
    /// A limit of the start is too low for a builder.
    Limit {
        /// Its option of `ulimit`.
        option: &'static str,
    },
    /// This user cannot write in the folder of the command.
    CannotWrite {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The image was put off.
    PutOff(Delay),
    /// Earlier attempts say that a further one is not worth it.
    Attempts(Fruitless),
    /// A file of the program was changed a moment ago.
    BeingEdited,
    /// The folder of the command cannot be made.
    NoFolder(Failure),
    /// An argument is a guard of the image.
    Guarded,
    /// The folder may be somebody else's.
    NotOwn,
    /// The folder does not say of which command it is.
    NoCommand,
}

impl fmt::Display for NoImageReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoImageReason::Limit { option } => {
                write!(f, "a limit of this start leaves no room to make one (ulimit {option})")
            }
            NoImageReason::CannotWrite { folder, error } => {
                write!(f, "{} cannot be written ({})", folder.display(), failure::reason(error))
            }
            NoImageReason::PutOff(delay) => write!(f, "it was put off, since {delay}"),
            NoImageReason::Attempts(fruitless) => fruitless.fmt(f),
            NoImageReason::BeingEdited => f.write_str("a file of the program was changed less than a minute ago"),
            NoImageReason::Guarded => f.write_str("with an argument of this start the program would boot differently"),
            NoImageReason::NoFolder(failure) => failure.fmt(f),
            NoImageReason::NotOwn => {
                f.write_str("its directory belongs to another user, or other users may write to it")
            }
            NoImageReason::NoCommand => f.write_str("its directory does not say which command it is for"),
        }
    }
}

/// Why a further attempt is not worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fruitless {
    /// The last attempt in this environment led to no image, and nothing that it read has changed since.
    Last {
        /// What came of it.
        ended: Ended,
        /// How long until the next one (seconds), unless that is only after a change.
        next: Option<u64>,
    },
    /// Several attempts in a row led to no image that a start has used.
    InVain {
        /// How many.
        attempts: u32,
        /// Whether there is one for this environment, which does not fit it.
        does_not_fit: bool,
        /// How long until the next one (seconds).
        next: u64,
    },
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The program cannot be frozen.
    Refused,
    /// The image was no faster than the boot archive.
    Vain,
    /// Something went wrong.
    Failed,
}

impl fmt::Display for Fruitless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fruitless::Last { ended, next } => {
                let what = match ended {
                    Ended::Refused => "was refused",
                    Ended::Vain => "made an image that is no faster than the boot archive",
                    Ended::Failed => "failed",
                };
                write!(f, "the last attempt in this environment {what}, and nothing that it read has changed since")?;
                next.iter().try_for_each(|wait| write!(f, "; the next attempt is due in {wait} s"))
            }
            Fruitless::InVain { attempts, does_not_fit, next } => {
                if *does_not_fit {
                    f.write_str("the image of this environment does not fit it, and ")?;
                }
                write!(
                    f,
                    "the last {attempts} attempts made no image that a start has used; the next attempt is due in {next} s"
                )
            }
        }
    }
}
