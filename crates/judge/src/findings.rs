//! Why a process cannot be frozen: reads the freezer's findings and words them for the user.
//!
//! The code that detects a finding words it as `FACT; REMEDY`: descriptors, memory, timers, threads and the like in
//! crates/freezer (descriptors.rs, captured_memory.rs, prepare.rs, kernel.rs, capture.rs; the kinds in findings.rs
//! there), attributes of the process in crates/inputs attributes.rs, secrets in environment_inputs.rs, per-start facts
//! in reads.rs, files that the boot made in leftovers.rs,
//! threads of the program's that would be lost in crates/freeze programs/report.rs. Each kind has a row in docs/remedies.md.

use std::ffi::OsString;
use std::fmt;
use std::io;

use failure::reason;

use crate::entries::Entries;

/// One reason why a process cannot be frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind: `descriptor`, `memory`, `timer`, ...; a `note` only informs, and does not stop the freeze.
    pub kind: String,
    /// Number of the descriptor, if it is about one.
    pub descriptor: Option<String>,
    /// Name of the attribute of the process, if it is about one.
    pub attribute: Option<String>,
    /// Its text: `FACT; REMEDY`, without the number of the descriptor.
    pub text: String,
    /// Where in the program the descriptor was opened or the attribute changed, as `FILE:LINE`, if known.
    pub opened_by: Option<String>,
}

impl Finding {
    /// A finding that is not about a descriptor.
    pub fn new(kind: &str, text: String) -> Finding {
        Finding { kind: kind.to_owned(), descriptor: None, attribute: None, text, opened_by: None }
    }

    /// Whether the program did not cause it, such as a full disk.
    pub fn is_internal(&self) -> bool {
        self.kind == "internal"
    }

    /// Whether another boot can find out where in the program it comes from.
    pub fn has_origin(&self) -> bool {
        self.descriptor.is_some() || self.attribute.is_some()
    }

    /// Whether it only informs, for example that other threads are dropped.
    pub fn is_note(&self) -> bool {
        self.kind == "note"
    }
}

/// A sentence for the fact, and one for the remedy.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = with_reason(self.text.trim_end_matches('.'));
        let (fact, remedy) = text.split_once("; ").unwrap_or((&text, ""));
        let remedy = recipes::remedy(fact).unwrap_or(remedy);
        if let Some(number) = &self.descriptor {
            write!(f, "descriptor {number} ")?;
        }
        f.write_str(fact)?;
        match &self.opened_by {
            Some(place) if self.attribute.is_some() => write!(f, " (in {place})")?,
            Some(place) => write!(f, ", opened by {place}")?,
            None => {}
        }
        f.write_str(".")?;
        match remedy {
            "" => Ok(()),
            remedy => write!(f, " {}.", capitalised(remedy)),
        }
    }
}

/// Parses the freezer's findings: records of a kind, then the number of a descriptor, the name of an attribute or
/// nothing, then the text.
pub fn read(entries: &Entries) -> Vec<Finding> {
    let finding = |fields: Vec<OsString>| {
        let texts: Vec<String> = fields.iter().map(|field| field.to_string_lossy().into_owned()).collect();
        let [kind, subject, text] = <[String; 3]>::try_from(texts).ok()?;
        let subject = Some(subject).filter(|subject| !subject.is_empty());
        let (descriptor, attribute) = if kind == ATTRIBUTE { (None, subject) } else { (subject, None) };
        Some(Finding { descriptor, attribute, ..Finding::new(&kind, text) })
    };
    entries.records("finding").filter_map(finding).collect()
}

/// The kind of findings about an attribute of the process.
const ATTRIBUTE: &str = "attribute";

/// Adds where descriptors were opened and attributes changed: number or name, then `FILE:LINE`. The last one counts.
pub fn add_origins(findings: &mut [Finding], origins: &[(String, String)]) {
    for finding in findings {
        let subject = finding.descriptor.as_ref().or(finding.attribute.as_ref());
        let place = origins.iter().rev().find(|(of, _)| Some(of) == subject);
        finding.opened_by = place.map(|(_, place)| place.clone());
    }
}

/// Replaces `(errno N)`, which the freezer writes, by the system's text.
fn with_reason(text: &str) -> String {
    let number = text.split_once("(errno ").and_then(|(before, rest)| Some((before, rest.split_once(')')?)));
    let Some((before, (number, after))) = number else { return text.to_owned() };
    let Ok(number) = number.parse() else { return text.to_owned() };
    let error = io::Error::from_raw_os_error(number);
    let remedy = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space, or choose another place with -o"
        }
        _ => "",
    };
    format!("{before}({}){after}{remedy}", reason(&error))
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(descriptor: Option<&str>, text: &str) -> Finding {
        Finding { descriptor: descriptor.map(str::to_owned), ..Finding::new("any", text.into()) }
    }

    #[test]
    fn a_finding_says_where_its_descriptor_came_from_and_what_to_do() {
        let mut findings = [
            finding(Some("7"), "is a connected TCP socket (127.0.0.1:6379); close it in a before_freeze hook"),
            finding(None, "memory 7f00-7f01 is shared and writable"),
            finding(None, "writing the pages failed (errno 28)"),
        ];
        add_origins(&mut findings, &[("7".to_owned(), "redis/connection.py:559".to_owned())]);
        assert_eq!(
            findings.map(|finding| finding.to_string()),
            [
                "descriptor 7 is a connected TCP socket (127.0.0.1:6379), opened by redis/connection.py:559. \
                 Close it in a before_freeze hook.",
                "memory 7f00-7f01 is shared and writable.",
                "writing the pages failed (no space left on device). Free some space, or choose another place with -o."
            ]
        );
    }

    #[test]
    fn a_library_that_is_known_has_a_remedy_of_its_own() {
        let lock = "holds a POSIX file lock on /h/.cache/x/.onnxruntime/onnxruntime.db, and a thaw would not hold it; release it";
        let sentence = finding(Some("100"), lock).to_string();
        assert!(sentence.contains(". Set ORT_DISABLE_TELEMETRY=1, for the freeze"), "{sentence}");
        assert!(!sentence.contains("elease it"), "{sentence}");
    }

    #[test]
    fn findings_are_read_entry_by_entry() {
        let entries = Entries::parse(b"finding=10:descriptor1:71:a\0finding=5:timer0:1:b\0finding=7:cut off\0");
        let read = read(&entries);
        assert_eq!(read.len(), 2);
        assert_eq!(
            (read[0].kind.as_str(), read[0].descriptor.as_deref(), read[0].text.as_str()),
            ("descriptor", Some("7"), "a")
        );
        assert_eq!((read[1].kind.as_str(), read[1].text.as_str()), ("timer", "b"));
    }
}
