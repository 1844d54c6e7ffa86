//! The command line of `snapboot freeze`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use image::MAX_VARIANTS;

use super::Quiet;

/// How files are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Policy {
    Check,
    Content,
    Trust,
}

impl Policy {
    /// One of [`image::policy`].
    pub fn number(self) -> u32 {
        match self {
            Policy::Check => image::policy::CHECK,
            Policy::Content => image::policy::CONTENT,
            Policy::Trust => image::policy::TRUST,
        }
    }
}

/// On which CPUs an image thaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Cpu {
    Native,
    #[value(alias = "baseline")]
    V2,
    V3,
    V4,
}

/// IMAGE.thaws has a byte for each of them.
const MAX_THAWS: u64 = 1_000_000_000;

const FREEZE_EXAMPLES: &str = "\
Examples:
  snapboot freeze -o fastpy --preload flask,requests -- python
  ./fastpy -c 'import flask; print(flask.__name__)'

  RAILS_ENV=production snapboot freeze -o rails.img --preload ./config/environment -- bin/rails
  ./rails.img runner 'puts 1'";

/// Boot COMMAND and write it to an image.
///
/// COMMAND is what you would type to start the program: `python` or `ruby` with any arguments, or a script whose first
/// line names one of them (bin/rails, flask, manage.py). It is booted once, with the modules or features that --preload
/// names, and paused right before its main part. Running the image continues it there: `IMAGE ARGS` does what
/// `COMMAND ARGS` would. When a source file, the interpreter, the CPU or an environment variable that the boot has read has changed,
/// the image runs COMMAND in the ordinary way instead.
///
/// The boot sees a small set of environment variables (see --env), /dev/null as standard input, and your standard
/// error for all output. The image file appears when it is complete; a failed freeze leaves what was there before.
///
/// Without COMMAND, the project says what is frozen, and how: the file snapboot.toml, or [tool.snapboot] in pyproject.toml (snapboot.toml
/// comes first), of the current directory or of the nearest one above it, up to the repository's top. Its keys are `command` and the long options
/// below, but for --quiet and --json; their values are strings, lists of strings for options that may be given more than once, true or false for
/// options without a value. An option of the command line takes the place of its key, with all its values (--no-train that of `train`, too);
/// with COMMAND on the command line the file is not read. The program boots in the file's directory, where relative paths are looked up;
/// only -o of the command line is a path of yours.
///
/// Exit status: 0 when the image was written, 2 for a mistake in the arguments or a program that cannot be frozen,
/// 1 when the program itself failed while booting.
#[derive(Debug, Args)]
#[command(
    override_usage = "snapboot freeze [OPTIONS] -- COMMAND [ARG...]\n       snapboot freeze [OPTIONS]",
    after_long_help = format!("{}\n\n{FREEZE_EXAMPLES}", freeze::variables_help())
)]
pub struct Freeze {
    /// Where to write the image. Default: NAME.img in the current directory, NAME being that of the script, of
    /// the module after -m, or of the interpreter.
    #[arg(short, long, value_name = "IMAGE", overrides_with = "output")]
    pub output: Option<PathBuf>,

    /// What to load before the image is written: Python modules (flask,django.http) and functions to call (django:setup), or Ruby features and ./paths
    /// (json,./config/environment). May be given more than once. Default: nothing besides what COMMAND needs.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub preload: Vec<String>,

    /// Run COMMAND with ARGS, as a shell would take them apart, and load into the image what that run loads later than at its beginning.
    /// May be given more than once. Each run is made two or three times, the second time from the new image, which must print the same.
    /// What reads or changes what belongs to a start is left to each start, and named. Default: --version and --help where COMMAND is
    /// an installed tool alone (of a Python distribution, a gem or a package of Debian), check for Django's manage.py, none where it is
    /// anything else.
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub train: Vec<String>,

    /// Make no training runs.
    #[arg(long, conflicts_with = "train")]
    pub no_train: bool,

