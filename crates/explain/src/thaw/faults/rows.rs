//! Page faults as parts of a tree.

use super::super::{count, put};
use super::{Held, OfPart};
use crate::start_tree::part;
use crate::tree::{Kind, Node};

/// The name of the part with all faults of a part.
const FAULTS: &str = "page faults";
/// The name of its part for unknown pages.
const OTHERS: &str = "pages that are gone by the end of this part, or were read first and written to later";

/// Puts the faults into the parts in which they occurred.
pub fn add(root: &mut Node, parts: &[OfPart]) {
    let mut from = 0;
    for of in parts {
        let is_it = |node: &Node| node.kind == of.interval.kind && node.name == of.interval.name;
        // Several parts may have the same name, in order.
        let Some(place) = root.children.iter().skip(from).position(is_it) else { continue };
        from += place + 1;
        let step = &mut root.children[from - 1];
        match of.interval.is_launcher {
            true => in_advance(step, of),
            false => after_the_launcher(step, of),
        }
    }
}

/// This step did nothing but bring in pages: each takes the same time.
fn in_advance(step: &mut Node, of: &OfPart) {
    let all: u64 = of.held.values().map(Held::faults).sum();
    let each = step.seconds / all.max(1) as f64;
    let nodes = of.held.iter().map(|(name, held)| Node {
        seconds: held.faults() as f64 * each,
        detail: Some(pages(held)),
        ..part(name, Kind::Faults, 0.0)
    });
    put(step, nodes.collect());
}

fn after_the_launcher(step: &mut Node, of: &OfPart) {
    if of.count == 0 {
        return;
    }
    let known: u64 = of.held.values().map(Held::faults).sum();
    let seconds: f64 = of.held.values().map(|held| held.seconds).sum();
    let others = of.count.saturating_sub(known);
    let mut all = part(FAULTS, Kind::Faults, 0.0);
    all.children = of
        .held
        .iter()
        .map(|(name, held)| Node {
            seconds: held.seconds,
            detail: Some(format!("{}: {}", times(held.faults()), pages(held))),
            ..part(name, Kind::Faults, 0.0)
        })
        .collect();
    if others > 0 {
        let seconds = seconds / known.max(1) as f64 * others as f64;
        all.children.push(Node { seconds, detail: Some(times(others)), ..part(OTHERS, Kind::Faults, 0.0) });
    }
    all.children.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    all.seconds = all.children.iter().map(|child| child.seconds).sum();
    // Faults of nested parts are in the time of those.
    let inner = of.inner.min(of.count) as f64 / of.count as f64;
    all.detail = Some(match of.inner {
        0 => times(of.count),
        number => {
            format!("{}, {number} ({:.2} ms) in what it loads", times(of.count), all.seconds * inner * 1000.0)
        }
    });
    super::super::scale(&mut all, 1.0 - inner);
    put(step, vec![all]);
}

fn times(faults: u64) -> String {
    count(faults, "fault").unwrap_or_else(|| "no faults".to_owned())
}

/// What became of pages: `20 pages copied, 3 new, 48 read`.
fn pages(held: &Held) -> String {
    let what = [(held.copied, "copied"), (held.new, "new"), (held.read, "read")];
    let mut what: Vec<_> =
        what.iter().filter(|(number, _)| *number > 0).map(|(number, what)| (*number, *what)).collect();
    let Some((first, word)) = (!what.is_empty()).then(|| what.remove(0)) else { return String::new() };
    let rest = what.into_iter().map(|(number, what)| format!(", {number} {what}"));
    format!("{} {word}{}", count(first, "page").unwrap_or_default(), rest.collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::spans::Interval;
    use super::*;

    fn faults(count: u64, inner: u64) -> OfPart {
        let interval = Interval {
            kind: Kind::Main,
            name: "__main__".to_owned(),
            begin: 0,
            end: None,
            inner: Vec::new(),
            is_launcher: false,
        };
        let heap = Held { copied: 3, new: 1, new_times: 1, seconds: 2.0, ..Held::default() };
        let library = Held { read: 20, read_times: 2, seconds: 1.0, ..Held::default() };
        let held = BTreeMap::from([("heap".to_owned(), heap), ("/libc".to_owned(), library)]);
        OfPart { interval, count, inner, held }
    }

    fn root(seconds: f64) -> Node {
        let main = Node { seconds, ..part("__main__", Kind::Main, 0.0) };
        Node { seconds, children: vec![main], ..part("process", Kind::Process, 0.0) }
    }

    fn described(node: &Node) -> Vec<(&str, &str, f64)> {
        node.children
            .iter()
            .map(|child| (child.name.as_str(), child.detail.as_deref().unwrap_or(""), child.seconds))
            .collect()
    }

    #[test]
    fn faults_are_told_by_what_the_pages_hold() {
        let mut root = root(10.0);
        add(&mut root, &[faults(6, 0)]);
        let main = &root.children[0];
        assert_eq!(described(main), [("page faults", "6 faults", 3.0)]);
        assert_eq!(main.own(), 7.0);
        let expected = [("heap", "4 faults: 3 pages copied, 1 new", 2.0), ("/libc", "2 faults: 20 pages read", 1.0)];
        assert_eq!(described(&main.children[0]), expected);
    }

    #[test]
    fn those_of_unknown_pages_are_told_and_those_of_inner_parts_cost_this_one_nothing() {
        let mut root = root(10.0);
        add(&mut root, &[faults(8, 4)]);
        let all = &root.children[0].children[0];
        assert_eq!((all.detail.as_deref(), all.seconds), (Some("8 faults, 4 (2000.00 ms) in what it loads"), 2.0));
        assert!(described(all).contains(&(OTHERS, "2 faults", 0.5)));
    }

    #[test]
    fn they_are_never_more_than_the_part_that_took_them() {
        let mut root = root(1.5);
        add(&mut root, &[faults(6, 0)]);
        assert_eq!(root.children[0].own(), 0.0);
        assert_eq!(root.children[0].children[0].seconds, 1.5);
    }
}
