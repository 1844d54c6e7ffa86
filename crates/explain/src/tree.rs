//! The model: where the time of each kind of start goes, as a tree, and the advice.

use serde::{Deserialize, Serialize};

/// The results of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The kinds of start that were measured, the ordinary one first.
    pub starts: Vec<Start>,
    /// Why there is no start with the boot archive, if one was wanted: a sentence.
    pub no_archive: Option<String>,
    /// The advice, by saved time.
    pub advice: Vec<Advice>,
    /// Version of Snapboot.
    pub snapboot: String,
    /// The machine: CPU, kernel.
    pub machine: String,
    /// When it was measured, as in 2025-01-31 12:00:00 UTC.
    pub when: String,
}

/// Where the time of one kind of start goes: a tree whose root is the whole process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Which kind: ordinary, with the boot archive, thawed.
    pub title: String,
    /// The command line that was started.
    pub command: String,
    /// How many times.
    pub runs: u32,
    /// How much more processor time the measured starts took than others: 0.03 is 3 %.
    pub overhead: f64,
    /// The whole process.
    pub root: Node,
}

/// One part of a start. Times in seconds: the median of the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// What it is: the name of a module, a step, a library.
    pub name: String,
    /// Which sort of part.
    pub kind: Kind,
    /// More about it, such as a module's file.
    pub detail: Option<String>,
    /// When it began, from the begin of the process.
    pub start: f64,
    /// How long it took, with all its children.
    pub seconds: f64,
    /// Half the width of the middle half of the runs.
    pub spread: f64,
    /// System calls, with those of its children.
    pub system_calls: u64,
    /// Names of files that were looked up and missing, with those of its children.
    pub failed_lookups: u64,
    /// Its parts, in the order of their begins. The rest of its time is its own.
    pub children: Vec<Node>,
}

/// The sort of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The whole process.
    Process,
    /// The interpreter's own start.
    Interpreter,
    /// Switching the boot archive on, and opening it.
    Archive,
    /// Looking for the file of a module or feature.
    Search,
    /// The same, answered from the boot archive.
    Lookup,
    /// Reading and decoding code.
    Code,
    /// Code from the boot archive.
    Stored,
    /// Data from the boot archive: parsed files, regular expressions, results of RubyGems and Bundler.
    Data,
    /// The body of a module or feature, which is executed when it is loaded.
    Body,
    /// Garbage collection.
    Collector,
    /// The end of the process.
    Exit,
    /// The launcher of an image.
    Launcher,
    /// Mapping the memory of an image.
    Mapping,
    /// Page faults.
    Faults,
    /// Renewing the state of one start: arguments, environment, standard streams.
    Context,
    /// A hook of the program.
    Hook,
    /// The main part of the program.
    Main,
    /// Anything else.
    Other,
}

/// Advice about a start's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// One line: the headline.
    pub headline: String,
    /// The finding, and its meaning.
    pub text: String,
    /// Its source: FILE:LINE.
    pub place: Option<String>,
    /// A command to type.
    pub remedy: Option<String>,
    /// The command that starts the result of the remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// The time that a start saves, in seconds.
    pub saves: Option<f64>,
}

impl Node {
    /// Its time without that of its children.
    pub fn own(&self) -> f64 {
        (self.seconds - self.children.iter().map(|child| child.seconds).sum::<f64>()).max(0.0)
    }
}