    /// Do not add what Snapboot's recipe for a framework says: of bin/rails the application, of Django's manage.py the project, of rackup and
    /// puma what config.ru requires first. Default: it is loaded where --preload names nothing else.
    #[arg(long)]
    pub no_recipe: bool,

    /// Let the boot see the environment variable NAME, and make it an input: where NAME has another value, the image
    /// runs COMMAND in the ordinary way. A final * stands for anything; * alone for all variables but the volatile ones. May be given
    /// more than once. Default: the variables of runtimes and frameworks that are listed below.
    #[arg(long = "env", value_name = "NAME")]
    pub environment: Vec<String>,

    /// Have the boot take the environment variable NAME for unset, whatever it is, and never make it an input: for one that the
    /// program reads while it boots, and of which you know that the image need not depend on it. Patterns as for --env. May be given
    /// more than once. Default: a variable that is set, read and not seen is a reason not to freeze.
    #[arg(long = "withhold", value_name = "NAME")]
    pub withheld: Vec<String>,

    /// How each start makes sure that the files which the boot read are what they were. `check`: by size and times and, where
    /// only times differ, by content. `content`: by size and content, for CI and container layers, where times mean
    /// nothing. `trust`: not at all, for deployments in which no file ever changes. `check` and `content` remember in
    /// IMAGE.seen what they have compared.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = Policy::Check)]
    pub policy: Policy,

    /// Let every start read and digest all of the image before it uses it, and run COMMAND in the ordinary way where a byte
    /// differs. That costs about as much as the thaw itself (SNAPBOOT_VERIFY=1 asks a single start for it). Default: a start
    /// checks head and tables, and leaves the rest to `snapboot verify`.
    #[arg(long)]
    pub check_pages: bool,

    /// On which CPUs the image thaws; on others it runs COMMAND in the ordinary way. `native`: on those with at least the features
    /// of this one. `v2` (also `baseline`), `v3` and `v4`: on all that have this level of x86-64 (SSE4.2, AVX2, AVX-512) with AES
    /// and PCLMULQDQ; the C library, OpenSSL, OpenBLAS and numpy then do without newer instructions, also after a thaw, and other
    /// libraries that pick instructions by CPU are refused. For a fleet take `v3`: servers have it since 2015.
    #[arg(long, value_name = "CPU", value_enum, default_value_t = Cpu::Native)]
    pub cpu: Cpu,

    /// Boot the program K times, and keep all K processes in the image: each start continues one of them, drawn at random. They
    /// differ in memory layout and hash seed (unless PYTHONHASHSEED is set), which all starts of one variant share. The image
    /// is K times as large.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MAX_VARIANTS.into()))]
    pub variants: u32,

    /// How long the image may be used, as in 12h or 7d: afterwards COMMAND runs in the ordinary way until you freeze again. All
    /// starts of an image share its memory layout and hash seed; a new image has others. Default: for ever.
    #[arg(long, value_name = "DURATION", value_parser = image_file::rotation::duration)]
    pub max_age: Option<Duration>,

    /// How many starts the image may be used for. They are counted in the file IMAGE.thaws, which must stay beside the image;
    /// where it cannot be written, COMMAND runs in the ordinary way. Default: any number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_THAWS))]
    pub max_thaws: Option<u64>,

    /// An argument that the image must not handle: where ARG is among the arguments of the image, COMMAND runs in the
    /// ordinary way (such as --guard=-e for a Rails image frozen in production). A final * stands for anything. May be
    /// given more than once. Default: those that Snapboot's recipe for the framework names.
    #[arg(long = "guard", value_name = "ARG", allow_hyphen_values = true)]
    pub guards: Vec<OsString>,

    #[command(flatten)]
    pub telling: Quiet,

    /// Print what came of it as JSON on standard output: outcome (written, refused, failed), settings (the project's file) and, of an image,
    /// image, size (bytes), took, thaws_in (seconds), preloaded, files, learnt, left_out, depends, warnings; of a refusal its findings; of a
    /// failure its message. Default: a summary for people.
    #[arg(long)]
    pub json: bool,

    /// The program to boot and its first arguments; those given to the image come after them. Default: that of the project.
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true,
          value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
