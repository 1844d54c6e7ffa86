//! The command line of `snapboot archive`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::Quiet;

/// Work with boot archives, which make ordinary starts of Ruby and Python programs faster.
///
/// ARCHIVE is the file, or the directory of a program: the archive is then where its boots look for it.
#[derive(Debug, Args)]
pub struct Archive {
    #[command(subcommand)]
    pub action: ArchiveAction,
}

/// What can be done with a boot archive.
#[derive(Debug, clap::Subcommand)]
pub enum ArchiveAction {
    Build(ArchiveBuild),
    List(ArchiveList),
    Verify(ArchiveVerify),
    Prune(ArchivePrune),
    Push(ArchivePush),
    Pull(ArchivePull),
}

/// Give an archive to the remote store (SNAPBOOT_REMOTE).
///
/// An archive with the content of a file that only its owner may read, or the value of a variable that looks like a secret, stays here.
#[derive(Debug, Args)]
pub struct ArchivePush {
    /// The archive, or the directory of its program.
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
}

/// Take an archive from the remote store, before the first boot of a program.
///
/// It is that of a program at the same path. What does not fit this machine in it is not used, as each entry compares its inputs. An archive that is there stays if it is as new.
///
/// Exit status: 0 when an archive is there, 1 when the remote store has none.
#[derive(Debug, Args)]
pub struct ArchivePull {
    /// Where it goes: a file, or the directory of its program.
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
}

/// Fill an archive with everything that boots of a program may need: for container builds.
///
/// Compiles all code below the program's directory and on the load path of Ruby or Python, and lists the directories there, without
/// running the program. For Ruby it also reads data files and lets Bundler resolve the Gemfile. For Python it leaves out packages named
/// `test` and `tests`. It replaces the archive that was there, and leaves nothing else behind. SNAPBOOT_ARCHIVE_CODE=off and the like
/// (see `snapboot run --help`) leave parts out.
#[derive(Debug, Args)]
#[command(override_usage = "snapboot archive build [-o FILE] [DIR...] [-- COMMAND [ARG...]]")]
pub struct ArchiveBuild {
    #[command(flatten)]
    pub verbosity: Quiet,

    /// Where to write the archive. Default: where the program's boots look for it (SNAPBOOT_ARCHIVE, `tmp/cache/snapboot.archive`
    /// of the program, or the store).
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// The program's directory, and others whose code is to be compiled, too. Default: the working directory.
    #[arg(value_name = "DIR")]
    pub directories: Vec<PathBuf>,

    /// The command that will be booted: it says which Ruby or Python, with which options, and which main script. Default: `ruby`.
    #[arg(value_name = "COMMAND", last = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// Show what an archive holds.
#[derive(Debug, Args)]
pub struct ArchiveList {
    /// The archive, or the directory of its program.
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,

    /// Print JSON, every input included. Default: a table for people.
    #[arg(long)]
    pub json: bool,
}

/// Check every byte of an archive that is ever used.
///
/// Exit status: 0 when the archive is whole, 1 when it is not (and what is wrong).
#[derive(Debug, Args)]
pub struct ArchiveVerify {
    #[command(flatten)]
    pub verbosity: Quiet,

    /// The archive, or the directory of its program.
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
}

/// Write an archive anew without what is of no use: superseded and damaged entries, and those whose sources are gone.
#[derive(Debug, Args)]
pub struct ArchivePrune {
    #[command(flatten)]
    pub verbosity: Quiet,

    /// The archive, or the directory of its program.
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,

    /// The size that the archive may have afterwards (MB); beyond it the oldest entries go. Default: SNAPBOOT_ARCHIVE_MAX,
    /// or 256.
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub max: Option<u64>,
}
