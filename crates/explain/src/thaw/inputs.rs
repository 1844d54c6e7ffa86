//! The inputs that a thaw checks, by directory: related directories form one part.

use std::collections::BTreeMap;

use image::{Directory, Section};
use image_file::Variant;

use super::{count, put, step};
use crate::start_tree::part;
use crate::tree::{Kind, Node};

/// The maximum number of related directories that are shown one by one.
const MOST: usize = 5;
/// The name of a group's own directory, if others lie below it.
const DIRECTLY: &str = "directly in it";
/// Directories whose contents belong together, anywhere.
const ROOTS: [&str; 7] =
    ["site-packages", "dist-packages", "gems", "vendor_ruby", "site_ruby", "lib-dynload", "node_modules"];

/// Sums over one directory or several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Checked {
    directories: u64,
    files: u64,
    answers: u64,
    seconds: f64,
}

impl Checked {
    fn add(&mut self, other: &Checked) {
        self.directories += other.directories;
        self.files += other.files;
        self.answers += other.answers;
        self.seconds += other.seconds;
    }

    /// As part of a tree. `beside`: a second process has checked them.
    fn node(&self, name: &str, beside: bool) -> Node {
        let files = count(self.files, "input").unwrap_or_else(|| "no inputs".to_owned());
        let directories = (self.directories > 1).then(|| format!("{files} in {} directories", self.directories));
        let meanwhile = beside.then(|| format!("{:.2} ms meanwhile", self.seconds * 1000.0));
        let what = [Some(directories.unwrap_or(files)), meanwhile, count(self.answers, "answer")];
        let detail = what.into_iter().flatten().collect::<Vec<_>>().join(", ");
        Node { seconds: self.seconds, detail: Some(detail), ..part(name, Kind::Launcher, 0.0) }
    }
}

/// Adds them where they took time: to the check, or to the wait for the second process that made it. `seconds`: of each directory.
pub fn add(root: &mut Node, variant: &Variant, seconds: &[f64], beside: bool) {
    let name = if beside { "waiting for the check of inputs" } else { "checking inputs" };
    let Some(step) = step(root, name) else { return };
    let tables = variant.tables();
    let Ok(rows) = tables.rows::<Directory>(Section::Directories) else { return };
    let mut directories = Vec::new();
    for (row, &seconds) in rows.zip(seconds) {
        let path = tables.text(row.path).map(|path| String::from_utf8_lossy(path).into_owned()).unwrap_or_default();
        let answers = variant.answers(&row).map_or(0, |answers| answers.len() as u64);
        directories.push((path, Checked { directories: 1, files: row.inputs.into(), answers, seconds }));
    }
    put(step, nodes(&directories, beside));
}

/// One part for each group, with its most expensive directories.
fn nodes(directories: &[(String, Checked)], beside: bool) -> Vec<Node> {
    let paths: Vec<&str> = directories.iter().map(|(path, _)| path.as_str()).collect();
    let mut groups: BTreeMap<String, (Checked, BTreeMap<String, Checked>)> = BTreeMap::new();
    for (path, checked) in directories {
        let group = group(path, &paths);
        let below = path.strip_prefix(&group).unwrap_or("").trim_start_matches('/').split('/').next().unwrap_or("");
        let inner =
            if below.is_empty() { DIRECTLY.to_owned() } else { format!("{}/{below}", group.trim_end_matches('/')) };
        let (all, parts) = groups.entry(group).or_default();
        all.add(checked);
        parts.entry(inner).or_default().add(checked);
    }
    groups
        .into_iter()
        .map(|(name, (all, parts))| {
            let mut node = all.node(shown(&name), beside);
            let mut parts: Vec<_> = parts.into_iter().collect();
            if parts.len() > 1 {
                parts.sort_by(|one, other| other.1.seconds.total_cmp(&one.1.seconds));
                let rest = parts.split_off(MOST.min(parts.len()));
                node.children = parts.iter().map(|(name, checked)| checked.node(shown(name), beside)).collect();
                let mut others = Checked::default();
                rest.iter().for_each(|(_, checked)| others.add(checked));
                if others.directories > 0 {
                    node.children.push(others.node("others", beside));
                }
            }
            node
        })
        .collect()
}

fn shown(path: &str) -> &str {
    if path.is_empty() {
        "the current directory"
    } else {
        path
    }
}

