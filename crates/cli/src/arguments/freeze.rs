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
/// COMMAND is what you would type to start the program: `python` or `ruby` with any arguments, or a script whose first line names one
/// of them (`bin/rails`, `flask`, `manage.py`). It is booted once and paused right before its main part. Running the image goes on from
/// there: `IMAGE ARGS` does what `COMMAND ARGS` would. Where a source file, the interpreter, the CPU or an environment variable that
/// the boot has read differs, the image runs COMMAND the ordinary way instead.
///
/// The boot sees some environment variables (see --env), /dev/null as standard input, and your standard error for all output. The image
/// appears when it is complete; a failed freeze leaves what was there before.
///
/// Without COMMAND, the project's file says what is frozen, and how: `snapboot.toml`, or `[tool.snapboot]` in `pyproject.toml`, of the
/// current directory or of the nearest one above it, up to the repository's top. Its keys are `command` and the long options below, but
/// for --quiet and --json. An option of the command line takes the place of its key. The program boots in the file's directory.
///
/// Exit status: 0 when the image was written; 2 for a mistake in the arguments or a program that cannot be frozen; 1 when the program
/// itself failed while booting.
#[derive(Debug, Args)]
#[command(
    override_usage = "snapboot freeze [OPTIONS] -- COMMAND [ARG...]\n       snapboot freeze [OPTIONS]",
    after_long_help = format!("{}\n\n{FREEZE_EXAMPLES}", freeze::variables_help())
)]
pub struct Freeze {
    /// Where to write the image. Default: NAME.img in the current directory, with the name of the script, of the module after -m,
    /// or of the interpreter.
    #[arg(short, long, value_name = "IMAGE", overrides_with = "output")]
    pub output: Option<PathBuf>,

    /// What to load before the image is written: Python modules (`flask,django.http`) and functions to call (`django:setup`), or
    /// Ruby features and paths (`json,./config/environment`). May be given more than once. Default: nothing besides what COMMAND
    /// needs.
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub preload: Vec<String>,

    /// Freeze where COMMAND first calls a function, and not right before its main part: `MODULE:FUNCTION` of Python
    /// (`gunicorn.arbiter:Arbiter.start`), `Class#method` or `Class.method` of Ruby (`Puma::Binder#parse`). For a server, that is
    /// where it has loaded the application and not yet opened a socket. COMMAND runs up to there, in its main thread. The image is for its
    /// arguments alone: with any others COMMAND runs the ordinary way. Default: the function that Snapboot's recipe for COMMAND names, if
    /// any, as for gunicorn, where neither --preload nor --train is given.
    #[arg(long, value_name = "FUNCTION", conflicts_with = "train")]
    pub at: Option<String>,

    /// Run COMMAND with ARGS, taken apart as a shell does, and load into the image what that run loads. May be given more than
    /// once. Each run is made two or three times, the last time from the new image, which must print the same. Modules that read or
    /// change what belongs to one start are left to each start, and named. Default: `--version` and `--help` for an installed tool
    /// without arguments (of a Python distribution, a gem or a Debian package), `check` for Django's `manage.py`, none for anything
    /// else.
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    pub train: Vec<String>,

    /// Make no training runs.
    #[arg(long, conflicts_with = "train")]
    pub no_train: bool,

    /// Leave out what Snapboot's recipe for a framework adds: for `bin/rails` the application, for Django's `manage.py` the
    /// project, for `rackup` what `config.ru` requires first, for a server the place where it is frozen. Default: the recipe counts
    /// where --preload names nothing.
    #[arg(long)]
    pub no_recipe: bool,

    /// Show the environment variable NAME to the boot from its start, and make it an input: where it has another value, the image
    /// runs COMMAND the ordinary way. A final * stands for anything, * alone for all variables but the volatile ones. May be given
    /// more than once. Default: the variables of runtimes and frameworks that are listed below.
    #[arg(long = "env", value_name = "NAME")]
    pub environment: Vec<String>,

