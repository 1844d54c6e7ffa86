//! Environment variables as inputs: how they are compared, and which are volatile. crates/judge variables.rs explains
//! the lists.
//!
//! Some variables act on a runtime when it starts; the program read others while it booted. An image records the values
//! of those that were set, the names of those that were read and unset, and patterns of names that count in any case.
//! It is stale if one of them has changed, has appeared or is gone, unless the new value is an alternative with which
//! the program booted to the same state (alternatives.rs).

use core::cmp::Ordering;
use core::fmt::{self, Write};

use image::{presence, Error, Item, Rows, Section, Tables, Variable};

use crate::words::{Lossy, Words};

mod alternatives;

use alternatives::Alternatives;

/// Variables that differ from session to session, or only say where output goes. They are inputs of a program that
/// reads them by name, but not of one that reads the whole environment. `--env` can name them nevertheless.
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
    // The terminal, and variables for programs that write to it.
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

/// Whether this variable does not count if the program read all.
pub fn is_volatile(name: &[u8]) -> bool {
    is_own(name) || VOLATILE.iter().any(|pattern| matches(pattern.as_bytes(), name))
}

/// Whether this is one of Snapboot's own variables, which no program sees and no image depends on.
pub fn is_own(name: &[u8]) -> bool {
    name.starts_with(b"SNAPBOOT_")
}

/// A difference from the environment in which the image was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference<'a> {
    /// This variable (or [`LOCALE`]) has another value.
    Changed(&'a [u8]),
    /// This variable (or the locale) counts, and was unset when the image was made.
    Appeared(&'a [u8]),
    /// This variable (or the locale) was set when the image was made, and is unset now.
    Gone(&'a [u8]),
}

impl<'a> Difference<'a> {
    /// The name of the variable, or [`LOCALE`].
    pub fn name(self) -> &'a [u8] {
        match self {
            Difference::Changed(name) | Difference::Appeared(name) | Difference::Gone(name) => name,
        }
    }

    pub(crate) fn words<'n>(self) -> Words<'a, 'n> {
        let (text, subject) = match self {
            _ if self.name() == LOCALE => (
                "stale: the locale of text differs from the image's: the first of LC_ALL, LC_CTYPE, LANG that is set",
                &b""[..],
            ),
            Difference::Changed(ALL) => {
                ("stale: the environment is larger than any that the program has booted with", &b""[..])
            }
            Difference::Changed(name) => {
                ("stale: this environment variable has changed since the image was made", name)
            }
            Difference::Appeared(name) => {
                ("stale: this environment variable is set now and was not when the image was made", name)
            }
            Difference::Gone(name) => {
                ("stale: this environment variable was set when the image was made, and is not now", name)
            }
        };
        Words::about(text, subject)
    }

    /// Writes the difference. Only digests of values are kept, so it shows none.
    pub(crate) fn write_details(self, out: &mut dyn Write) -> fmt::Result {
        let (name, what) = match self {
            _ if self.name() == LOCALE => return out.write_str(
                "locale of text (the first of LC_ALL, LC_CTYPE, LANG that is set): another one (only digests are kept)",
            ),
            Difference::Changed(ALL) => {
                return out.write_str("environment: larger than any that the program has booted with")
            }
            Difference::Changed(name) => (name, "another value (only digests are kept)"),
            Difference::Appeared(name) => (name, "unset -> set"),
            Difference::Gone(name) => (name, "set -> unset"),
        };
        write!(out, "{}: {what}", Lossy(name))
    }
}

/// The first of [`differences`], or None if nothing that counts differs.
pub fn first_difference<'a, E>(tables: &Tables<'a>, environment: E) -> Result<Option<Difference<'a>>, Error>
where
    E: Iterator<Item = &'a [u8]> + Clone,
{
    differences(tables, environment)?.next().transpose()
}

/// The difference in the locale of text, or None if the image is for this locale.
pub fn locale_difference<'a, E>(tables: &Tables<'a>, environment: E) -> Result<Option<Difference<'a>>, Error>
where
    E: Iterator<Item = &'a [u8]> + Clone,
{
    let Some(row) = locale_row(tables)? else { return Ok(None) };
    let found = difference(tables, &row, environment.clone())?;
    let is_taken = found.is_some() && Alternatives::new(tables, environment)?.take(LOCALE)?;
    Ok(found.filter(|_| !is_taken))
}