/// The group of a directory: a folder of packages, a standard library, or else the common folder of all others that begin alike.
fn group(path: &str, all: &[&str]) -> String {
    if !path.starts_with('/') {
        return String::new();
    }
    root(path).map_or_else(
        || {
            let first = |path: &str| path.split('/').nth(1).unwrap_or("").to_owned();
            let alike = |other: &&&str| other.starts_with('/') && root(other).is_none() && first(other) == first(path);
            let alike: Vec<Vec<&str>> = all.iter().filter(alike).map(|other| other.split('/').collect()).collect();
            let same = |at: usize| alike.iter().all(|other| other.get(at) == alike[0].get(at));
            let most = alike.iter().map(Vec::len).min().unwrap_or(0);
            let length = (0..most).take_while(|&at| same(at)).count();
            match alike.first().map(|parts| parts[..length].join("/")) {
                Some(common) if !common.is_empty() => common,
                _ => "/".to_owned(),
            }
        },
        str::to_owned,
    )
}

/// The folder of packages or the standard library of a directory.
fn root(path: &str) -> Option<&str> {
    let mut end = 0;
    let (mut before, mut library, mut packages) = ("", None, None);
    for part in path.split('/') {
        end += part.len();
        let is_version =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        // For gems, the folder of their versions, and not that of RubyGems or of one version.
        if ROOTS.contains(&part) {
            packages = Some(&path[..end]);
        }
        if library.is_none()
            && (part.strip_prefix("python").is_some_and(is_version) || before == "ruby" && is_version(part))
        {
            library = Some(&path[..end]);
        }
        before = part;
        end += 1;
    }
    packages.or(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(files: u64, seconds: f64) -> Checked {
        Checked { directories: 1, files, answers: 0, seconds }
    }

    #[test]
    fn packages_and_standard_libraries_are_told_apart() {
        let roots = [
            ("/v/lib/python3.11/site-packages/flask/json", Some("/v/lib/python3.11/site-packages")),
            ("/usr/lib/python3.11/json", Some("/usr/lib/python3.11")),
            ("/usr/lib/ruby/3.1.0/json", Some("/usr/lib/ruby/3.1.0")),
            ("/var/lib/gems/3.1.0/gems/rack-3.0/lib", Some("/var/lib/gems/3.1.0/gems")),
            ("/usr/lib/ruby/vendor_ruby", Some("/usr/lib/ruby/vendor_ruby")),
            ("/home/me/app", None),
        ];
        for (path, expected) in roots {
            assert_eq!(root(path), expected, "{path}");
        }
    }

    #[test]
    fn what_is_in_no_such_folder_has_the_common_one() {
        let all = ["/home/me/app", "/home/me/app/a", "/home/me/app/b", "/usr/share/zoneinfo", "/"];
        assert_eq!(group("/home/me/app/b", &all), "/home/me/app");
        assert_eq!(group("/usr/share/zoneinfo", &all), "/usr/share/zoneinfo");
        assert_eq!(group("/", &all), "/");
        assert_eq!(group("", &all), "");
        assert_eq!(group("/home/me", &["/home/me", "/home/other"]), "/home");
    }

    #[test]
    fn groups_have_those_that_cost_most_one_by_one_and_all_others_as_one() {
        let package = |name: &str| format!("/v/site-packages/{name}");
        let mut directories: Vec<_> = (1..=8).map(|n| (package(&format!("p{n}")), checked(n, n as f64))).collect();
        directories.push((package("p8/inner"), checked(10, 1.0)));
        directories.push(("/etc/ssl".to_owned(), checked(1, 0.5)));
        let groups = nodes(&directories, true);
        let group = groups.iter().find(|node| node.name == "/v/site-packages").unwrap();
        assert_eq!(group.detail.as_deref(), Some("46 inputs in 9 directories, 37000.00 ms meanwhile"));
        let names: Vec<_> = group.children.iter().map(|node| (node.name.as_str(), node.seconds)).collect();
        assert_eq!(names[0], ("/v/site-packages/p8", 9.0));
        assert_eq!((names.len(), *names.last().unwrap()), (MOST + 1, ("others", 6.0)));
        assert!(groups.iter().any(|node| node.name == "/etc/ssl" && node.children.is_empty()));
    }
}
