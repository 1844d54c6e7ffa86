//! Environment variables as inputs: how they are compared, and which are volatile. crates/judge variables.rs says which list is for what.
//!
//! Some variables act on a runtime when it starts, others were read while the program booted. An image records the
//! values of those that were set then, the names of those that were read and not set, and the name patterns of those that
//! count in any case; it is stale when one of them has another value, has appeared or is gone, unless that is one of the alternatives with
//! which the program has booted to the same state (alternatives.rs).

use core::cmp::Ordering;

use image::{presence, Error, Item, Rows, Section, Tables, Variable};

mod alternatives;

use alternatives::Alternatives;

/// Variables that differ from session to session, or that only say where output goes: inputs for who reads them by name, but not for who
/// reads the whole environment. `--env` can name them nevertheless.
pub const VOLATILE: &[&str] = &[
    // The shell and its session.
    "_",
    "OLDPWD",
    "PWD",
    "SHLVL",
    "PS1",
    "PS2",
    "PROMPT_COMMAND",
    "HISTFILE",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "SSH_*",
    "SUDO_*",
    "XDG_RUNTIME_DIR",
    "XDG_SEAT",
    "XDG_SESSION_*",
    "XDG_VTNR",
    // The terminal, and what programs for it are told.
    "COLORTERM",
    "COLUMNS",
    "LESS",
    "LESSCLOSE",
    "LESSOPEN",
    "LINES",
    "LS_COLORS",
    "STY",
    "TERM",
    "TERMCAP",
    "TERM_PROGRAM*",
    "TERM_SESSION_ID",
    "TMUX*",
    "VTE_VERSION",
    "WINDOWID",
    "WT_*",
    // The desktop.
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_SESSION",
    "DISPLAY",
    "GPG_AGENT_INFO",
    "GPG_TTY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_CURRENT_DESKTOP",
];

/// Whether this variable does not count where all were read.
pub fn is_volatile(name: &[u8]) -> bool {
    is_own(name) || VOLATILE.iter().any(|pattern| matches(pattern.as_bytes(), name))
}

/// Whether this is one of Snapboot's own variables, which no program sees and no image depends on.
pub fn is_own(name: &[u8]) -> bool {
    name.starts_with(b"SNAPBOOT_")
}

/// What differs from the environment in which the image was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference<'a> {
    /// This variable (or [`LOCALE`]) has another value.
    Changed(&'a [u8]),
    /// This variable (or the locale) counts, and was not set when the image was made.
    Appeared(&'a [u8]),
    /// This variable (or the locale) was set when the image was made, and is not now.
    Gone(&'a [u8]),
}

impl<'a> Difference<'a> {
    /// Of which variable it is, or [`LOCALE`].
    pub fn name(self) -> &'a [u8] {
        match self {
            Difference::Changed(name) | Difference::Appeared(name) | Difference::Gone(name) => name,
        }
    }
}

/// The first of [`differences`], or None when nothing that counts differs.
pub fn compare<'a, E>(tables: &Tables<'a>, environment: E) -> Result<Option<Difference<'a>>, Error>
where
    E: Iterator<Item = &'a [u8]> + Clone,
{
    differences(tables, environment)?.next().transpose()
}

/// The difference in the locale of text, or None where it is one that the image is for.
pub fn compare_locale<'a, E>(tables: &Tables<'a>, environment: E) -> Result<Option<Difference<'a>>, Error>
where
    E: Iterator<Item = &'a [u8]> + Clone,
{
    let Some(row) = locale_row(tables)? else { return Ok(None) };
    let found = difference(tables, &row, environment.clone())?;
    let is_taken = found.is_some() && Alternatives::new(tables, environment)?.take(LOCALE)?;
    Ok(found.filter(|_| !is_taken))
}

