//! The place where each part of a start is drawn: the same in every viewer.
//!
//! Times and begins are medians of several runs, not all of which have all parts. So a part can seem to begin before its previous sibling
//! ends, or to last longer than its parent. Viewers need nested parts: these are moved as little as possible, and shrunk if they do not fit
//! into their parent. The time shown for a part is always its own.

use crate::{Node, Start};

/// A part of a start and its place, in nanoseconds from the begin of the process.
pub(crate) struct Span<'a> {
    pub(crate) node: &'a Node,
    pub(crate) depth: usize,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// All parts of a start: each before its children, and these in the order in which they began.
pub(crate) fn spans(start: &Start) -> Vec<Span<'_>> {
    let mut spans = Vec::new();
    place(&start.root, 0, nanoseconds(start.root.seconds), 0, &mut spans);
    spans
}

/// Seconds as nanoseconds; an invalid time, such as a negative one, as 0.
pub(crate) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn place<'a>(node: &'a Node, begin: u64, end: u64, depth: usize, spans: &mut Vec<Span<'a>>) {
    spans.push(Span { node, depth, begin, end });
    let wanted: Vec<u64> = node.children.iter().map(|child| nanoseconds(child.seconds)).collect();
    let (room, total) = (end - begin, wanted.iter().sum::<u64>());
    let fitting = |width: u64| match total > room {
        true => (u128::from(width) * u128::from(room) / u128::from(total)) as u64,
        false => width,
    };
    let mut still_to_come: u64 = wanted.iter().map(|&width| fitting(width)).sum();
    let mut free_from = begin;
    for (child, &width) in node.children.iter().zip(&wanted) {
        let width = fitting(width);
        let child_begin = nanoseconds(child.start).max(free_from).min(end - still_to_come);
        free_from = child_begin + width;
        still_to_come -= width;
        place(child, child_begin, free_from, depth + 1, spans);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn node(name: &str, start: f64, seconds: f64, children: Vec<Node>) -> Node {
        let name = name.to_owned();
        Node {
            name,
            kind: Kind::Body,
            detail: None,
            start,
            seconds,
            spread: 0.0,
            system_calls: 0,
            failed_lookups: 0,
            children,
        }
    }

    fn placed(root: Node) -> Vec<(String, usize, u64, u64)> {
        let (title, command) = (String::new(), String::new());
        let start = Start { title, command, runs: 1, overhead: 0.0, root };
        spans(&start).iter().map(|span| (span.node.name.clone(), span.depth, span.begin, span.end)).collect()
    }

    #[test]
    fn parts_are_where_they_began() {
        let inner = node("b", 3e-9, 2e-9, vec![node("c", 4e-9, 1e-9, vec![])]);
        let spans = placed(node("a", 0.0, 10e-9, vec![inner, node("d", 7e-9, 3e-9, vec![])]));
        let expected = [("a", 0, 0, 10), ("b", 1, 3, 5), ("c", 2, 4, 5), ("d", 1, 7, 10)];
        assert_eq!(spans, expected.map(|(name, depth, begin, end)| (name.to_owned(), depth, begin, end)));
    }

    #[test]
    fn what_would_overlap_is_moved() {
        let children =
            vec![node("b", 1e-9, 5e-9, vec![]), node("c", 4e-9, 2e-9, vec![]), node("d", 9e-9, 3e-9, vec![])];
        let spans = placed(node("a", 0.0, 10e-9, children));
        let places: Vec<_> = spans.iter().skip(1).map(|&(_, _, begin, end)| (begin, end)).collect();
        assert_eq!(places, [(0, 5), (5, 7), (7, 10)]);
    }

    #[test]
    fn what_is_too_long_for_its_parent_is_made_smaller() {
        let children = vec![node("b", 0.0, 30e-9, vec![]), node("c", 30e-9, 10e-9, vec![])];
        let spans = placed(node("a", 0.0, 20e-9, children));
        let places: Vec<_> = spans.iter().skip(1).map(|&(_, _, begin, end)| (begin, end)).collect();
        assert_eq!(places, [(0, 15), (15, 20)]);
    }

    #[test]
    fn times_that_are_none_take_no_room() {
        let children = vec![node("b", f64::NAN, -1.0, vec![]), node("c", -5.0, f64::NAN, vec![])];
        assert!(placed(node("a", 0.0, 0.0, children)).iter().all(|&(_, _, begin, end)| (begin, end) == (0, 0)));
    }
}
