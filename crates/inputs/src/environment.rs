//! Environment variables as inputs.
//!
//! Some variables act on a runtime when it starts. An image records those that were set while it was made, and
//! the name patterns of those that count; it is stale when one of them has another value, has appeared or is gone.

use image::{Error, Item, Section, Tables, Variable};

/// What differs from the environment in which the image was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference<'a> {
    /// This variable (or group of names with `:` between) has another value, or is set or unset now.
    Changed(&'a [u8]),
    /// This variable counts, and was not set when the image was made.
    Appeared(&'a [u8]),
}

/// Compares the environment with what the image recorded.
///
/// `environment` yields `NAME=VALUE` entries without NUL. Returns None when nothing that counts differs.
pub fn compare<'a, E>(tables: &Tables<'a>, environment: E) -> Result<Option<Difference<'a>>, Error>
where
    E: Iterator<Item = &'a [u8]> + Clone,
{
    for variable in tables.rows::<Variable>(Section::Variables)? {
        let names = tables.text(variable.name)?;
        let value = names.split(|&byte| byte == b':').find_map(|name| {
            value_of(name, environment.clone()).filter(|value| !names.contains(&b':') || !value.is_empty())
        });
        let same = match value {
            Some(value) => variable.present != 0 && image::digest(value) == variable.value,
            None => variable.present == 0,
        };
        if !same {
            return Ok(Some(Difference::Changed(names)));
        }
    }
    for entry in environment {
        let name = name_of(entry);
        if !matches_any(tables, name)? {
            continue;
        }
        let mut recorded = false;
        for variable in tables.rows::<Variable>(Section::Variables)? {
            recorded |= tables.text(variable.name)? == name;
        }
        if !recorded {
            return Ok(Some(Difference::Appeared(name)));
        }
    }
    Ok(None)
}

/// Whether a variable's name matches one of the image's patterns.
fn matches_any(tables: &Tables<'_>, name: &[u8]) -> Result<bool, Error> {
    for pattern in tables.rows::<Item>(Section::Patterns)? {
        if matches(tables.text(pattern.text)?, name) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether `name` is `pattern`, or starts with it when the pattern ends in `*`.
pub fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_last() {
        Some((b'*', start)) => name.starts_with(start),
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
