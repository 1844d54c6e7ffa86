//! Several runs as one tree: the run in the middle is shown, with the medians of all.

use std::collections::HashMap;

use crate::tree::{Kind, Node};

/// One tree of at least one.
pub fn merge(mut runs: Vec<Node>) -> Node {
    runs.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let mut shown = runs.remove(runs.len() / 2);
    settle(&mut shown, &runs.iter().collect::<Vec<_>>());
    shown
}

/// Puts the system calls of another run of the same into a tree.
pub fn put_calls(node: &mut Node, counted: &Node) {
    node.system_calls = counted.system_calls;
    node.failed_lookups = counted.failed_lookups;
    let theirs = by_key(counted);
    for (key, child) in keys(&node.children).into_iter().zip(&mut node.children) {
        if let Some(same) = theirs.get(&key) {
            put_calls(child, same);
        }
    }
}

/// Half the width of the middle half, and the median, of at least one value.
pub fn median_and_spread(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * (values.len() - 1) as f64;
        let (low, part) = (place.floor() as usize, place.fract());
        values[low] + part * (values[(low + 1).min(values.len() - 1)] - values[low])
    };
    (at(0.5), (at(0.75) - at(0.25)) / 2.0)
}

fn settle(node: &mut Node, others: &[&Node]) {
    let mut values: Vec<f64> = others.iter().map(|other| other.seconds).chain([node.seconds]).collect();
    (node.seconds, node.spread) = median_and_spread(&mut values);
    let theirs: Vec<_> = others.iter().map(|other| by_key(other)).collect();
    for (key, child) in keys(&node.children).into_iter().zip(&mut node.children) {
        let same: Vec<&Node> = theirs.iter().filter_map(|children| children.get(&key).copied()).collect();
        settle(child, &same);
    }
}

/// What tells a part from others beside it: kind, name, and how many of these come before.
type Key = (Kind, String, usize);

fn keys(children: &[Node]) -> Vec<Key> {
    let mut seen = HashMap::new();
    children
        .iter()
        .map(|child| {
            let count = seen.entry((child.kind, child.name.as_str())).or_insert(0);
            *count += 1;
            (child.kind, child.name.clone(), *count)
        })
        .collect()
}

fn by_key(node: &Node) -> HashMap<Key, &Node> {
    keys(&node.children).into_iter().zip(&node.children).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, seconds: f64, children: Vec<Node>) -> Node {
        let detail = None;
        Node { name: name.to_owned(), kind: Kind::Body, detail, start: 0.0, seconds, spread: 0.0, system_calls: 0, failed_lookups: 0, children }
    }

    #[test]
    fn each_part_has_its_own_median() {
        let run = |whole, part| node("process", whole, vec![node("a", part, vec![]), node("a", 7.0, vec![])]);
        let merged = merge(vec![run(10.0, 1.0), run(30.0, 2.0), run(20.0, 9.0)]);
        assert_eq!((merged.seconds, merged.children[0].seconds, merged.children[1].seconds), (20.0, 2.0, 7.0));
        assert_eq!(merged.spread, 5.0);
    }

    #[test]
    fn calls_go_to_the_same_part() {
        let mut timed = node("process", 1.0, vec![node("a", 1.0, vec![]), node("b", 1.0, vec![])]);
        let mut counted = node("process", 1.0, vec![node("b", 1.0, vec![])]);
        counted.children[0].system_calls = 5;
        put_calls(&mut timed, &counted);
        assert_eq!((timed.children[0].system_calls, timed.children[1].system_calls), (0, 5));
    }
}
