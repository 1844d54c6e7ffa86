//! Selects the parts of a tree to show: those that cost most, the others in one row.

use std::collections::BTreeMap;
use std::path::Path;

use explain::{Kind, Node};

/// One line of a tree.
#[derive(Debug, PartialEq)]
pub struct Row {
    /// How deep it lies.
    pub depth: usize,
    /// What it is.
    pub name: String,
    /// The amount that a thaw checks, maps or reads.
    pub amount: Option<String>,
    pub kind: Kind,
    /// With everything it contains, and without (s).
    pub seconds: f64,
    pub spread: f64,
    pub own: f64,
    pub system_calls: u64,
    pub failed_lookups: u64,
}

/// The lines of a tree. Parts that take less than `least` (s) are folded into one line of their parent. Modules and features are sorted by
/// cost, all other parts by time.
pub fn lines(root: &Node, least: f64) -> Vec<Row> {
    let mut rows = Vec::new();
    add(root, 0, least, &mut rows);
    rows
}

fn add(node: &Node, depth: usize, least: f64, rows: &mut Vec<Row>) {
    rows.push(Row {
        depth,
        name: name(node),
        amount: amount(node),
        kind: node.kind,
        seconds: node.seconds,
        spread: node.spread,
        own: node.own(),
        system_calls: node.system_calls,
        failed_lookups: node.failed_lookups,
    });
    let (mut shown, folded): (Vec<&Node>, Vec<&Node>) =
        node.children.iter().partition(|child| child.seconds >= least || depth == 0 && child.kind != Kind::Other);
    if depth > 0 {
        shown.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    }
    for child in shown {
        add(child, depth + 1, least, rows);
    }
    let seconds: f64 = folded.iter().map(|child| child.seconds).sum();
    // Less than this is not worth showing.
    if seconds >= least / 4.0 && !folded.is_empty() {
        let sum = |part: fn(&Node) -> u64| folded.iter().map(|child| part(child)).sum();
        rows.push(Row {
            depth: depth + 1,
            name: match folded.as_slice() {
                [only] => name(only),
                several => format!("{} more", several.len()),
            },
            amount: match folded.as_slice() {
                [only] => amount(only),
                _ => None,
            },
            kind: Kind::Other,
            seconds,
            spread: 0.0,
            own: folded.iter().map(|child| child.own()).sum(),
            system_calls: sum(|child| child.system_calls),
            failed_lookups: sum(|child| child.failed_lookups),
        });
    }
}

/// The name of a part: a search or a read is named after the action, since its line stands below the name.
fn name(node: &Node) -> String {
    match node.kind {
        Kind::Search if node.detail.as_deref() == Some("not there") => format!("search for {} (not there)", node.name),
        Kind::Search => "search".to_owned(),
        Kind::Code => "read and decode".to_owned(),
        Kind::Lookup => "look-up in the archive".to_owned(),
        Kind::Stored => "code from the archive".to_owned(),
        Kind::Data => format!("from the archive: {}", short(&node.name)),
        _ => short(&node.name),
    }
}

fn amount(node: &Node) -> Option<String> {
    node.detail.clone().filter(|_| matches!(node.kind, Kind::Launcher | Kind::Mapping | Kind::Faults))
}

/// A short form of a path: relative to the current directory, or to its folder of libraries.
fn short(name: &str) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    let from_here = Path::new(name).strip_prefix(&here).ok().map(|path| path.display().to_string());
    let in_library = || Some(name.strip_prefix('/')?.rsplit_once("/lib/")?.1.to_owned());
    from_here.filter(|path| !path.is_empty()).or_else(in_library).unwrap_or_else(|| name.to_owned())
}

/// How long a start spends on each sort of work, without nested parts (s), with the numbers of system calls and failed look-ups; in the
/// order of the sorts.
pub fn by_kind(root: &Node) -> Vec<(Kind, f64, u64, u64)> {
    let mut sums: Vec<(Kind, f64, u64, u64)> = Vec::new();
    sum(root, &mut sums);
    // The rest of the whole could not be attributed.
    sums.iter_mut().filter(|(kind, ..)| *kind == Kind::Process).for_each(|(kind, ..)| *kind = Kind::Other);
    sums.sort_by_key(|(kind, ..)| *kind);
    sums.dedup_by(|one, before| {
        let is_same = one.0 == before.0;
        if is_same {
            before.1 += one.1;
            before.2 += one.2;
            before.3 += one.3;
        }
        is_same
    });
    sums
}

