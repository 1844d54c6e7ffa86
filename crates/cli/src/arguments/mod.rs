//! The command line of `snapboot`, declared once: parsing, `--help` and error messages come from here.

mod archive;
mod explain;
mod freeze;
mod hidden;
mod remote;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, ValueHint};

pub use archive::{Archive, ArchiveAction, ArchiveBuild, ArchiveList, ArchivePrune, ArchiveVerify};
pub use explain::{Explain, Kind as StartKind};
pub use freeze::{Cpu, Freeze};
pub use hidden::{Confined, Manual, Reference, Tables, Traced, Watched};
pub use remote::{Remote, RemoteAction};

/// Makes Python and Ruby programs start in milliseconds: freezes a booted program into an image, an executable file
/// that continues where the boot ended.
#[derive(Debug, Parser)]
#[command(name = "snapboot", version, max_term_width = 100)]
pub struct Arguments {
    #[command(subcommand)]
    pub subcommand: Subcommand,
}

/// Parses the command line; ends the process if it is wrong.
///
/// Words of a command may begin with a hyphen, so clap takes the first unknown option for the command. Without a `--` in front it is a
/// mistake, and clap reports it.
pub fn parse() -> Arguments {
    let arguments = Arguments::parse();
    if let Some(mistake) = unknown_option(&arguments.subcommand, std::env::args_os()) {
        mistake.exit();
    }
    arguments
}

/// Returns clap's error for an unknown option in place of a command. `all`: the command line.
fn unknown_option(subcommand: &Subcommand, all: impl Iterator<Item = OsString>) -> Option<clap::Error> {
    let (name, words, command) = match subcommand {
        Subcommand::Freeze(freeze) => ("freeze", "command", &freeze.command),
        Subcommand::Run(run) => ("run", "words", &run.words),
        Subcommand::Time(time) => ("time", "commands", &time.commands),
        Subcommand::Explain(explain) => ("explain", "words", &explain.words),
        _ => return None,
    };
    let all: Vec<OsString> = all.collect();
    let is_option = command.first()?.as_encoded_bytes().starts_with(b"-") && command[0].len() > 1;
    let is_meant = all.get(all.len().checked_sub(command.len() + 1)?)? == "--";
    if !is_option || is_meant {
        return None;
    }
    // With the hint that words of a command follow, clap insists that they are last.
    let strict = |own: clap::Command| {
        own.mut_arg(words, |word| {
            word.allow_hyphen_values(false).trailing_var_arg(false).value_hint(ValueHint::Unknown)
        })
    };
    Arguments::command().mut_subcommand(name, strict).try_get_matches_from(all).err()
}

#[derive(Debug, clap::Subcommand)]
pub enum Subcommand {
    Freeze(Freeze),
    Refreeze(Refreeze),
    Run(Run),
    Install(Install),
    Uninstall(Uninstall),
    List(List),
    Shellenv(ShellEnv),
    Enable(Enable),
    Disable(Disable),
    Archive(Archive),
    Remote(Remote),
    Inspect(Inspect),
    Verify(Verify),
    Check(Check),
    Time(Time),
    Explain(Explain),
    Completion(Completion),
    Manual(Manual),
    Reference(Reference),
    Tables(Tables),
    Confined(Confined),
    Watched(Watched),
    Traced(Traced),
}

/// The option of commands that show progress or a summary.
#[derive(Args, Clone, Copy, Debug)]
pub struct Quiet {
    /// Print warnings and errors only: no progress, no notes, no summary.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Make images again, each with its own options and command, from the same directory.
///
/// The new image contains what has changed since the old one was made: an upgraded library, an edited source. Variables count as they are now. Where a
/// variable that the old image depends on has another value, nothing is made, and the message names it.
///
/// Exit status: 0 when all were made, else that of the last one that was not (see `snapboot freeze --help`).
#[derive(Debug, Args)]
pub struct Refreeze {
    #[command(flatten)]
    pub verbosity: Quiet,

