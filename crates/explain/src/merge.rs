//! Merges several runs into one tree.
//!
//! The parts of the median run are shown. A part's own time and its begin are medians of all runs, so a disturbance of one or two runs does
//! not count; its total is the sum with its children. Collections are an exception: another run has them in other parts, so a median of
//! each would be zero. They are those of the shown run, scaled to the median of their total in all runs. The rest of the whole process is a
//! part of its own (see the decision on medians).

use std::collections::HashMap;

use crate::tree::{Kind, Node};

/// Merges at least one tree.
pub fn merge(mut runs: Vec<Node>) -> Node {
    runs.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let mut shown = runs[runs.len() / 2].clone();
    let mut collected: Vec<f64> = runs.iter().map(collections).collect();
    let of_shown = collections(&shown);
    let share = if of_shown > 0.0 { median_and_spread(&mut collected).0 / of_shown } else { 1.0 };
    settle(&mut shown, &runs.iter().map(Some).collect::<Vec<_>>(), share);
    let mut all: Vec<f64> = runs.iter().map(|run| run.seconds).collect();
    shown.seconds = median_and_spread(&mut all).0;
    shown
}

/// The total time of collections (s).
fn collections(node: &Node) -> f64 {
    let own = if node.kind == Kind::Collector { node.seconds } else { 0.0 };
    own + node.children.iter().map(collections).sum::<f64>()
}

/// Copies the system calls of another run of the same command into a tree.
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

/// The median, and half the width of the middle half, of at least one value.
pub fn median_and_spread(values: &mut [f64]) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = share * (values.len() - 1) as f64;
        let (low, part) = (place.floor() as usize, place.fract());
        values[low] + part * (values[(low + 1).min(values.len() - 1)] - values[low])
    };
    (at(0.5), (at(0.75) - at(0.25)) / 2.0)
}

/// `runs`: the same part in each run, if it has one. `share`: the factor for the collections of the shown run.
fn settle(node: &mut Node, runs: &[Option<&Node>], share: f64) {
    let all = |time: fn(&Node) -> f64| runs.iter().map(|run| run.map_or(0.0, time)).collect::<Vec<f64>>();
    // A part that a run does not have took no time in it.
    let own = median_and_spread(&mut all(Node::own)).0;
    node.spread = median_and_spread(&mut all(|run| run.seconds)).1;
    let mut begins: Vec<f64> = runs.iter().flatten().map(|run| run.start).collect();
    if !begins.is_empty() {
        node.start = median_and_spread(&mut begins).0;
    }
    let theirs: Vec<_> = runs.iter().map(|run| run.map(by_key)).collect();
    for (key, child) in keys(&node.children).into_iter().zip(&mut node.children) {
        if child.kind == Kind::Collector {
            child.seconds *= share;
            continue;
        }
        let same: Vec<Option<&Node>> = theirs.iter().map(|children| children.as_ref()?.get(&key).copied()).collect();
        settle(child, &same, share);
    }
    node.seconds = own + node.children.iter().map(|child| child.seconds).sum::<f64>();
}

/// Identifies a part among its siblings: kind, name, and the number of equal ones before it.
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
        Node {
            name: name.to_owned(),
            kind: Kind::Body,
            detail,
            start: 0.0,
            seconds,
            spread: 0.0,
            system_calls: 0,
            failed_lookups: 0,
            children,
        }
    }

    #[test]
    fn times_are_medians_and_a_run_that_was_disturbed_does_not_count() {
        let run = |whole, part| node("process", whole, vec![node("a", part, vec![]), node("a", whole - part, vec![])]);
        let runs = vec![run(10.0, 1.0), run(900.0, 2.0), run(20.0, 9.0), run(12.0, 2.0), run(13.0, 4.0)];
        let merged = merge(runs);
        assert_eq!((merged.seconds, merged.children[0].seconds, merged.children[1].seconds), (13.0, 2.0, 10.0));
        assert_eq!(merged.spread, 4.0);
    }

    #[test]
    fn a_part_takes_what_it_takes_itself_and_what_its_parts_take() {
        let run = |inner: [f64; 3]| {
            let parts = vec![node("b", inner[0], vec![]), node("c", inner[1], vec![])];
            node("process", 100.0, vec![node("a", inner.iter().sum(), parts)])
        };
        // Each part is disturbed in one run, so the median of the whole exceeds their sum.
        let merged = merge(vec![run([9.0, 2.0, 3.0]), run([1.0, 9.0, 3.0]), run([1.0, 2.0, 9.0])]);
        let part = &merged.children[0];
        assert_eq!((part.seconds, part.own()), (6.0, 3.0));
        assert_eq!(merged.seconds, 100.0);
    }

    #[test]
    fn collections_that_move_from_part_to_part_take_what_they_take() {
        let collection = |seconds| Node { kind: Kind::Collector, ..node("garbage collection", seconds, vec![]) };
        let part = |name, collected: Option<f64>| {
            node(name, 1.0 + collected.unwrap_or(0.0), collected.map(collection).into_iter().collect())
        };
        let run = |a, b, c, whole| node("process", whole, vec![part("a", a), part("b", b), part("c", c)]);
        let runs = vec![
            run(Some(4.0), None, None, 20.0),
            run(None, Some(2.0), Some(3.0), 21.0),
            run(None, Some(2.0), Some(8.0), 30.0),
        ];
        let merged = merge(runs);
        assert_eq!(collections(&merged), 5.0);
        assert!(merged.children.iter().all(|part| part.own() == 1.0));
    }

    #[test]
    fn what_only_few_runs_have_takes_no_time() {
        let runs = [3.0, 3.0, 3.0].map(|whole| node("process", whole, vec![])).to_vec();
        let mut runs = runs;
        runs[1].children.push(node("a", 3.0, vec![]));
        assert_eq!(merge(runs).children[0].seconds, 0.0);
    }

    #[test]
    fn begins_are_those_of_the_same_runs_as_times() {
        let run = |scale: f64| {
            let part = Node { start: scale * 6.0, ..node("a", scale * 4.0, vec![]) };
            node("process", scale * 10.0, vec![part])
        };
        let merged = merge(vec![run(1.0), run(1.0), run(4.0)]);
        let part = &merged.children[0];
        assert_eq!((merged.seconds, part.start, part.seconds), (10.0, 6.0, 4.0));
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
