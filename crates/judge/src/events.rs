//! What sensors have seen a boot read: front ends tell of the program's own code, with file and line, the freezer of C code. Nobody but the judge
//! says what follows from it.
//!
//! The one definition of what they write (docs/internals/protocol.md): an entry `KIND=SUBJECT` begins an event, and the entries behind it belong to it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use crate::entries::Entries;
use crate::environment::Environment;

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A variable, by its name.
    Variable,
    /// All variables.
    AllVariables,
    /// All variables, by a program of this name that was started with them.
    Executed,
    /// Something about machine, user or process: a word of [`inputs::facts`], and a number.
    Fact,
    /// Something that is another one in each start, and cannot be compared.
    Early,
    /// A variable, by C code that is no part of Ruby.
    Foreign,
}

impl Kind {
    fn of(key: &str) -> Option<Kind> {
        Some(match key {
            "variable" => Kind::Variable,
            "variables" => Kind::AllVariables,
            "executed" => Kind::Executed,
            "fact" => Kind::Fact,
            "early" => Kind::Early,
            "foreign" => Kind::Foreign,
            _ => return None,
        })
    }
}

/// Who reads, as the freezer is told from time to time (`phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The runtime, which starts.
    #[default]
    Runtime,
    /// The front end.
    FrontEnd,
    /// The program.
    Program,
}

/// One read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What was read.
    pub kind: Kind,
    /// Of what: the name of a variable, of a program, of a fact.
    pub subject: OsString,
    /// Who reads.
    pub phase: Phase,
    /// The file that reads; None for C code.
    pub reader: Option<String>,
    /// `FILE:LINE`.
    pub place: Option<String>,
    /// Digest of the value that C code got, in hexadecimal digits.
    digest: Option<String>,
    /// The number that a fact is of.
    of: u32,
    /// Whether the front end renews after a thaw what came of it.
    pub is_renewed: bool,
}

impl Event {
    /// All events of a report, or of what the freezer has noted, in their order.
    pub fn all(entries: &Entries) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        let mut phase = Phase::Runtime;
        for (key, value) in entries.iter() {
            let text = || Some(value.to_string_lossy().into_owned());
            match (key, Kind::of(key), events.last_mut()) {
                ("phase", ..) if value == "program" => phase = Phase::Program,
                ("phase", ..) => phase = Phase::FrontEnd,
                (_, Some(kind), _) => events.push(Event {
                    kind,
                    subject: value.to_owned(),
                    phase,
                    reader: None,
                    place: None,
                    digest: None,
                    of: 0,
                    is_renewed: false,
                }),
                ("reader", _, Some(event)) => event.reader = text(),
                ("place", _, Some(event)) => event.place = text(),
                ("renewed", _, Some(event)) => event.is_renewed = true,
                ("digest", _, Some(event)) => event.digest = text(),
                ("of", _, Some(event)) => event.of = value.to_string_lossy().parse().unwrap_or(0),
                _ => {}
            }
        }
        events
    }

    /// Kind and number of a fact; None of what is none, or is not known here.
    pub fn fact(&self) -> Option<(u32, u32)> {
        let kind = (self.kind == Kind::Fact).then(|| inputs::facts::kind(self.subject.as_bytes()));
        kind.flatten().map(|kind| (kind, self.of))
    }

    /// Whether this variable was read.
    pub fn is_of_variable(&self, name: &OsStr) -> bool {
        self.kind == Kind::Variable && self.subject == name
    }

    /// Whether the same was read.
    pub fn is_same(&self, other: &Event) -> bool {
        (self.kind, &self.subject, self.of) == (other.kind, &other.subject, other.of)
    }

    /// Whether a variable was as the boot was started with, and not set by the program itself.
    pub fn is_of_boot(&self, environment: &Environment) -> bool {
        let digest = |value: &OsStr| image::digest(value.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        let given = self.subject.to_str().and_then(|name| environment.value(name));
        self.kind != Kind::Variable || self.digest == given.map(digest)
    }
}
