//! Attributes of its process that a boot has changed and a thaw cannot: what front end, freezer and recorder know of them, in one list.

use std::collections::BTreeSet;

use failure::Result;
use image::fact_kind;
use inputs::attributes::{Attribute, Source};

use crate::entries::Entries;
use crate::findings::Finding;
use crate::report::Outcome;

/// The names by which the front end knows the attributes, by their numbers; `+` before those that a thaw sets again.
pub fn add_to(request: &mut Entries) {
    for attribute in Attribute::ALL {
        let sign = if attribute.is_repeated() { '+' } else { '-' };
        request.push("attribute", format!("{sign}{}", attribute.name()));
    }
}

/// Of the names that a front end has reported as changed, those of `is_repeated`.
pub fn reported(report: &Entries, is_repeated: bool) -> Vec<Attribute> {
    let named = |name: String| Attribute::ALL.iter().copied().find(|attribute| attribute.name() == name);
    report.texts("attribute").filter_map(named).filter(|attribute| attribute.is_repeated() == is_repeated).collect()
}

/// What came of a boot, when what the recorder has seen counts, too.
pub fn judged(outcome: Result<Outcome>, set: &BTreeSet<Attribute>) -> Result<Outcome> {
    let mut seen = seen(set, outcome.is_ok()).peekable();
    let mut findings = match outcome {
        Ok(Outcome::Refused(findings)) => findings,
        outcome if seen.peek().is_none() => return outcome,
        _ => Vec::new(),
    };
    add(&mut findings, seen);
    Ok(Outcome::Refused(findings))
}

/// The facts that an image depends on besides for what the boot has changed: where it went from the directory of its start, it would go from
/// another to another place.
pub fn bound_to(repeated: &[Attribute], set: &BTreeSet<Attribute>) -> Option<(u32, u32)> {
    let moved = repeated.contains(&Attribute::Directory) && set.contains(&Attribute::Directory);
    moved.then_some((fact_kind::CWD, 0))
}

/// Adds the attributes that the freezer has not named.
pub fn add(findings: &mut Vec<Finding>, attributes: impl IntoIterator<Item = Attribute>) {
    for attribute in attributes {
        if !findings.iter().any(|finding| finding.attribute.as_deref() == Some(attribute.name())) {
            findings.push(Finding {
                attribute: Some(attribute.name().to_owned()),
                ..Finding::new("attribute", attribute.finding().concat())
            });
        }
    }
}

/// Those that the recorder has seen being set, and that a freeze is refused for. `has_told`: whether the boot came to its end, where the process
/// itself has told of those that can be read.
fn seen(set: &BTreeSet<Attribute>, has_told: bool) -> impl Iterator<Item = Attribute> + '_ {
    set.iter().copied().filter(move |attribute| {
        !attribute.is_repeated() && (!has_told || is_untold(*attribute)) && !is_inherited(*attribute)
    })
}

/// Whether the kernel tells a boot nothing of it, or tells what belongs to the boot alone: it leads a process group of its own, and the
/// recorder's filter may need the flag.
fn is_untold(attribute: Attribute) -> bool {
    use Attribute::{LockedMemory, NoNewPrivileges, ProcessGroup, Root, SeccompFilters, Session};
    attribute.source() == Source::Seen
        || matches!(attribute, LockedMemory | NoNewPrivileges | ProcessGroup | Root | SeccompFilters | Session)
}

/// Whether each start has it anyway.
fn is_inherited(attribute: Attribute) -> bool {
    attribute == Attribute::NoNewPrivileges && rustix::thread::no_new_privs().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_process_can_tell_counts_only_where_it_has_not() {
        let set = BTreeSet::from([Attribute::Directory, Attribute::Users, Attribute::Landlock]);
        assert_eq!(seen(&set, true).collect::<Vec<_>>(), [Attribute::Landlock]);
        assert_eq!(seen(&set, false).collect::<Vec<_>>(), [Attribute::Users, Attribute::Landlock]);
    }

    #[test]
    fn each_attribute_is_found_once() {
        let mut findings = Vec::new();
        add(&mut findings, [Attribute::Users, Attribute::Users, Attribute::Session]);
        let texts: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts[0].starts_with("the program has changed its user ids"), "{texts:?}");
        assert!(texts[0].contains("more rights") && !texts[1].contains("more rights"), "{texts:?}");
    }
}
