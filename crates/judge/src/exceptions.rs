//! Reads that do not make what was read an input, or not all of it: one table, each row with its reason. variables.rs says which list is for
//! which variables.
//!
//! What a front end renews after a thaw needs a row in FACTS, VARIABLES, RENEWED_VARIABLES or PER_START_READS: without one the image stays bound
//! to what it was at the freeze, or the freeze is refused.
//!
//! A reader is a file, by the end of its path; "" stands for C code, of which nobody knows who calls it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use image::fact_kind;
use runtime::Language;

/// A variable that need not count.
pub struct VariableRead {
    /// What the reader is written in.
    pub language: Language,
    /// See the module's description.
    pub reader: &'static str,
    /// The variable.
    pub name: &'static str,
}

/// Variables whose readers leave no trace of the value that the front end does not renew.
pub const VARIABLES: &[VariableRead] = &[
    // Looks for packages of the user; the front end renews where these are, or starts the ordinary way where there are any.
    VariableRead { language: Language::Python, reader: "<frozen site>", name: "HOME" },
    // Puts its own directory in front of it, and so does the front end after a thaw with what PATH is then.
    VariableRead { language: Language::Ruby, reader: "/bundler/shared_helpers.rb", name: "PATH" },
];

/// What C code of a runtime reads at its own start, and the front end renews after a thaw: environment.rb sets it anew (in Python, where the
/// runtime's own reads do not count, environment.py calls `tzset`).
pub const RENEWED_VARIABLES: &[&str] = &["TZ"];

/// Whoever looks at the whole environment and keeps, or passes on, only part of it.
pub struct FullRead {
    /// A file, or the name of a program that is executed.
    pub reader: &'static str,
    /// Name patterns of what counts.
    pub names: &'static [&'static str],
}

impl FullRead {
    /// Whether this variable counts.
    pub fn wants(&self, name: &OsStr) -> bool {
        self.names.iter().any(|pattern| inputs::environment::matches(pattern.as_bytes(), name.as_bytes()))
    }
}

/// Readers of the whole environment of which it is known what they want with it. tests/staleness/test_environment.py reads this list, and
/// freezes a program for each row.
pub const ENVIRONMENT_READERS: &[FullRead] = &[
    // Keeps a copy for programs that the application starts without Bundler.
    FullRead { reader: "/bundler/environment_preserver.rb", names: &[] },
    // Picks its settings.
    FullRead { reader: "/bundler/settings.rb", names: &["BUNDLE_*"] },
    // Gives it to ldconfig, gcc, ld and objdump, which say where a library is. LD_* is always an input.
    FullRead { reader: "/ctypes/util.py", names: &["PATH", "LIBRARY_PATH"] },
    // Looks for settings.
    FullRead { reader: "/tqdm/utils.py", names: &["TQDM_*", "COLUMNS", "LINES"] },
    // Gives it to ip and the like, which say what the network card's number is.
    FullRead { reader: "/uuid.py", names: &["PATH"] },
];

/// Programs that read nothing of their environment but this.
pub const PROGRAMS: &[FullRead] = &[
    FullRead { reader: "ldconfig", names: &[] },
    FullRead { reader: "uname", names: &[] },
    // What ctypes.util runs to find a library.
    FullRead { reader: "gcc", names: COMPILER },
    FullRead { reader: "cc", names: COMPILER },
    FullRead { reader: "ld", names: COMPILER },
    FullRead { reader: "objdump", names: &[] },
];

