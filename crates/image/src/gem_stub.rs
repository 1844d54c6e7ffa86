//! Whether a new gem may have a feature, judging by the folders that the start of its specification lists, as RubyGems
//! reads it, and by the files in them.

/// Bytes of a specification that are read. The stub lines always lie within them.
pub const MAX_START: usize = 1024;

/// What RubyGems appends to the name of a feature.
pub const FEATURE_SUFFIXES: [&[u8]; 3] = [b"", b".rb", b".so"];

/// Between features.
const SEPARATOR: u8 = b'\n';

/// How a stub line starts.
const PREFIX: &[u8] = b"# stub: ";

/// Size of the buffer for a path. A longer path cannot be looked up.
const MAX_PATH: usize = 4096;

/// Whether the gem of a specification may have one of these features. `name` is the file name of the specification, and
/// `start` its first bytes. `is_file` tells whether a file exists at a path that is relative to the directory of
/// specifications and ends with a NUL. True if the start does not tell, and for a gem with extensions, whose files are
/// elsewhere.
pub fn may_have_feature(features: &[u8], name: &[u8], start: &[u8], mut is_file: impl FnMut(&[u8]) -> bool) -> bool {
    let Some(full_name) = name.strip_suffix(b".gemspec") else { return false };
    let Some(folders) = folders(full_name, start) else { return true };
    let mut path = Path { bytes: [0; MAX_PATH], length: 0 };
    folders.split(|&byte| byte == 0).any(|folder| {
        features.split(|&byte| byte == SEPARATOR).any(|feature| {
            FEATURE_SUFFIXES.into_iter().any(|suffix| {
                path.length = 0;
                let parts: [&[u8]; 8] = [b"../gems/", full_name, b"/", folder, b"/", feature, suffix, b"\0"];
                parts.iter().any(|part| !path.push(part)) || is_file(&path.bytes[..path.length])
            })
        })
    })
}

/// The folders of a gem that a specification lists, separated by NULs. None if it does not list them as installers do,
/// or has extensions.
fn folders<'a>(full_name: &[u8], start: &'a [u8]) -> Option<&'a [u8]> {
    let mut lines = start.split(|&byte| byte == b'\n');
    let mut line = || lines.next().map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    line()?;
    let mut parts = line()?.strip_prefix(PREFIX)?.splitn(4, |&byte| byte == b' ');
    let (name, version, platform, folders) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let next = lines.next()?;
    // A line without its end may be truncated.
    lines.next().filter(|_| !next.starts_with(PREFIX))?;
    let rest = full_name.strip_prefix(name)?.strip_prefix(b"-")?.strip_prefix(version)?;
    let is_own = if platform == b"ruby" { rest.is_empty() } else { rest.strip_prefix(b"-") == Some(platform) };
    (is_own && !folders.is_empty()).then_some(folders)
}

/// The key of a known specification's name.
pub fn specification_key(name: &[u8]) -> [u8; 16] {
    core::array::from_fn(|place| b"0123456789abcdef"[(crate::checksum(name) >> (60 - 4 * place)) as usize & 15])
}

/// Whether `all`, which is sorted, contains this name.
pub fn is_known(all: &[u8], name: &[u8]) -> bool {
    all.as_chunks().0.binary_search(&specification_key(name)).is_ok()
}

struct Path {
    bytes: [u8; MAX_PATH],
    length: usize,
}

impl Path {
    /// Appends a component; false if the buffer is full.
    fn push(&mut self, part: &[u8]) -> bool {
        let end = self.length + part.len();
        let place = self.bytes.get_mut(self.length..end);
        self.length = end;
        place.map(|place| place.copy_from_slice(part)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;

    use std::format;
    use std::string::{String, ToString};
    use std::vec::Vec;

    const ENCODING: &str = "# -*- encoding: utf-8 -*-";

    /// The paths that are looked up; None if the gem may have the feature in any case.
    fn sought(features: &str, name: &str, start: &str) -> Option<Vec<String>> {
        let mut all = Vec::new();
        let note = |path: &[u8]| {
            all.push(core::str::from_utf8(path).unwrap().to_string());
            false
        };
        (!may_have_feature(features.as_bytes(), name.as_bytes(), start.as_bytes(), note)).then_some(all)
    }

    #[test]
    fn a_feature_is_looked_for_in_the_folders_that_the_specification_names() {
        let start = format!("{ENCODING}\n# stub: rack 2.0 ruby lib\0ext/x\n\nGem\n");
        let sought = |features| sought(features, "rack-2.0.gemspec", &start).unwrap();
        let path = |rest: &str| format!("../gems/rack-2.0/{rest}\0");
        let of = |rest: &str| FEATURE_SUFFIXES.map(|it| path(&(rest.to_string() + core::str::from_utf8(it).unwrap())));
        assert_eq!(sought("a"), [of("lib/a"), of("ext/x/a")].concat());
        assert_eq!(sought("a\nb/c")[..6], [of("lib/a"), of("lib/b/c")].concat());
        let has = |file: &str| {
            may_have_feature(b"a", b"rack-2.0.gemspec", start.as_bytes(), |it| it == path(file).as_bytes())
        };
        assert!(has("lib/a.rb") && has("ext/x/a.so") && has("lib/a") && !has("lib/b.rb") && !has("a.rb"));
    }

    #[test]
    fn a_specification_is_known_by_the_checksum_of_its_name() {
        let mut all = ["a-1.gemspec", "b-1.gemspec", "c-1.gemspec"].map(|name| specification_key(name.as_bytes()));
        all.sort_unstable();
        let is = |name: &str| is_known(all.as_flattened(), name.as_bytes());
        assert!(is("a-1.gemspec") && is("b-1.gemspec") && is("c-1.gemspec") && !is("d-1.gemspec") && !is(""));
        assert!(!is_known(b"", b"a-1.gemspec"));
    }

    #[test]
    fn a_specification_that_does_not_tell_may_have_it() {
        let is_told = |name: &str, lines: &str| sought("a", name, &format!("{ENCODING}\n{lines}")).is_some();
        assert!(is_told("rack-2.0.gemspec", "# stub: rack 2.0 ruby lib\n\n"));
        assert!(is_told("rack-2.0-x86_64-linux.gemspec", "# stub: rack 2.0 x86_64-linux lib\n\n"));
        assert!(!is_told("rack-2.0.gemspec", "# stub: rack 2.0 ruby lib\n# stub: ext/extconf.rb\n"), "extensions");
        assert!(!is_told("other-2.0.gemspec", "# stub: rack 2.0 ruby lib\n\n"), "another name");
        assert!(!is_told("rack-2.0.gemspec", "# stub: rack 2.0 java lib\n\n"), "another platform");
        for short in ["", "Gem::Specification.new\n\n", "# stub: rack 2.0 ruby lib", "# stub: rack 2.0 ruby lib\n# st"]
        {
            assert!(!is_told("rack-2.0.gemspec", short), "{short}");
        }
        let long = "l".repeat(MAX_PATH);
        assert!(!is_told("rack-2.0.gemspec", &format!("# stub: rack 2.0 ruby {long}\n\n")));
        assert_eq!(sought("a", "rack-2.0.txt", ""), Some(Vec::new()), "no specification");
    }
}
