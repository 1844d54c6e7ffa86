//! Whether a search in the directories of a variable (PYTHONPATH, RUBYLIB) still finds nothing in any of them, as
//! during the boot.
//!
//! An image records the digest of the variable's value, and the names that its boot looked up: `PYTHONPATH DIGEST:
//! json/os/re`. For a start with another value, each of its directories is listed; one that contains such a name, with
//! any suffix, makes the image stale.

use super::{Kernel, Value, EMPTY};

/// Stands in place of the digest if the variable was unset or empty.
pub const UNSET: &[u8] = b"unset";

/// Separates names.
pub const SEPARATOR: u8 = b'/';

/// Longest path (bytes): longer ones were not tried. The front ends' start_form has the same limit for HOME.
const LONGEST: usize = 200;

/// The variable that a record is about.
pub fn variable(recorded: &[u8]) -> &[u8] {
    recorded.split(|&byte| byte == b' ').next().unwrap_or(recorded)
}

/// The names that a record has, with `/` between. None if the record is damaged.
pub fn names(recorded: &[u8]) -> Option<&[u8]> {
    split(recorded).map(|(_, names)| names)
}

impl Value {
    /// What makes the image stale in this environment, in words; None if nothing does.
    pub fn read_obstacle(kernel: &impl Kernel, recorded: &[u8]) -> Option<Value> {
        let variable = variable(recorded);
        let (value, names) = recorded.get(variable.len() + 1..).and_then(split).unwrap_or_default();
        let mut found = None;
        kernel.with_variable(variable, &mut |now| {
            if !now.is_empty() && !is_same(now, value) {
                found = obstacle(kernel, now, names);
            }
        });
        found
    }
}

/// Splits a record into the digest's text and the names.
fn split(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = rest.windows(2).position(|pair| pair == b": ")?;
    Some((&rest[..end], &rest[end + 2..]))
}

/// Whether a value has the recorded digest.
fn is_same(value: &[u8], recorded: &[u8]) -> bool {
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
    let digits = image::digest(value).into_iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.eq(recorded.iter().copied())
}

/// The first directory whose path is not plain or that contains one of the names. Not inlined: most starts have the
/// recorded value.
#[inline(never)]
fn obstacle(kernel: &impl Kernel, value: &[u8], names: &[u8]) -> Option<Value> {
    let mut words = EMPTY;
    let mut path = [0; LONGEST + 1];
    for directory in value.split(|&byte| byte == b':') {
        if !is_plain(directory) {
            [b"an entry is not a plain absolute path of a directory: ", value]
                .into_iter()
                .for_each(|it| words.push(it));
            return Some(words);
        }
        path[..directory.len()].copy_from_slice(directory);
        path[directory.len()] = 0;
        let listed = kernel.names(&path[..=directory.len()], &mut |name| {
            let stem = name.split(|&byte| byte == b'.').next().unwrap_or(name);
            if words.length == 0 && !stem.is_empty() && has(names, stem) {
                [directory, b"/", name, b" has a name that the boot looked up and did not find"]
                    .into_iter()
                    .for_each(|it| words.push(it));
            }
        });
        if listed.is_none() {
            words.length = 0;
            [directory, b" is not a directory that can be listed"].into_iter().for_each(|it| words.push(it));
        }
        if words.length > 0 {
            return Some(words);
        }
    }
    None
}

/// Whether this is an absolute path that a runtime puts into its search path as it is: it neither normalizes it nor
/// splits it.
pub fn is_plain(path: &[u8]) -> bool {
    let is_usual = |part: &[u8]| {
        let is_usual = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        !matches!(part, b"" | b"." | b"..") && part.iter().all(is_usual)
    };
    path.len() <= LONGEST && path.strip_prefix(b"/").is_some_and(|rest| rest.split(|&byte| byte == b'/').all(is_usual))
}

