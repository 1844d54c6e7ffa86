//! Loads a file of ours in an ordinary start, through a variable of the interpreter that the file then removes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use failure::{Failure, Result};

/// RUBYOPT that requires `set_up`, before the present options. `noting`: the file that records the start, which stays
/// in front if it is there.
pub fn ruby_option(set_up: &Path, noting: Option<&Path>) -> Result<OsString> {
    if set_up.as_os_str().as_bytes().iter().any(u8::is_ascii_whitespace) {
        return Err(Failure::refusal(format!(
            "RUBYOPT cannot name {}, because of the blank in it. Install Snapboot in a directory without blanks in its path, or \
             put require \"snapboot/setup\" into the program.",
            set_up.display()
        )));
    }
    let required = |file: &Path| [OsStr::new("-r"), file.as_os_str()].join(OsStr::new(""));
    Ok(in_front(required(set_up), std::env::var_os("RUBYOPT"), noting.map(required), " "))
}

/// PYTHONPATH with the directory of `set_up` before the present ones. None if the file could not restore the value
/// exactly, or if a colon in the directory would split it. `noting`: see [`ruby_option`].
pub fn python_path(set_up: &Path, noting: Option<&Path>) -> Option<OsString> {
    let before = std::env::var_os("PYTHONPATH");
    let directory_of = |file: &Path| file.parent().unwrap_or(Path::new("/")).as_os_str().to_owned();
    let directory = directory_of(set_up);
    if directory.as_bytes().contains(&b':') || before.as_deref() == Some(OsStr::new("")) {
        return None;
    }
    Some(in_front(directory, before, noting.map(directory_of), ":"))
}

/// `own` before the present value, but after `first`, if that came first.
fn in_front(own: OsString, before: Option<OsString>, first: Option<OsString>, between: &str) -> OsString {
    let Some(before) = before else { return own };
    let rest = first.as_ref().and_then(|first| before.as_bytes().strip_prefix(first.as_bytes()));
    let rest = match rest {
        Some(b"") => Some(OsStr::new("")),
        Some(rest) => rest.strip_prefix(between.as_bytes()).map(OsStr::from_bytes),
        None => None,
    };
    let parts = match (first, rest) {
        (Some(first), Some(rest)) if rest.is_empty() => vec![first, own],
        (Some(first), Some(rest)) => vec![first, own, rest.to_owned()],
        _ => vec![own, before],
    };
    parts.join(OsStr::new(between))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_notes_a_start_stays_in_front() {
        let set = |before: Option<&str>, first: Option<&str>| {
            in_front("own".into(), before.map(OsString::from), first.map(OsString::from), ":")
        };
        assert_eq!(set(None, Some("noting")), "own");
        assert_eq!(set(Some("a:b"), Some("noting")), "own:a:b");
        assert_eq!(set(Some("noting:a"), None), "own:noting:a");
        assert_eq!(set(Some("noting:a:b"), Some("noting")), "noting:own:a:b");
        assert_eq!(set(Some("noting"), Some("noting")), "noting:own");
        assert_eq!(set(Some("noting2:a"), Some("noting")), "own:noting2:a");
    }
}
