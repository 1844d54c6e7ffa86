//! What a boot read, as recorded by the sensors: front ends record reads of the program's own code, with file and line,
//! and the freezer those of C code. Only the judge decides what follows.
//!
//! The crate `channel` defines the format.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

pub use channel::{Kind, Phase};

use crate::entries::Entries;

/// One read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What was read.
    pub kind: Kind,
    /// The name of the variable, program or fact.
    pub subject: OsString,
    /// Who reads.
    pub phase: Phase,
    /// The file of the reader; None for C code.
    pub reader: Option<String>,
    /// `FILE:LINE`.
    pub place: Option<String>,
    /// Of a fact the number that it is about; of a variable that C code read the digest of its value, in hexadecimal.
    pub detail: String,
    /// Whether the front end renews the result after a thaw.
    pub is_renewed: bool,
}

impl Event {
    /// All events of a front end's report, or of the freezer's file, in order.
    pub fn parse_all(entries: &Entries) -> Vec<Event> {
        entries.records("event").filter_map(|fields| Event::parse(&fields)).collect()
    }

    fn parse(fields: &[OsString]) -> Option<Event> {
        let text = |number: usize| fields.get(number).map(|field| field.to_string_lossy().into_owned());
        let named = |number| text(number).filter(|name| !name.is_empty());
        Some(Event {
            kind: Kind::from_word(fields.first()?.as_bytes())?,
            phase: Phase::from_word(fields.get(1)?.as_bytes())?,
            subject: fields.get(2)?.clone(),
            reader: named(3),
            place: named(4),
            detail: text(5).unwrap_or_default(),
            is_renewed: named(6).is_some(),
        })
    }

    /// Kind and number of a fact; None if the event is not about a fact, or the fact is unknown.
    pub fn fact(&self) -> Option<(u32, u32)> {
        let kind = (self.kind == Kind::Fact).then(|| inputs::facts::kind_from_word(self.subject.as_bytes()));
        kind.flatten().map(|kind| (kind, self.of_number()))
    }

    /// The number that a fact is about.
    fn of_number(&self) -> u32 {
        self.detail.parse().unwrap_or(0)
    }

    /// Whether this variable was read.
    pub fn is_of_variable(&self, name: &OsStr) -> bool {
        self.kind == Kind::Variable && self.subject == name
    }

    /// Whether both events read the same thing.
    pub fn is_same(&self, other: &Event) -> bool {
        self.kind == other.kind
            && self.subject == other.subject
            && (self.kind != Kind::Fact || self.of_number() == other.of_number())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A front end's report of the reads of one file.
    pub fn read_by(reader: &str, read: &[(Kind, &str)]) -> Entries {
        let mut report = Entries::default();
        for (number, (kind, subject)) in (1..).zip(read) {
            let place = if reader.is_empty() { String::new() } else { format!("{reader}:{number}") };
            add(&mut report, &[kind.word(), Phase::Program.word(), subject, reader, &place]);
        }
        report
    }

    /// The freezer's events of C code, each with its detail.
    pub fn from_c(phase: Phase, read: &[(Kind, &str, &str)]) -> Entries {
        let mut events = Entries::default();
        read.iter().for_each(|(kind, subject, detail)| {
            add(&mut events, &[kind.word(), phase.word(), subject, "", "", detail]);
        });
        events
    }

    pub fn add(entries: &mut Entries, fields: &[&str]) {
        entries.push_record("event", &fields.iter().map(OsStr::new).collect::<Vec<_>>());
    }

    #[test]
    fn an_event_is_read_as_it_is_written_and_one_that_is_cut_off_is_none() {
        let mut entries = Entries::default();
        add(&mut entries, &["fact", "program", "limit", "/a.py", "/a.py:3", "7", "1"]);
        add(&mut entries, &["variable", "trial", "A"]);
        add(&mut entries, &["variable", "program"]);
        add(&mut entries, &["other", "program", "A"]);
        let all = Event::parse_all(&entries);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].fact(), Some((inputs::facts::fact_kind::LIMIT, 7)));
        assert_eq!((all[0].reader.as_deref(), all[0].place.as_deref()), (Some("/a.py"), Some("/a.py:3")));
        assert!(all[0].is_renewed && !all[1].is_renewed);
        assert_eq!((all[1].phase, all[1].reader.as_deref()), (Phase::Trial, None));
    }
}