    /// The images.
    #[arg(value_name = "IMAGE", required = true)]
    pub images: Vec<PathBuf>,
}

/// Start a command from its image, and have the image made where there is none.
///
/// COMMAND is what you would type to start a Python or Ruby program; any other command starts as a shell starts it. Where no image of
/// the store fits, the command starts the ordinary way, and an image for the next time is made in the background: one at a time, at the
/// lowest priority, never on battery or when memory is short. A program that cannot be frozen is left alone until a file that it reads
/// has changed. `snapboot list` shows the images, and why one is missing. SNAPBOOT_LOG=1 says why this start is an ordinary one. The
/// store is `snapboot/images` in XDG_CACHE_HOME (`~/.cache`); SNAPBOOT_STORE names another place, or is `off`.
///
/// Ordinary starts use the boot archive. RUBYOPT or PYTHONPATH names its set-up, which takes itself out of the environment before
/// anything else runs. SNAPBOOT_ARCHIVE=off does without. SNAPBOOT_ARCHIVE_CODE=off does without compiled code,
/// SNAPBOOT_ARCHIVE_LOOKUPS=off without look-ups of features and modules, SNAPBOOT_ARCHIVE_DATA=off without parsed data files. For
/// Ruby, SNAPBOOT_ARCHIVE_GEMS=off does without what RubyGems and Bundler find out. For Python there are SNAPBOOT_ARCHIVE_PATTERNS=off
/// (compiled regular expressions), SNAPBOOT_ARCHIVE_METADATA=off (entry points of installed distributions),
/// SNAPBOOT_ARCHIVE_COLLECTOR=off (no garbage collection while modules are imported) and SNAPBOOT_ARCHIVE_EXIT=off (a shorter end of
/// the process).
///
/// IMAGE runs that image, also where the kernel refuses to execute it: on a file system mounted noexec, or when the file is not
/// executable.
#[derive(Debug, Args)]
#[command(
    override_usage = "snapboot run [--no-freeze] [--store-size SIZE] -- COMMAND [ARG...]\n       snapboot run IMAGE [ARG...]"
)]
pub struct Run {
    /// How large all images of the store may be together, as in 500M or 2G. Those that were used longest ago go first. Default:
    /// SNAPBOOT_STORE_SIZE, or else 2G.
    #[arg(long, value_name = "SIZE", value_parser = store::eviction::parse)]
    pub store_size: Option<u64>,

    /// Start the ordinary way, with the boot archive alone: no image is used, and none is made.
    #[arg(long)]
    pub no_freeze: bool,

    /// Accepted without effect: earlier versions imported modules of Python lazily with it.
    #[arg(long, value_name = "FILTER", num_args = 0..=1, require_equals = true, default_missing_value = "*", hide = true)]
    pub lazy: Option<String>,

    /// The image or the command to run, and its arguments: all that follows the first word is the program's.
    #[arg(value_names = ["IMAGE|COMMAND", "ARG"], required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true,
          value_hint = ValueHint::CommandWithArguments)]
    pub words: Vec<OsString>,
}

/// Put an image in front of installed commands, so that their names start it.
///
/// COMMAND is the name of a console script, a binstub or another Python or Ruby program on PATH, or its path. It is frozen, and a link
/// to its image is put into a directory that must come first on PATH: `snapboot shellenv` prints the line for your shell's start-up
/// file. The command itself is left alone. After an upgrade, or any other change that the image depends on, the next start is an
/// ordinary one, and the image is made again in the background. `snapboot uninstall` takes the link away.
///
/// Exit status: 0 when all were installed, else that of the last one that was not (see `snapboot freeze --help`).
#[derive(Debug, Args)]
pub struct Install {
    #[command(flatten)]
    pub verbosity: Quiet,

    /// Put the link where the command is, for those who start it by its path, and keep the command in a folder `.snapboot` beside
    /// it. An upgrade replaces the link: install the command again then. Refused where others can start the command but could not
    /// reach its image. Default: leave the command alone.
    #[arg(long)]
    pub in_place: bool,