/// The row of the locale of text: which locales the image is for.
pub fn locale_row(tables: &Tables<'_>) -> Result<Option<Variable>, Error> {
    for row in tables.rows::<Variable>(Section::Variables)? {
        if tables.text(row.name)? == LOCALE {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Compares the environment with what the image recorded: yields every difference.
///
/// `environment` yields `NAME=VALUE` entries without NUL. Fails for tables that are damaged.
pub fn differences<'t, 'a, E>(
    tables: &'t Tables<'a>,
    environment: E,
) -> Result<impl Iterator<Item = Result<Difference<'a>, Error>> + use<'t, 'a, E>, Error>
where
    E: Iterator<Item = &'a [u8]> + Clone,
{
    let entries = environment.clone();
    let recorded = tables.rows::<Variable>(Section::Variables)?;
    let known = recorded.clone().filter_map(move |row| difference(tables, &row, entries.clone()).transpose());
    let others = environment.clone().map(name_of).filter_map(move |name| match has_appeared(tables, &recorded, name) {
        Ok(has_appeared) => has_appeared.then_some(Ok(Difference::Appeared(name))),
        Err(error) => Some(Err(error)),
    });
    let mut alternatives = Alternatives::new(tables, environment)?;
    Ok(known.chain(others).filter_map(move |found| match found.map(|found| (found, alternatives.take(found.name()))) {
        Ok((found, Ok(is_taken))) => (!is_taken).then_some(Ok(found)),
        Ok((_, Err(error))) | Err(error) => Some(Err(error)),
    }))
}

/// The variables that the locale of text follows: the first of them that is not empty. The name of the row in which an image keeps [`locale`].
pub const LOCALE: &[u8] = b"LC_ALL:LC_CTYPE:LANG";

/// What decides how a runtime reads and writes text. None for the locale C, by whatever name, which Python replaces by C.UTF-8 (PEP 538).
///
/// It does not where LC_ALL says something, so that counts as another locale, with its name; but for the one locale that is always there:
/// where one is missing, the runtime has C, and it matters again who has named it.
pub fn locale<'a>(environment: impl Iterator<Item = &'a [u8]> + Clone) -> Option<&'a [u8]> {
    const ALL: &[u8] = b"LC_ALL=";
    let set = |name| value_of(name, environment.clone()).filter(|value| !value.is_empty());
    let is_c = |value: &[u8]| matches!(value, b"C" | b"POSIX");
    match set(b"LC_ALL") {
        Some(b"C.UTF-8") => Some(b"C.UTF-8"),
        Some(value) if is_c(value) => Some(ALL),
        Some(_) => environment.clone().find(|entry| entry.starts_with(ALL)),
        None => set(b"LC_CTYPE").or_else(|| set(b"LANG")).filter(|value| !is_c(value)),
    }
}

/// What kind of text a locale has, as far as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocaleText {
    /// It is C, by whatever name.
    C,
    /// Its name says UTF-8. A runtime for which it is missing has C all the same.
    Utf8,
    /// Any other.
    Other,
}

impl LocaleText {
    /// Of the locale that these variables name.
    pub fn named<'a>(environment: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
        let set = |name: &[u8]| value_of(name, environment.clone()).filter(|value| !value.is_empty());
        let Some(name) = set(b"LC_ALL").or_else(|| set(b"LC_CTYPE")).or_else(|| set(b"LANG")) else {
            return LocaleText::C;
        };
        let encoding = name.splitn(2, |&byte| byte == b'.').nth(1).unwrap_or_default();
        let encoding = encoding.split(|&byte| byte == b'@').next().unwrap_or_default();
        match name {
            b"C" | b"POSIX" => LocaleText::C,
            _ if encoding.eq_ignore_ascii_case(b"UTF-8") || encoding.eq_ignore_ascii_case(b"UTF8") => LocaleText::Utf8,
            _ => LocaleText::Other,
        }
    }

    /// Whether an image wants it, by one of [`presence`]; None where the image wants one locale.
    fn is_wanted(self, present: u32) -> Option<bool> {
        match present {
            presence::LOCALE_OF_UTF8_OR_C => Some(self != LocaleText::Other),
            presence::LOCALE_OF_UTF8 => Some(self == LocaleText::Utf8),
            presence::LOCALE_C => Some(self == LocaleText::C),
            _ => None,
        }
    }
}

/// What differs in a variable that was set, or in the locale. For the many that were not set see [`has_appeared`]: to look for
/// each of them in the environment would take too long.
fn difference<'a>(
    tables: &Tables<'a>,
    variable: &Variable,
    environment: impl Iterator<Item = &'a [u8]> + Clone,
) -> Result<Option<Difference<'a>>, Error> {
    let names = tables.text(variable.name)?;
    let is_locale = names == LOCALE;
    if variable.present == presence::ANY || (variable.present == presence::UNSET && !is_locale) {
        return Ok(None);
    }
    if matches!(variable.present, presence::SECRET | presence::SECRET_OF_FORM) {
        let outline = value_of(names, environment)
            .map(|value| crate::secret::outline(value, variable.present == presence::SECRET_OF_FORM));
        return Ok(match outline {
            None => Some(Difference::Gone(names)),
            Some(outline) => (outline != variable.value).then_some(Difference::Changed(names)),
        });
    }
    if variable.present == presence::AT_MOST {
        let size: usize = environment.map(|entry| entry.len() + 1).sum();
        return Ok((size as u128 > u128::from_le_bytes(variable.value)).then_some(Difference::Changed(names)));
    }
    if variable.present == presence::RENEWED {
        let is_set = value_of(names, environment).is_some_and(|value| !value.is_empty());
        return Ok((!is_set).then_some(Difference::Gone(names)));
    }
    if let Some(is_wanted) = LocaleText::named(environment.clone()).is_wanted(variable.present).filter(|_| is_locale) {
        return Ok((!is_wanted).then_some(Difference::Changed(names)));
    }
    let value = if is_locale { locale(environment) } else { value_of(names, environment) };
    Ok(match (value, variable.present == presence::SET) {
        (Some(value), true) if image::digest(value) != variable.value => Some(Difference::Changed(names)),
        (Some(_), false) => Some(Difference::Appeared(names)),
        (None, true) => Some(Difference::Gone(names)),
        _ => None,
    })
}