/// The row of the locale of text, which says for which locales the image is.
pub fn locale_row(tables: &Tables<'_>) -> Result<Option<Variable>, Error> {
    for row in tables.rows::<Variable>(Section::Variables)? {
        if tables.text(row.name)? == LOCALE {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

/// Compares the environment with the recorded one: yields every difference.
///
/// `environment` yields `NAME=VALUE` entries without NUL. Fails if the tables are damaged.
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
    let others =
        environment.clone().map(entry_name).filter_map(move |name| match has_appeared(tables, &recorded, name) {
            Ok(has_appeared) => has_appeared.then_some(Ok(Difference::Appeared(name))),
            Err(error) => Some(Err(error)),
        });
    let mut alternatives = Alternatives::new(tables, environment)?;
    Ok(known.chain(others).filter_map(move |found| match found.map(|found| (found, alternatives.take(found.name()))) {
        Ok((found, Ok(is_taken))) => (!is_taken).then_some(Ok(found)),
        Ok((_, Err(error))) | Err(error) => Some(Err(error)),
    }))
}

/// The variables that set the locale of text: the first that is not empty counts. Also the name of the row in which an
/// image keeps [`locale`].
pub const LOCALE: &[u8] = b"LC_ALL:LC_CTYPE:LANG";

/// The setting that decides how a runtime reads and writes text. None for the locale C, under any of its names, which
/// Python replaces by C.UTF-8 (PEP 538).
///
/// Python does not do so if LC_ALL is set. So a value of LC_ALL counts as a locale of its own, together with the
/// variable's name. C.UTF-8 is the exception, since it always exists: for a missing locale the runtime takes C, and
/// then it matters again which variable set it.
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

/// How a locale encodes text, judging by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocaleText {
    /// The locale C, under any of its names.
    C,
    /// A name with UTF-8. A runtime that lacks the locale takes C all the same.
    Utf8,
    /// Any other locale.
    Other,
}

impl LocaleText {
    /// The encoding of the locale that these variables set.
    pub fn from_environment<'a>(environment: impl Iterator<Item = &'a [u8]> + Clone) -> Self {
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

    /// Whether an image accepts it, by one of [`presence`]; None if the image is for a single locale.
    fn is_wanted(self, present: u32) -> Option<bool> {
        match present {
            presence::LOCALE_OF_UTF8_OR_C => Some(self != LocaleText::Other),
            presence::LOCALE_OF_UTF8 => Some(self == LocaleText::Utf8),
            presence::LOCALE_C => Some(self == LocaleText::C),
            _ => None,
        }
    }
}

/// The difference in a variable that was set, or in the locale. Variables that were unset are left to [`has_appeared`]:
/// there are many, and searching the environment for each would take too long.
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
    if let Some(is_wanted) =
        LocaleText::from_environment(environment.clone()).is_wanted(variable.present).filter(|_| is_locale)
    {
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

/// Whether a variable that is set now counts, and was unset when the image was made. `recorded` is sorted by name.
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

/// Whether a variable's name matches one of the image's patterns. None of them matches Snapboot's own variables, and
/// the pattern for all names leaves out the volatile ones.
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

/// The pattern of an image whose boot read the whole environment: every variable that is not volatile counts.
pub const ALL: &[u8] = b"*";

/// Whether `name` equals `pattern`, starts with it if the pattern ends in `*`, or ends with it if the pattern starts
/// with `*`.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [start @ .., b'*'] => name.starts_with(start),
        [b'*', end @ ..] => name.ends_with(end),
        _ => pattern == name,
    }
}

/// The name of a `NAME=VALUE` entry (all of it if there is no `=`).
pub fn entry_name(entry: &[u8]) -> &[u8] {
    entry.split(|&byte| byte == b'=').next().unwrap_or(entry)
}

/// The value of the first entry of that name.
pub fn value_of<'a>(name: &[u8], mut environment: impl Iterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
    environment.find_map(|entry| entry.strip_prefix(name)?.strip_prefix(b"="))
}

#[cfg(test)]
mod tests;