/// Whether a name is among these sorted ones.
fn has(names: &[u8], wanted: &[u8]) -> bool {
    let mut rest = names;
    while !rest.is_empty() {
        let middle = rest.len() / 2;
        let start = rest[..middle].iter().rposition(|&byte| byte == SEPARATOR).map_or(0, |at| at + 1);
        let end = rest[middle..].iter().position(|&byte| byte == SEPARATOR).map_or(rest.len(), |at| middle + at);
        rest = match rest[start..end].cmp(wanted) {
            core::cmp::Ordering::Equal => return true,
            core::cmp::Ordering::Less => rest.get(end + 1..).unwrap_or_default(),
            core::cmp::Ordering::Greater => &rest[..start.saturating_sub(1)],
        };
    }
    false
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::format;
    use std::string::String;
    use std::vec::Vec;

    use super::super::Content;
    use super::*;

    /// A machine with some directories, and this value of the variable.
    struct Machine(Option<&'static str>);

    impl Kernel for Machine {
        fn with_variable(&self, name: &[u8], see: &mut dyn FnMut(&[u8])) {
            assert_eq!(name, b"PYTHONPATH");
            self.0.into_iter().for_each(|value| see(value.as_bytes()));
        }
        fn names(&self, path: &[u8], each: &mut dyn FnMut(&[u8])) -> Option<bool> {
            let names: &[&[u8]] = match path {
                b"/free\0" => &[b".", b"..", b".json", b"own.py", b"js.py", b"jsons"],
                b"/module\0" => &[b"own.py", b"json.py"],
                b"/package\0" => &[b"re"],
                b"/library\0" => &[b"os.cpython-311-x86_64-linux-gnu.so"],
                b"/absent\0" => return Some(false),
                _ => return None,
            };
            names.iter().for_each(|name| each(name));
            Some(true)
        }
        fn uname(&self, _: &mut dyn FnMut([&[u8]; 4])) {}
        fn content(&self, _: &[u8]) -> Content {
            Content::Absent
        }
        fn user(&self) -> [u32; 4] {
            [0; 4]
        }
    }

    fn obstacle_of(made_with: Option<&str>, now: Option<&'static str>) -> Option<String> {
        let hex = |value: &str| image::digest(value.as_bytes()).map(|byte| format!("{byte:02x}")).concat();
        let recorded = format!("PYTHONPATH {}: json/os/re", made_with.map_or("unset".into(), hex));
        let value = Value::read_obstacle(&Machine(now), recorded.as_bytes())?;
        Some(String::from_utf8(value.bytes().to_vec()).unwrap())
    }

    #[test]
    fn directories_without_the_names_are_not_in_the_way() {
        for now in [None, Some(""), Some("/free"), Some("/absent:/free"), Some("/absent")] {
            assert_eq!(obstacle_of(None, now), None);
            assert_eq!(obstacle_of(Some("/module"), now), None, "nothing was found there");
        }
        assert_eq!(obstacle_of(Some("/module:x"), Some("/module:x")), None, "the same value, whatever it is");
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let found = |now| obstacle_of(Some("/elsewhere"), Some(now)).unwrap_or_default();
        assert_eq!(found("/free:/module"), "/module/json.py has a name that the boot looked up and did not find");
        assert_eq!(found("/package"), "/package/re has a name that the boot looked up and did not find");
        assert!(found("/library").contains("/library/os.cpython-311"));
        assert_eq!(found("/free:/zip"), "/zip is not a directory that can be listed");
        let long = format!("/{}", "long".repeat(50)).leak();
        for strange in ["x", ":", "/free:", ":/free", "/free/", "//free", "/./free", "/free/..", "/a b", long] {
            assert!(found(strange).starts_with("an entry is not a plain absolute path"), "{strange}");
        }
    }

    #[test]
    fn each_name_is_found() {
        let names: Vec<String> = (0..50).map(|number| format!("n{number:02}")).collect();
        let joined = names.join("/");
        assert!(names.iter().all(|name| has(joined.as_bytes(), name.as_bytes())));
        for absent in ["n", "n0", "n50", "n000", "m", "z", "0"] {
            assert!(!has(joined.as_bytes(), absent.as_bytes()), "{absent}");
        }
        assert!(has(b"a", b"a") && !has(b"", b"a"));
    }
}