    /// Make the image here, and keep it here. Default: the remote store (SNAPBOOT_REMOTE) is asked for one that fits, and gets what was
    /// made here.
    #[arg(long)]
    pub no_remote: bool,

    /// The commands.
    #[arg(value_name = "COMMAND", required = true, value_hint = ValueHint::CommandName)]
    pub commands: Vec<OsString>,
}

/// Take installed images away: the commands start as they did before.
#[derive(Debug, Args)]
pub struct Uninstall {
    #[command(flatten)]
    pub verbosity: Quiet,

    /// The commands: names as `snapboot list` shows them, or paths of links.
    #[arg(value_name = "COMMAND", required = true)]
    pub commands: Vec<OsString>,
}

/// Show the images of the store: those of installed commands, and those that `snapboot run` has had made.
///
/// A line for each command: its images and their size, how many starts have thawed or fallen back, the time saved where `--version`
/// could be timed, and the state for a start here and now.
#[derive(Debug, Args)]
pub struct List {
    /// Print JSON: for each image name, path, command, installed, state, why, size (bytes), thawed, fallen_back, saved (seconds), and what
    /// the remote store was good for (remote). Default: a table for people.
    #[arg(long, conflicts_with = "openmetrics")]
    pub json: bool,

    /// Print metrics of this machine as OpenMetrics text, for Prometheus and the like: starts and size of each image, the time saved, and what
    /// was fetched from the remote store and given to it.
    #[arg(long)]
    pub openmetrics: bool,
}

/// Print the line that puts installed images first on PATH, for a shell's start-up file.
///
/// For bash, zsh and others like sh: `eval "$(snapboot shellenv)"`. For fish: `snapboot shellenv fish | source`.
#[derive(Debug, Args)]
pub struct ShellEnv {
    /// The shell. Default: that of SHELL.
    #[arg(value_name = "SHELL", value_parser = ["bash", "csh", "dash", "fish", "ksh", "sh", "tcsh", "zsh"])]
    pub shell: Option<String>,
}

/// Give every start of an environment's Python, or of a Ruby, images.
///
/// Puts a file into the environment: `00_snapboot.pth` into the site-packages of a virtual environment, `rbconfig.rb` into the site_ruby of a
/// Ruby. Whatever script (of Python also: module or code) the interpreter starts then goes on as with `snapboot run -- COMMAND`: it is thawed
/// where the store has an image, which is made after the second start. Of Python, each other start has the boot archive. In the place of a
/// virtual environment's `bin/python`, where that is a link, comes a small program that starts images without a Python; in the place of
/// `bin/ruby`, where that is no link and not the system's, one that does so without a Ruby. `snapboot disable` takes all that away. For one
/// start, SNAPBOOT=off does without both, SNAPBOOT_STORE=off without images, SNAPBOOT_ARCHIVE=off without the
/// archive.
#[derive(Debug, Args)]
pub struct Enable {
    #[command(flatten)]
    pub verbosity: Quiet,

    /// The directory of a virtual environment, or one with a Ruby in its `bin`. Default: the active environment (VIRTUAL_ENV, CONDA_PREFIX).
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub environment: Option<PathBuf>,
}

/// Take back what `snapboot enable` has done.
#[derive(Debug, Args)]
pub struct Disable {
    #[command(flatten)]
    pub verbosity: Quiet,

    /// The directory of a virtual environment, or one with a Ruby in its `bin`. Default: the active environment (VIRTUAL_ENV, CONDA_PREFIX).
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub environment: Option<PathBuf>,
}

/// Show what an image holds: the command, sizes by kind and by library, descriptors, inputs, the environment compared.
#[derive(Debug, Args)]
pub struct Inspect {
    /// The image to look into.
    pub image: PathBuf,

    /// Say whether the image would be used here and now and, if not, everything that differs: from what, to what. Exit status 1
    /// when something differs. Default: show what it holds.
    #[arg(long)]
    pub why: bool,

