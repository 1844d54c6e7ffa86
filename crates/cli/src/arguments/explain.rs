//! The command line of `snapboot explain`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

use super::Quiet;

/// Show where the time of a start goes, and what to do about it.
///
/// COMMAND is what you would type to start a Python or Ruby program. Its ordinary starts are measured N times, its starts with a boot
/// archive likewise, and thaws of a trial image. Archive and image lie in a folder that is removed afterwards. IMAGE ARGS measures
/// thaws of that image alone. With --vs, two commands or images are measured as they are, and the parts shown by which they differ
/// most. REPORT, a file with the output of --json, stands for what was measured then: alone it is shown again, and --vs compares its
/// first start, or the one that --start names.
///
/// Shows how long each sort of work took, side by side; the parts of a start that cost most; and advice. Times are medians of the runs,
/// with half the width of their middle half behind ±. Modules and features stand below what loads them first; own is the time without
/// these. The program's input and output are /dev/null.
///
/// Exit status: 0; 1 when the command failed (unless --allow-failure); 2 when it cannot be started or measured.
#[derive(Debug, Args)]
#[command(
    override_usage = "snapboot explain [OPTIONS] -- COMMAND [ARG...]\n       snapboot explain [OPTIONS] IMAGE [ARG...]\n       snapboot explain [OPTIONS] -- COMMAND|IMAGE [ARG...] --vs COMMAND|IMAGE [ARG...]\n       snapboot explain [OPTIONS] --diff IMAGE|REPORT IMAGE|REPORT\n       snapboot explain [OPTIONS] REPORT",
    after_long_help = "\
Examples:
  snapboot explain -- python manage.py check
  RAILS_ENV=production snapboot explain -n 3 -- bin/rails runner 1
  snapboot explain --html start.html -- flask routes
  snapboot explain ./rails.img runner 1
  snapboot explain -- python3.12 app.py --vs python3.13 app.py
  snapboot explain --diff yesterday.json today.json
  snapboot explain --start ordinary,archive --diff today.json today.json"
)]
pub struct Explain {
    #[command(flatten)]
    pub verbosity: Quiet,

    /// How many starts of each kind count.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub runs: u32,

    /// Show every part, however little it costs. Default: those that cost most; the others are one row.
    #[arg(long)]
    pub all: bool,

    /// Make no trial freeze: show no thawed start.
    #[arg(long)]
    pub no_freeze: bool,

    /// Show no start with the boot archive.
    #[arg(long)]
    pub no_archive: bool,

    /// Go on when the command ends with a status other than 0. Default: stop and show what it wrote to its standard
    /// error.
    #[arg(long)]
    pub allow_failure: bool,

    /// Also write a page with a flame chart of each start to FILE: one file that loads nothing from elsewhere.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,

    /// Print JSON with all parts and the advice; speedscope, Perfetto and chrome://tracing open it. Default: a summary for people.
    #[arg(long)]
    pub json: bool,

    /// Compare two images or reports, or commands of one word: `A B` is short for `A --vs B`.
    #[arg(long)]
    pub diff: bool,

    /// Which start --vs and --diff compare: `ordinary`, `archive` or `thawed`; two with a comma between them, one for each side.
    /// Default: ordinary; of an image its thaw, of a report its first start.
    #[arg(long, value_name = "KIND", value_delimiter = ',', num_args = 1)]
    pub start: Vec<Kind>,

    /// The command or the image, and its arguments; after --vs the one to compare it with.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true,
          value_hint = ValueHint::CommandWithArguments)]
    pub words: Vec<OsString>,
}

/// A kind of start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// As it is.
    Ordinary,
    /// With the boot archive.
    Archive,
    /// From an image.
    Thawed,
}