    /// Have the boot take the environment variable NAME for unset, and never make it an input: for a variable that the program
    /// reads while it boots, where you know that the image need not depend on it. Patterns as for --env. May be given more than
    /// once.
    #[arg(long = "withhold", value_name = "NAME")]
    pub withheld: Vec<String>,

    /// How each start makes sure that the files which the boot read are unchanged. `check`: by size and times and, where only times
    /// differ, by content. `content`: by size and content, for CI and container layers, where times mean nothing. `trust`: not at
    /// all, for deployments in which no file ever changes. `check` and `content` remember in IMAGE.seen what they have compared.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = Policy::Check)]
    pub policy: Policy,

    /// Have every start digest the whole image before it uses it, and run COMMAND the ordinary way where a byte differs. That costs
    /// about as much as the thaw itself. SNAPBOOT_VERIFY=1 asks a single start for it. Default: a start checks head and tables, and
    /// leaves the rest to `snapboot verify`.
    #[arg(long)]
    pub check_pages: bool,

    /// On which CPUs the image thaws; on others it runs COMMAND the ordinary way. `native`: those with at least the features of
    /// this one. `v2` (also `baseline`), `v3` and `v4`: all with this level of x86-64 (SSE4.2, AVX2, AVX-512), AES and PCLMULQDQ.
    /// The C library, OpenBLAS and numpy then do without newer instructions, also after a thaw, while OpenSSL uses what the CPU of
    /// a thaw has; other libraries that pick instructions by CPU are refused. Default: `v3`, which all servers since 2015 have, or `native`
    /// where the program or this machine does not allow that.
    #[arg(long, value_name = "CPU", value_enum)]
    pub cpu: Option<Cpu>,

    /// Boot the program K times, and keep all K processes in the image: each start continues one of them, drawn at random. They
    /// differ in memory layout and hash seed (unless PYTHONHASHSEED is set). The image is K times as large.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MAX_VARIANTS.into()))]
    pub variants: u32,

    /// How long the image may be used, as in `12h` or `7d`. Afterwards COMMAND runs the ordinary way until you freeze again, and
    /// get another memory layout and hash seed. Default: for ever.
    #[arg(long, value_name = "DURATION", value_parser = image_file::rotation::parse_duration)]
    pub max_age: Option<Duration>,

    /// How many starts the image may be used for. The file IMAGE.thaws counts them, and must stay beside the image. Where it cannot
    /// be written, COMMAND runs the ordinary way. Default: any number.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=MAX_THAWS))]
    pub max_thaws: Option<u64>,

    /// An argument that the image must not handle: where ARG is among the arguments, COMMAND runs the ordinary way (`--guard=-e`
    /// for a Rails image frozen in production). A final * stands for anything. May be given more than once. Default: those that
    /// Snapboot's recipe for the framework names.
    #[arg(long = "guard", value_name = "ARG", allow_hyphen_values = true)]
    pub guards: Vec<OsString>,

    /// Make the image here, and keep it here. Default: the remote store (SNAPBOOT_REMOTE) is asked for one that was made in the same way and
    /// fits, and gets what was made here; not with --max-age or --max-thaws.
    #[arg(long)]
    pub no_remote: bool,

    #[command(flatten)]
    pub verbosity: Quiet,

    /// Print the outcome as JSON: `outcome` (written, pulled, refused, failed) and `settings` (the project's file); of an image `image`,
    /// `size` (bytes), `took` (seconds) and `warnings`; of one that was written also `thaws_in` (seconds), `preloaded`, `files`, `learnt`,
    /// `left_out`, `depends`; of a refusal its findings; of a failure its message. Default: a summary for people.
    #[arg(long)]
    pub json: bool,

    /// The program to boot and its first arguments; those given to the image come after them. Default: that of the project.
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true,
          value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}
