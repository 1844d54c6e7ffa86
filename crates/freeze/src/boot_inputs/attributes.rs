//! Attributes of its process that a boot changed and a thaw cannot: combines what front end, freezer and recorder know.

use std::collections::BTreeSet;

use inputs::attributes::{Attribute, Source};
use inputs::facts::fact_kind;
use judge::entries::Entries;
use judge::findings::Finding;

/// The attributes that a front end reported as changed: those that a thaw sets again if `is_repeated`, otherwise the
/// others.
pub fn reported(report: &Entries, is_repeated: bool) -> Vec<Attribute> {
    let named = |name: String| Attribute::ALL.iter().copied().find(|attribute| attribute.name() == name);
    report.texts("attribute").filter_map(named).filter(|attribute| attribute.is_repeated() == is_repeated).collect()
}

/// Further facts that bind an image whose boot set these attributes. A boot that changed its directory would end up
/// elsewhere from another start directory. And only under the same user does setting an attribute to its current value,
/// or back again, change nothing.
pub fn bound_to(repeated: &[Attribute], set: &BTreeSet<Attribute>) -> impl Iterator<Item = (u32, u32)> {
    let has_moved = repeated.contains(&Attribute::Directory) && set.contains(&Attribute::Directory);
    let has_set = |attributes: &[Attribute]| attributes.iter().any(|attribute| set.contains(attribute));
    let user = has_set(&[Attribute::Users, Attribute::Groups, Attribute::Capabilities]);
    let groups = has_set(&[Attribute::SupplementaryGroups]);
    let all = [(has_moved, fact_kind::CWD), (user, fact_kind::USER), (groups, fact_kind::GROUPS)];
    all.into_iter().filter_map(|(counts, kind)| counts.then_some((kind, 0)))
}

/// Adds findings for the attributes that the freezer has not found.
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

/// The attributes that the recorder saw being set and that cannot be frozen. `has_reported` says whether the boot came to
/// its end, where the process itself reports the readable ones.
pub fn seen(set: &BTreeSet<Attribute>, has_reported: bool) -> impl Iterator<Item = Attribute> + '_ {
    set.iter()
        .copied()
        .filter(move |attribute| !attribute.is_repeated() && (!has_reported || is_unreported(*attribute)))
}

/// Whether the kernel does not report the attribute to a boot, or reports what is peculiar to the boot: it leads its
/// own process group, and the recorder's filter may need the flag.
fn is_unreported(attribute: Attribute) -> bool {
    use Attribute::{LockedMemory, NoNewPrivileges, ProcessGroup, Root, SeccompFilters, Session};
    attribute.source() == Source::Seen
        || matches!(attribute, LockedMemory | NoNewPrivileges | ProcessGroup | Root | SeccompFilters | Session)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_process_can_tell_counts_only_where_it_has_not() {
        let set = BTreeSet::from([Attribute::Directory, Attribute::Users, Attribute::Landlock]);
        assert_eq!(seen(&set, true).collect::<Vec<_>>(), [Attribute::Landlock]);
        assert_eq!(seen(&set, false).collect::<Vec<_>>(), [Attribute::Users, Attribute::Landlock]);
        assert_eq!(bound_to(&[], &set).collect::<Vec<_>>(), [(fact_kind::USER, 0)]);
        let moved = bound_to(&[Attribute::Directory], &set);
        assert_eq!(moved.collect::<Vec<_>>(), [(fact_kind::CWD, 0), (fact_kind::USER, 0)]);
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