/// Whether a variable that is set now counts, and was not set when the image was made. `recorded` is sorted by name.
fn has_appeared(tables: &Tables<'_>, recorded: &Rows<'_, Variable>, name: &[u8]) -> Result<bool, Error> {
    let (mut start, mut end) = (0, recorded.len());
    while start < end {
        let middle = start + (end - start) / 2;
        let Some(row) = recorded.get(middle) else { break };
        match tables.text(row.name)?.cmp(name) {
            Ordering::Less => start = middle + 1,
            Ordering::Greater => end = middle,
            Ordering::Equal => return Ok(row.present == presence::UNSET),
        }
    }
    matches_any(tables, name)
}

/// Whether a variable's name matches one of the image's patterns, of which none is about our own. That for all names leaves out the volatile ones.
fn matches_any(tables: &Tables<'_>, name: &[u8]) -> Result<bool, Error> {
    if is_own(name) {
        return Ok(false);
    }
    for pattern in tables.rows::<Item>(Section::Patterns)? {
        let pattern = tables.text(pattern.text)?;
        if matches(pattern, name) && !(pattern == ALL && is_volatile(name)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The pattern of an image whose boot read the whole environment: every variable counts that is not volatile.
pub const ALL: &[u8] = b"*";

/// Whether `name` is `pattern`, starts with it when the pattern ends in `*`, or ends with it when it starts with `*`.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [start @ .., b'*'] => name.starts_with(start),
        [b'*', end @ ..] => name.ends_with(end),
        _ => pattern == name,
    }
}

/// The name of a `NAME=VALUE` entry (all of it when there is no `=`).
pub fn name_of(entry: &[u8]) -> &[u8] {
    entry.split(|&byte| byte == b'=').next().unwrap_or(entry)
}

/// The value of the first entry with that name.
pub fn value_of<'a>(name: &[u8], mut environment: impl Iterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
    environment.find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use image_writer::TablesWriter;
    use std::string::String;
    use std::vec::Vec;

    use super::*;

    /// Tables of an image that was made with these variables (None: it was not set) and patterns.
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

    /// The first thing that differs when the image is run with `environment`; it is the first of all.
    fn difference(tables: &[u8], environment: &[&'static str]) -> Option<String> {
        let all = all_differences(tables, environment);
        let tables = Tables::parse_unchecked_sum(tables).unwrap();
        let first = compare(&tables, environment.iter().map(|entry| entry.as_bytes())).unwrap().map(in_words);
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
        // One that may be missing.
        let missing = recorded(&[("LC_ALL:LC_CTYPE:LANG", Some("xy"))], &[]);
        assert_eq!(difference(&missing, &["LANG=xy"]), None);
        assert!(difference(&missing, &["LC_ALL=xy"]).is_some());
    }

    #[test]
    fn an_environment_may_be_too_large() {
        let mut writer = TablesWriter::new();
        let row =
            Variable { name: writer.text(ALL), value: 8u128.to_le_bytes(), present: presence::AT_MOST, reserved: 0 };
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
        assert_eq!(
            difference(&tables, &["A=1", "A=2", "=", "", "no value"]),
            None,
            "the first entry counts, as in getenv"
        );
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
        assert!(compare(&tables, core::iter::empty()).is_err());
    }

    #[test]
    fn patterns_match_whole_names_or_beginnings() {
        assert!(matches(b"HOME", b"HOME") && !matches(b"HOME", b"HOME2") && !matches(b"HOME", b"HOM"));
        assert!(matches(b"LC_*", b"LC_ALL") && matches(b"LC_*", b"LC_") && !matches(b"LC_*", b"LC"));
        assert!(matches(b"*_proxy", b"http_proxy") && !matches(b"*_proxy", b"http_proxy_") && matches(b"*x", b"x"));
        assert!(matches(b"*", b"") && matches(b"", b"") && !matches(b"", b"A"));
    }
}
