//! Environments that make an image stale, and those that do not.

extern crate std;

use image_writer::TablesWriter;
use std::string::String;
use std::vec::Vec;

use super::*;

/// Tables of an image that was made with these variables (None: unset) and patterns.
fn recorded(variables: &[(&str, Option<&str>)], patterns: &[&str]) -> Vec<u8> {
    let mut writer = TablesWriter::new();
    let mut variables = variables.to_vec();
    variables.sort_unstable();
    for (name, value) in variables {
        let name = writer.text(name.as_bytes());
        let digest = value.map_or([0; 16], |value| image::digest(value.as_bytes()));
        let row = Variable { name, value: digest, present: value.is_some().into(), reserved: 0 };
        writer.push(Section::Variables, &row);
    }
    for pattern in patterns {
        let text = writer.text(pattern.as_bytes());
        writer.push(Section::Patterns, &Item { text });
    }
    writer.finish()
}

/// The first difference when the image is started with `environment`. Checks that `first_difference` returns the same.
fn difference(tables: &[u8], environment: &[&'static str]) -> Option<String> {
    let all = all_differences(tables, environment);
    let tables = Tables::parse_unchecked_sum(tables).unwrap();
    let first = first_difference(&tables, environment.iter().map(|entry| entry.as_bytes())).unwrap().map(in_words);
    assert_eq!(first.as_ref(), all.first());
    first
}

fn all_differences(tables: &[u8], environment: &[&'static str]) -> Vec<String> {
    let tables = Tables::parse_unchecked_sum(tables).unwrap();
    let found = differences(&tables, environment.iter().map(|entry| entry.as_bytes())).unwrap();
    found.map(|found| in_words(found.unwrap())).collect()
}

fn in_words(difference: Difference<'_>) -> String {
    let (what, name) = match difference {
        Difference::Changed(name) => ("changed", name),
        Difference::Appeared(name) => ("appeared", name),
        Difference::Gone(name) => ("gone", name),
    };
    std::format!("{what} {}", std::str::from_utf8(name).unwrap())
}

#[test]
fn equal_environments_do_not_differ() {
    let tables = recorded(&[("HOME", Some("/h")), ("EMPTY", Some("")), ("UNSET", None)], &["HOME", "PYTHON*"]);
    assert_eq!(difference(&tables, &["HOME=/h", "EMPTY=", "TERM=vt"]), None);
    assert_eq!(difference(&recorded(&[], &[]), &["ANY=thing"]), None);
}

#[test]
fn another_value_another_presence_and_a_new_name_are_told_apart() {
    let tables = recorded(&[("HOME", Some("/h")), ("UNSET", None)], &["HOME", "PYTHON*"]);
    assert_eq!(difference(&tables, &["HOME=/x"]).as_deref(), Some("changed HOME"));
    assert_eq!(difference(&tables, &[]).as_deref(), Some("gone HOME"));
    assert_eq!(difference(&tables, &["HOME=/h", "UNSET="]).as_deref(), Some("appeared UNSET"));
    assert_eq!(difference(&tables, &["HOME=/h", "PYTHONPATH=/p"]).as_deref(), Some("appeared PYTHONPATH"));
    assert_eq!(difference(&tables, &["HOME=/h", "PYTHONPATH="]).as_deref(), Some("appeared PYTHONPATH"));
    assert_eq!(difference(&tables, &["HOME=/h", "XPYTHONPATH=/p"]), None);
}

#[test]
fn every_difference_is_told() {
    let tables = recorded(&[("A", Some("1")), ("B", Some("1")), ("C", None), ("D", Some(""))], &["PYTHON*"]);
    let environment = ["A=2", "C=", "PYTHONPATH=/p", "TERM=vt", "D=", "PYTHONHOME="];
    let expected = ["changed A", "gone B", "appeared C", "appeared PYTHONPATH", "appeared PYTHONHOME"];
    assert_eq!(all_differences(&tables, &environment), expected);
}

#[test]
fn the_first_name_of_the_locale_that_is_not_empty_counts() {
    let tables = recorded(&[("LC_ALL:LC_CTYPE:LANG", Some("C.UTF-8"))], &[]);
    assert_eq!(difference(&tables, &["LANG=C.UTF-8"]), None);
    assert_eq!(difference(&tables, &["LANG=de", "LC_ALL=C.UTF-8"]), None);
    assert_eq!(difference(&tables, &["LANG=C.UTF-8", "LC_ALL="]), None);
    assert!(difference(&tables, &["LANG=C.UTF-8", "LC_CTYPE=de"]).is_some());
    assert!(difference(&tables, &["LANG="]).is_some());
}

#[test]
fn the_locale_c_is_one_by_all_its_names_unless_lc_all_says_it() {
    let unset = recorded(&[("LC_ALL:LC_CTYPE:LANG", None)], &[]);
    for same in [&["LANG=", "LC_ALL="][..], &["LANG=C"], &["LANG=POSIX"], &["LC_CTYPE=C", "LANG=de"]] {
        assert_eq!(difference(&unset, same), None, "{same:?}");
    }
    for other in ["LC_ALL=C", "LC_ALL=POSIX", "LANG=C.UTF-8", "LANG=de"] {
        assert_eq!(difference(&unset, &[other]).as_deref(), Some("appeared LC_ALL:LC_CTYPE:LANG"), "{other}");
    }
    let of_all = recorded(&[("LC_ALL:LC_CTYPE:LANG", Some("LC_ALL="))], &[]);
    assert_eq!(difference(&of_all, &["LC_ALL=C"]), None);
    assert_eq!(difference(&of_all, &["LC_ALL=POSIX", "LANG=de"]), None);
    assert!(difference(&of_all, &["LANG=C"]).is_some());
    // A locale that may be missing.
    let missing = recorded(&[("LC_ALL:LC_CTYPE:LANG", Some("xy"))], &[]);
    assert_eq!(difference(&missing, &["LANG=xy"]), None);
    assert!(difference(&missing, &["LC_ALL=xy"]).is_some());
}

#[test]
fn an_environment_may_be_too_large() {
    let mut writer = TablesWriter::new();
    let row = Variable { name: writer.text(ALL), value: 8u128.to_le_bytes(), present: presence::AT_MOST, reserved: 0 };
    writer.push(Section::Variables, &row);
    let tables = writer.finish();
    assert_eq!(difference(&tables, &["A=1", "B=1"]), None);
    assert_eq!(difference(&tables, &["A=1", "B=12"]).as_deref(), Some("changed *"));
}

#[test]
fn an_image_that_renews_the_locale_takes_others() {
    let differs = |present: u32, environment: &[&'static str]| {
        let mut writer = TablesWriter::new();
        let name = writer.text(LOCALE);
        writer.push(Section::Variables, &Variable { name, value: [0; 16], present, reserved: 0 });
        difference(&writer.finish(), environment).is_some()
    };
    let (both, utf8, c) = (presence::LOCALE_OF_UTF8_OR_C, presence::LOCALE_OF_UTF8, presence::LOCALE_C);
    for of_c in [&[][..], &["LANG=C"], &["LC_ALL=POSIX", "LANG=de"], &["LC_ALL=", "LANG="]] {
        assert_eq!([both, utf8, c].map(|present| differs(present, of_c)), [false, true, false], "{of_c:?}");
    }
    for of_utf8 in [&["LANG=C.UTF-8"][..], &["LC_ALL=de_DE.utf8@euro"], &["LC_CTYPE=en_US.UTF-8", "LANG=C"]] {
        assert_eq!([both, utf8, c].map(|present| differs(present, of_utf8)), [false, false, true], "{of_utf8:?}");
    }
    for other in [&["LANG=de_DE"][..], &["LC_ALL=de_DE.ISO-8859-1", "LANG=C.UTF-8"], &["LANG=UTF-8"]] {
        assert_eq!([both, utf8, c].map(|present| differs(present, other)), [true; 3], "{other:?}");
    }
}

#[test]
fn no_pattern_is_about_our_own() {
    let tables = recorded(&[], &["S*", "*_LOG"]);
    assert_eq!(difference(&tables, &["SNAPBOOT_LOG=1"]), None);
    assert_eq!(difference(&tables, &["SNAP=1"]).as_deref(), Some("appeared SNAP"));
}

#[test]
fn many_that_were_not_set_are_each_found() {
    let names: Vec<String> = (0..100).map(|number| std::format!("N{number}")).collect();
    let rows: Vec<_> = names.iter().map(|name| (name.as_str(), None)).collect();
    let tables = recorded(&rows, &[]);
    for name in &names {
        let entry: &'static str = std::format!("{name}=").leak();
        assert_eq!(difference(&tables, &["A=", entry]), Some(std::format!("appeared {name}")));
    }
    assert_eq!(difference(&tables, &["N=", "N100=", "NN=", "A=", "Z="]), None);
}

#[test]
fn where_all_was_read_every_name_counts_that_is_not_volatile() {
    let tables = recorded(&[("A", Some("1"))], &["*"]);
    assert_eq!(difference(&tables, &["A=1", "PWD=/x", "TERM=vt", "SSH_TTY=/x", "_=/bin/x", "TMUX=1"]), None);
    assert_eq!(difference(&tables, &["A=1", "TERMS=1"]).as_deref(), Some("appeared TERMS"));
    let named = recorded(&[("A", Some("1"))], &["*", "TERM"]);
    assert_eq!(difference(&named, &["A=1", "TERM=vt"]).as_deref(), Some("appeared TERM"));
}

#[test]
fn strange_entries_do_no_harm() {
    let tables = recorded(&[("A", Some("1"))], &["B*"]);
    assert_eq!(difference(&tables, &["A=1", "A=2", "=", "", "no value"]), None, "the first entry counts, as in getenv");
    assert_eq!(difference(&tables, &["AB=2", "A=1"]), None, "a name that only begins alike");
    assert_eq!(difference(&tables, &["A=1", "B"]).as_deref(), Some("appeared B"));
}

#[test]
fn a_damaged_row_is_an_error() {
    let mut writer = TablesWriter::new();
    let name = image::Text { offset: 9, length: 9 };
    writer.push(Section::Variables, &Variable { name, ..Variable::default() });
    let bytes = writer.finish();
    let tables = Tables::parse_unchecked_sum(&bytes).unwrap();
    assert!(first_difference(&tables, core::iter::empty()).is_err());
}

#[test]
fn patterns_match_whole_names_or_beginnings() {
    assert!(matches(b"HOME", b"HOME") && !matches(b"HOME", b"HOME2") && !matches(b"HOME", b"HOM"));
    assert!(matches(b"LC_*", b"LC_ALL") && matches(b"LC_*", b"LC_") && !matches(b"LC_*", b"LC"));
    assert!(matches(b"*_proxy", b"http_proxy") && !matches(b"*_proxy", b"http_proxy_") && matches(b"*x", b"x"));
    assert!(matches(b"*", b"") && matches(b"", b"") && !matches(b"", b"A"));
}
