//! What sensors have seen a boot read: front ends tell of the program's own code, with file and line, the freezer of C code. Nobody but the judge
//! says what follows from it.
//!
//! What they write is defined in the crate `channel`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

pub use channel::{Kind, Phase};

use crate::entries::Entries;

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
    /// Of a fact the number that it is of, and of a variable that C code has read the digest of its value, in hexadecimal digits.
    pub detail: String,
    /// Whether the front end renews after a thaw what came of it.
    pub is_renewed: bool,
}

impl Event {
    /// All events of a report, or of what the freezer has noted, in their order.
    pub fn all(entries: &Entries) -> Vec<Event> {
        entries.records("event").filter_map(|fields| Event::of(&fields)).collect()
    }

    fn of(fields: &[OsString]) -> Option<Event> {
        let text = |number: usize| fields.get(number).map(|field| field.to_string_lossy().into_owned());
        let named = |number| text(number).filter(|name| !name.is_empty());
        Some(Event {
            kind: Kind::of(fields.first()?.as_bytes())?,
            phase: Phase::of(fields.get(1)?.as_bytes())?,
            subject: fields.get(2)?.clone(),
            reader: named(3),
            place: named(4),
            detail: text(5).unwrap_or_default(),
            is_renewed: named(6).is_some(),
        })
    }

    /// Kind and number of a fact; None of what is none, or is not known here.
    pub fn fact(&self) -> Option<(u32, u32)> {
        let kind = (self.kind == Kind::Fact).then(|| inputs::facts::kind(self.subject.as_bytes()));
        kind.flatten().map(|kind| (kind, self.of_number()))
    }

    /// The number that a fact is of.
    fn of_number(&self) -> u32 {
        self.detail.parse().unwrap_or(0)
    }

    /// Whether this variable was read.
    pub fn is_of_variable(&self, name: &OsStr) -> bool {
        self.kind == Kind::Variable && self.subject == name
    }

    /// Whether the same was read.
    pub fn is_same(&self, other: &Event) -> bool {
        self.kind == other.kind
            && self.subject == other.subject
            && (self.kind != Kind::Fact || self.of_number() == other.of_number())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What a front end tells of what one file has read.
    pub fn read_by(reader: &str, read: &[(Kind, &str)]) -> Entries {
        let mut report = Entries::default();
        for (number, (kind, subject)) in (1..).zip(read) {
            let place = if reader.is_empty() { String::new() } else { format!("{reader}:{number}") };
            add(&mut report, &[kind.word(), Phase::Program.word(), subject, reader, &place]);
        }
        report
    }

    /// What the freezer notes of C code: each with its detail.
    pub fn noted(phase: Phase, read: &[(Kind, &str, &str)]) -> Entries {
        let mut noted = Entries::default();
        read.iter().for_each(|(kind, subject, detail)| {
            add(&mut noted, &[kind.word(), phase.word(), subject, "", "", detail]);
        });
        noted
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
        let all = Event::all(&entries);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].fact(), Some((image::fact_kind::LIMIT, 7)));
        assert_eq!((all[0].reader.as_deref(), all[0].place.as_deref()), (Some("/a.py"), Some("/a.py:3")));
        assert!(all[0].is_renewed && !all[1].is_renewed);
        assert_eq!((all[1].phase, all[1].reader.as_deref()), (Phase::Trial, None));
    }
}