    /// Search the frozen memory, the command and the tables for what should not be there, such as a password: print each match of
    /// the regular expression PATTERN (of bytes) as MAPPING+OFFSET: MATCH. Exit status 0 when something was found, 1 when not, 2
    /// when the image cannot be read.
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["why", "json"])]
    pub strings: Option<OsString>,

    /// Print everything as JSON, every mapping and every input included; with --why: path, state (fresh, stale, not used), why. Default: a
    /// summary for people.
    #[arg(long)]
    pub json: bool,
}

/// Check every byte of an image: head, tables, data pages.
///
/// Exit status: 0 when the image is whole, 1 when it is not (and what is wrong).
#[derive(Debug, Args)]
pub struct Verify {
    #[command(flatten)]
    pub verbosity: Quiet,

    /// The image to check.
    pub image: PathBuf,
}

/// Say what this machine supports, each line with its reason.
///
/// Exit status: 0 when images can be made and used here, 1 when not.
#[derive(Debug, Args)]
pub struct Check {
    /// Print JSON. Default: a list for people.
    #[arg(long)]
    pub json: bool,
}

/// Time a command from start to exit, alone or against another one.
///
/// Each command is started N times with its output going to /dev/null. With --vs the two take turns, so that both see the same machine.
/// Shows median, fastest, spread, the ratio of the medians with a 95 % interval, and a histogram.
///
/// Exit status: 0; 1 when a command failed (unless --allow-failure); 2 when one cannot be started.
#[derive(Debug, Args)]
#[command(
    override_usage = "snapboot time [OPTIONS] -- COMMAND [ARG...] [--vs COMMAND [ARG...]]",
    after_long_help = "\
Examples:
  snapboot time -- ./rails.img runner 1
  snapboot time -n 50 -- ./fastpy -c pass --vs python -c 'import flask'"
)]
pub struct Time {
    /// How many times to start each command, besides two starts to warm up.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub runs: u32,

    /// Print JSON, every single time included. Default: a table for people.
    #[arg(long)]
    pub json: bool,

    /// Go on when a command ends with a status other than 0. Default: stop and show what it wrote to its standard
    /// error.
    #[arg(long)]
    pub allow_failure: bool,

    /// The command to time, and after --vs the one to compare it with.
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true,
          value_hint = ValueHint::CommandWithArguments)]
    pub commands: Vec<OsString>,
}

/// Print the script that completes the words of `snapboot` in a shell, for its start-up file.
///
/// For bash and zsh: `eval "$(snapboot completion bash)"`. For fish: `snapboot completion fish | source`. `make install` and the wheel
/// put these scripts where the shells find them by themselves.
#[derive(Debug, Args)]
pub struct Completion {
    /// The shell.
    #[arg(value_name = "SHELL", value_enum)]
    pub shell: Shell,
}

/// Shells that complete words.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Shell {
    Bash,
    Fish,
    Zsh,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_option_is_no_command() {
        let mistake = |line: &str| {
            let words = || line.split(' ').map(OsString::from);
            let arguments = Arguments::try_parse_from(words()).unwrap();
            unknown_option(&arguments.subcommand, words()).map(|mistake| mistake.to_string())
        };
        let said = mistake("snapboot freeze --preloads json -- python").unwrap();
        assert!(
            said.contains("unexpected argument '--preloads'") && said.contains("similar argument exists: '--preload'"),
            "{said}"
        );
        for line in ["freeze -o x.img -z python", "time -z -- true", "run -x a.img"] {
            assert!(mistake(&format!("snapboot {line}")).unwrap().contains("unexpected argument"), "{line}");
        }
        for line in
            ["freeze -o x.img -- -q", "freeze python -q --preloads x", "time -n 3 -- ls -z", "run a.img -x", "run -"]
        {
            assert_eq!(mistake(&format!("snapboot {line}")), None, "{line}");
        }
    }
}