/// How long two starts spend on each part of the same name, without nested parts (s): the largest difference first. A part of one start
/// alone takes no time in the other.
pub fn differences(one: &Node, other: &Node) -> Vec<(String, f64, f64)> {
    let mut times: BTreeMap<(Kind, String), (f64, f64)> = BTreeMap::new();
    add_own(one, &mut |key, seconds| times.entry(key).or_default().0 += seconds);
    add_own(other, &mut |key, seconds| times.entry(key).or_default().1 += seconds);
    let named = |((kind, name), (one, other))| match kind {
        Kind::Search => (format!("search for {name}"), one, other),
        Kind::Code => (format!("reading and decoding {name}"), one, other),
        Kind::Data => (format!("{name} from the archive"), one, other),
        _ => (name, one, other),
    };
    let mut rows: Vec<_> = times.into_iter().map(named).collect();
    rows.sort_by(|one, other| (other.2 - other.1).abs().total_cmp(&(one.2 - one.1).abs()));
    rows
}

fn add_own(node: &Node, add: &mut impl FnMut((Kind, String), f64)) {
    // An answer from the boot archive is compared with the work that it saves.
    let kind = match node.kind {
        Kind::Lookup => Kind::Search,
        Kind::Stored => Kind::Code,
        kind => kind,
    };
    add((kind, short(&node.name)), node.own());
    node.children.iter().for_each(|child| add_own(child, add));
}

fn sum(node: &Node, sums: &mut Vec<(Kind, f64, u64, u64)>) {
    let of_children = |part: fn(&Node) -> u64| node.children.iter().map(part).sum::<u64>();
    let calls = node.system_calls.saturating_sub(of_children(|child| child.system_calls));
    let failed = node.failed_lookups.saturating_sub(of_children(|child| child.failed_lookups));
    sums.push((node.kind, node.own(), calls, failed));
    node.children.iter().for_each(|child| sum(child, sums));
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn node(name: &str, kind: Kind, seconds: f64, children: Vec<Node>) -> Node {
        let (detail, name) = (None, name.to_owned());
        Node { name, kind, detail, start: 0.0, seconds, spread: 0.0, system_calls: 3, failed_lookups: 1, children }
    }

    #[test]
    fn what_costs_little_is_one_row() {
        let part = |name: &str, seconds| node(name, Kind::Body, seconds, vec![]);
        let main =
            node("__main__", Kind::Main, 10.0, vec![part("a", 1.0), part("b", 0.2), part("c", 5.0), part("d", 0.2)]);
        let rows = lines(&node("process", Kind::Process, 11.0, vec![main]), 0.5);
        let names: Vec<_> = rows.iter().map(|row| (row.depth, row.name.as_str(), row.seconds)).collect();
        assert_eq!(
            names,
            [(0, "process", 11.0), (1, "__main__", 10.0), (2, "c", 5.0), (2, "a", 1.0), (2, "2 more", 0.4)]
        );
    }

    #[test]
    fn what_differs_most_comes_first() {
        let start = |a, b| {
            node(
                "process",
                Kind::Process,
                a + b,
                vec![node("a", Kind::Body, a, vec![]), node("b", Kind::Body, b, vec![])],
            )
        };
        let rows = differences(&start(1.0, 2.0), &start(1.5, 6.0));
        assert_eq!(rows[..2], [("b".to_owned(), 2.0, 6.0), ("a".to_owned(), 1.0, 1.5)]);
    }

    #[test]
    fn what_the_archive_answers_is_compared_with_what_it_spares() {
        let start = |search, code| {
            let parts = vec![node("a", search, 1.0, vec![]), node("a", code, 1.0, vec![])];
            node("process", Kind::Process, 2.0, parts)
        };
        let rows = differences(&start(Kind::Search, Kind::Code), &start(Kind::Lookup, Kind::Stored));
        let names: Vec<_> = rows.iter().map(|(name, one, other)| (name.as_str(), *one, *other)).collect();
        assert_eq!(names[1..], [("search for a", 1.0, 1.0), ("reading and decoding a", 1.0, 1.0)]);
    }

    #[test]
    fn sorts_share_the_whole_between_them() {
        let body =
            node("a", Kind::Body, 6.0, vec![node("a", Kind::Code, 1.0, vec![]), node("b", Kind::Body, 2.0, vec![])]);
        let mut root = node("process", Kind::Process, 10.0, vec![node("__main__", Kind::Main, 9.0, vec![body])]);
        root.system_calls = 20;
        let sums: Vec<_> = by_kind(&root).into_iter().map(|(kind, seconds, ..)| (kind, seconds)).collect();
        assert_eq!(sums, [(Kind::Code, 1.0), (Kind::Body, 5.0), (Kind::Main, 3.0), (Kind::Other, 1.0)]);
    }
}
