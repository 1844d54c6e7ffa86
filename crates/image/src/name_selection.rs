//! Selects the names of a directory that count for a list. A reader that lists a directory to find certain names
//! depends on no others, so installing other files beside them makes no image stale.

use crate::answer_kind;

/// Separates parts of a selection; no file name contains it.
const SEPARATOR: u8 = b'/';

/// Whether a name counts for a list of this kind. [`answer_kind`] explains selections.
pub fn is_selected(kind: u32, selection: &[u8], name: &[u8]) -> bool {
    let mut parts = selection.split(|&byte| byte == SEPARATOR);
    match kind {
        answer_kind::DISTRIBUTIONS => distribution_of(name).is_some_and(|own| {
            selection.is_empty() || !own.is_ascii() || own.is_empty() || parts.any(|part| is_same(own, part))
        }),
        answer_kind::MATCHING => parts.any(|pattern| matches(pattern, name)),
        // The content of these files is checked as well.
        answer_kind::FEATURES => name.ends_with(b".gemspec"),
        _ => name.ends_with(selection),
    }
}

/// The distribution that a name in a Python package folder describes: `Some-Name` of `Some_Name-1.0.dist-info`. Empty
/// for a name that may belong to any distribution; None for other names.
fn distribution_of(name: &[u8]) -> Option<&[u8]> {
    let is_ending = |ending: &&[u8]| {
        let start = name.len().checked_sub(ending.len());
        start.is_some_and(|start| name[start..].eq_ignore_ascii_case(ending))
    };
    let ending = [&b"dist-info"[..], b"egg-info", b".egg"].into_iter().find(|ending| is_ending(ending))?;
    let stem = &name[..name.len() - ending.len()];
    Some(stem.split(|&byte| byte == b'-').next().unwrap_or(stem))
}

/// Whether two names mean the same distribution: case does not count, and any run of `-`, `_` and `.` is the same. No
/// version of Python compares more loosely.
fn is_same(own: &[u8], asked: &[u8]) -> bool {
    let (mut own, mut asked) = (words(own), words(asked));
    loop {
        match (own.next(), asked.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if one.eq_ignore_ascii_case(other) => {}
            _ => return false,
        }
    }
}

fn words(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    name.split(|byte| matches!(byte, b'-' | b'_' | b'.')).filter(|word| !word.is_empty())
}

/// Whether a name matches a pattern with one `*`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let Some(star) = pattern.iter().position(|&byte| byte == b'*') else { return pattern == name };
    let (start, end) = (&pattern[..star], &pattern[star + 1..]);
    name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(kind: u32, selection: &str, name: &str) -> bool {
        is_selected(kind, selection.as_bytes(), name.as_bytes())
    }

    #[test]
    fn of_package_folders_those_count_that_a_distribution_may_have() {
        let is = |selection, name| selected(answer_kind::DISTRIBUTIONS, selection, name);
        for own in [
            "foo_bar-1.0.dist-info",
            "Foo.Bar-2.dist-info",
            "foo__bar-1.0-py3.8.egg-info",
            "foo_bar.egg-info",
            "foo_bar-1.0-py3.8.egg",
            "FOO_BAR-1.DIST-INFO",
            "EGG-INFO",
            "f\u{f6}\u{f6}-1.0.dist-info",
        ] {
            assert!(is("foo-bar", own) && is("a/Foo.Bar", own) && is("", own), "{own}");
        }
        for other in ["foobar-1.0.dist-info", "foo-1.0.dist-info", "foo_bar_more-1.0.dist-info", "barfoo.egg-info"] {
            assert!(!is("foo-bar", other) && is("", other), "{other}");
        }
        for plain in ["foo_bar", "foo_bar.py", "__pycache__", "foo_bar-1.0.dist-info.bak", "begging", ""] {
            assert!(!is("foo-bar", plain) && !is("", plain), "{plain}");
        }
    }

    #[test]
    fn a_pattern_has_one_gap() {
        let is = |selection, name| selected(answer_kind::MATCHING, selection, name);
        assert!(is("rack-*.gemspec", "rack-2.0.gemspec") && is("a-*.gemspec/rack-*.gemspec", "rack-2.0.gemspec"));
        assert!(is("rack-*.gemspec", "rack-test-2.0.gemspec"));
        assert!(!is("rack-*.gemspec", "thor-1.0.gemspec") && !is("rack-*.gemspec", "rack-2.0.gem"));
        assert!(!is("ab*ba", "aba") && is("ab*ba", "abba") && is("*", "any") && !is("none", "any") && is("any", "any"));
    }

    #[test]
    fn of_specifications_any_may_have_a_feature() {
        let is = |name| selected(answer_kind::FEATURES, "rack\nrack/test", name);
        assert!(is("rack-2.0.gemspec") && is("thor-1.0.gemspec") && !is("rack.rb"));
    }

    #[test]
    fn a_list_of_an_ending_has_all_that_end_so() {
        assert!(selected(answer_kind::LISTING, "", "any") && selected(answer_kind::LISTING, ".pth", "a.pth"));
        assert!(!selected(answer_kind::LISTING, ".pth", "a.py"));
    }
}
