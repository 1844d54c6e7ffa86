//! A boot that has written its memory, and what a start has used of it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use image_file::info::LeftOut;
use inputs::attributes::Attribute;
use inputs::cpu::Level;
use judge::reads::Reads;
use recorder::Accesses;
use runtime::terminal::Terminal;

use crate::boot_inputs::Importer;

/// A boot that has written its memory.
pub struct Boot {
    /// What front end and freezer reported.
    pub report: Report,
    /// What the recorder saw.
    pub accesses: Accesses,
    /// When it began (ns since 1970).
    pub begun: i64,
}

/// What front end and freezer reported about a boot that was written.
#[derive(Debug, Default)]
pub struct Report {
    /// Files whose content was loaded.
    pub loaded: Vec<PathBuf>,
    /// Directories in which Python looked modules up.
    pub importers: Vec<Importer>,
    /// Names that were preloaded.
    pub preloaded: Vec<String>,
    /// What was loaded because of training runs.
    pub learnt: Vec<String>,
    /// How many regular expressions were compiled because of training runs.
    pub patterns: usize,
    /// What training runs loaded and this boot did not.
    pub left_out: Vec<LeftOut>,
    /// What the boot read of its environment, and of machine, user and process.
    pub reads: Reads,
    /// Attributes of the process that the boot changed and a thaw sets again.
    pub repeated: Vec<Attribute>,
    /// What the front end itself compares after a thaw, in words.
    pub compared: Vec<String>,
    /// Whether another start can show what depends on the start.
    pub knows_start: bool,
    /// Whether only its search path does.
    pub only_searches: bool,
    /// What the boot looked up along its search path.
    pub searched: Searched,
    /// Whether the boot printed anything.
    pub said: bool,
    /// Where it differs from another start in more than what a thaw renews.
    pub differs: Vec<String>,
    /// Patterns of variables that make a difference to it, of those that another start had in addition.
    pub picked: Vec<String>,
    /// Facts in a text that cannot be replaced, and the holder of the text.
    pub held: Vec<(String, String)>,
    /// The first import of a Python main part that was left to each start; empty for a Ruby script of which nothing was
    /// loaded.
    pub left: Option<String>,
    /// Facts with whose values the program compared a text of its own, and where.
    pub values_compared: Vec<(String, String)>,
    /// Messages to the user.
    pub warnings: Vec<String>,
    /// Arguments that force the fallback, named by a framework's recipe.
    pub guards: Vec<OsString>,
    /// Whether any secret was read.
    pub has_read_secrets: bool,
    /// What was derived from secrets, in words, if the boot looked for that.
    pub derived: Vec<String>,
    /// Name and version of the runtime, as the runtime reports them.
    pub runtime: Option<String>,
}

/// What a boot looked up along its search path.
#[derive(Debug, Default)]
pub struct Searched {
    /// Names that were looked up beyond the variable's directories in the search path.
    pub names: BTreeSet<OsString>,
    /// The directories in the variable's place.
    pub directories: Vec<PathBuf>,
}

/// The kind of starts that a boot is for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartKind {
    /// Their terminal, if they have one.
    pub terminal: Option<Terminal>,
    /// Variables whose values differ from this process'; None unsets a variable.
    pub variables: Vec<(OsString, Option<OsString>)>,
    /// The level of their CPU, if the image is for a lower one.
    pub level: Option<Level>,
}

impl StartKind {
    /// Whether these are starts like `other` but for the CPU.
    pub fn is_like(&self, other: &StartKind) -> bool {
        self.terminal == other.terminal && self.variables == other.variables
    }
}

/// The pages that a thawed process has used.
#[derive(Default)]
pub struct UsedPages {
    /// Addresses of the written pages.
    pub written: BTreeSet<u64>,
    /// Offsets in the image of all used pages.
    pub touched: Vec<u64>,
    /// Row of the files section and offset in that file, of all pages of mapped files in memory; a rehearsal alone looks.
    pub of_files: BTreeSet<(u32, u64)>,
}

/// The pages of a training run from an image.
pub struct RunPages {
    /// Its first argument; empty if it had none.
    pub argument: OsString,
    /// The addresses of the pages that were written.
    pub written: BTreeSet<u64>,
}