const COMPILER: &[&str] = &["PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "LD_RUN_PATH", "TMPDIR"];

/// A fact that need not count.
pub struct FactRead {
    /// What the reader is written in.
    pub language: Language,
    /// See the module's description.
    pub reader: &'static str,
    /// One of [`image::fact_kind`].
    pub kind: u32,
    /// The exception holds unless the reader found this variable unset.
    pub unless_unset: Option<&'static str>,
}

/// Facts whose readers throw them away, or compare them with each other only. (What a runtime reads at its own start is no input
/// either: the launcher compares the stack limit itself, and refuses to run where real and effective ids differ.)
pub const FACTS: &[FactRead] = &[
    // Compares real and effective ids before it looks at each file that is loaded. Process.uid and the like are noted by themselves.
    FactRead { language: Language::Ruby, reader: "", kind: fact_kind::USER, unless_unset: None },
    // Names the platform in paths, and drops the host's name.
    FactRead { language: Language::Python, reader: "/sysconfig.py", kind: fact_kind::HOSTNAME, unless_unset: None },
    FactRead {
        language: Language::Python,
        reader: "/sysconfig/__init__.py",
        kind: fact_kind::HOSTNAME,
        unless_unset: None,
    },
    FactRead {
        language: Language::Python,
        reader: "/distutils/util.py",
        kind: fact_kind::HOSTNAME,
        unless_unset: None,
    },
    // Wants the architecture, and has the other answers behind names that nobody reads.
    FactRead {
        language: Language::Python,
        reader: "core/_add_newdocs_scalars.py",
        kind: fact_kind::HOSTNAME,
        unless_unset: None,
    },
    // Chooses colours: for a command that is being made, and for the log of the development server, which sets logging up anew.
    FactRead {
        language: Language::Python,
        reader: "/django/core/management/color.py",
        kind: fact_kind::TERMINAL,
        unless_unset: None,
    },
    // Looks for the Gemfile from there upwards, unless it is told which.
    FactRead {
        language: Language::Ruby,
        reader: "/bundler/shared_helpers.rb",
        kind: fact_kind::CWD,
        unless_unset: Some("BUNDLE_GEMFILE"),
    },
    // Wants to know how to tell of gems that are missing, and then the boot has failed.
    FactRead { language: Language::Ruby, reader: "/bundler/setup.rb", kind: fact_kind::TERMINAL, unless_unset: None },
    // Takes it for the root of an application whose file is nowhere below a config.ru.
    FactRead { language: Language::Ruby, reader: "/rails/application.rb", kind: fact_kind::CWD, unless_unset: None },
];

/// Python's readers of the current directory that only keep it, as another start shows (session/other_start.rs): multiprocessing and its form in Celery tell
/// those that they spawn, rich looks for sources.
const DIRECTORY_KEEPERS: [&str; 3] = ["/multiprocessing/process.py", "/billiard/process.py", "/rich/__init__.py"];

/// A per-start fact that may be read while booting, though an image cannot be bound to it.
pub struct EarlyRead {
    /// What the reader is written in.
    pub language: Language,
    /// See the module's description.
    pub reader: &'static str,
    /// What it reads, in the front ends' words.
    pub what: &'static str,
    /// Patterns of arguments with which it would have kept something: starts with one of these are ordinary.
    pub guards: &'static [&'static str],
}

/// Readers that keep nothing of it.
pub const PER_START_READS: &[EarlyRead] = &[
    // Reads the file of every module, to find the one that some code is in.
    EarlyRead { language: Language::Python, reader: "/inspect.py", what: "__main__.__file__", guards: &[] },
    // A list of versions that scripts of old installers set before they import it; without one it takes what is installed.
    EarlyRead {
        language: Language::Python,
        reader: "/pkg_resources/__init__.py",
        what: "__main__.__requires__",
        guards: &[],
    },
    // Counts them to tell whether ssh has called it, which a variable says, too.
    EarlyRead { language: Language::Python, reader: "/ansible/cli/__init__.py", what: "sys.argv", guards: &[] },
    // Looks for options of its own tests.
    EarlyRead {
        language: Language::Python,
        reader: "/tensorflow/python/distribute/multi_process_lib.py",
        what: "sys.argv",
        guards: &["--tpu*"],
    },
    // Loads plugins that they name.
    EarlyRead { language: Language::Ruby, reader: "/yard/config.rb", what: "ARGV", guards: &["--plugin", "--safe"] },
    // Takes $0 where nobody but itself is found, and the front end renews that.
    EarlyRead { language: Language::Ruby, reader: "/sinatra/base.rb", what: "who calls it (caller)", guards: &[] },
];

/// What is no reason to leave a module out of training: the rows of [`PER_START_READS`], of [`ENVIRONMENT_READERS`], which read `*`, and those of
/// [`FACTS`] about a start, and [`DIRECTORY_KEEPERS`]. Each reader, and what it may read in the front ends' words.
pub fn harmless() -> impl Iterator<Item = (&'static str, &'static str)> {
    let wholes = ENVIRONMENT_READERS.iter().map(|row| (row.reader, "*"));
    let early = PER_START_READS.iter().map(|row| (row.reader, row.what));
    let of_kind = |word: &&str| inputs::facts::kind(word.as_bytes());
    let facts = FACTS.iter().filter(|row| !row.reader.is_empty() && row.unless_unset.is_none());
    let keepers = DIRECTORY_KEEPERS.iter().map(|reader| (*reader, "cwd"));
    early.chain(wholes).chain(keepers).chain(facts.filter_map(move |row| {
        let word = FACTS_OF_A_START.iter().find(|word| of_kind(word) == Some(row.kind))?;
        Some((row.reader, *word))
    }))
}

const FACTS_OF_A_START: &[&str] = &["cwd", "hostname", "terminal", "window"];

/// Whether a read of a reader falls under a row.
pub fn is_by(reader: Option<&str>, row: &str) -> bool {
    reader.map_or(row.is_empty(), |reader| !row.is_empty() && reader.ends_with(row))
}
