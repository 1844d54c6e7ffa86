//! The entries between which the parts of a start lie.

use crate::events::Event;
use crate::tree::Kind;

/// A part of a start that is nested in no other.
#[derive(Debug, PartialEq)]
pub struct Span {
    pub kind: Kind,
    pub name: String,
    /// Numbers of the entries with which it begins and ends.
    pub begin: usize,
    pub end: usize,
    /// Those of its nested parts.
    pub inner: Vec<(usize, usize)>,
}

/// The interval between two entries.
#[derive(Debug, PartialEq)]
pub struct Interval {
    pub kind: Kind,
    /// The name of the part.
    pub name: String,
    pub begin: usize,
    /// None at the end of the process.
    pub end: Option<usize>,
    pub inner: Vec<(usize, usize)>,
    /// Whether the launcher took these faults in advance.
    pub is_launcher: bool,
}

/// The parts that are nested in no other.
pub fn top(events: &[Event]) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    // The launcher's times are recorded without counting calls, and have no number.
    let numbered = events.iter().filter(|event| !matches!(event, Event::Checked { .. } | Event::Mapped { .. }));
    for (number, event) in numbered.enumerate() {
        match event {
            Event::Begin { kind, name, .. } => {
                if open.is_empty() {
                    let (kind, name) = (*kind, name.clone());
                    spans.push(Span { kind, name, begin: number, end: number, inner: Vec::new() });
                }
                open.push(number);
            }
            Event::End { .. } => {
                let (begin, span) = (open.pop(), spans.last_mut());
                match (begin, span, open.len()) {
                    (Some(_), Some(span), 0) => span.end = number,
                    (Some(begin), Some(span), 1) => span.inner.push((begin, number)),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    spans
}

/// The intervals for faults: those that the launcher takes in advance, then each part up to the next one, and the end of the process. Also
/// returns the entry with which the launcher ends. None without events of the launcher.
pub fn intervals(events: &[Event]) -> Option<(Vec<Interval>, usize)> {
    let spans = top(events);
    let is_launcher = |span: &Span| matches!(span.kind, Kind::Launcher | Kind::Mapping | Kind::Faults);
    let after = spans.iter().position(|span| !is_launcher(span))?;
    let thawed = spans[after.checked_sub(1)?].end;
    let mut intervals: Vec<Interval> = spans[..after]
        .iter()
        .enumerate()
        .filter(|(_, span)| span.kind == Kind::Faults)
        .map(|(index, span)| Interval {
            kind: span.kind,
            name: span.name.clone(),
            begin: span.begin,
            end: Some(spans.get(index + 1).map_or(span.end, |next| next.begin)),
            inner: Vec::new(),
            is_launcher: true,
        })
        .collect();
    intervals.push(Interval {
        kind: Kind::Context,
        name: crate::start_tree::RETURN.to_owned(),
        begin: thawed,
        end: Some(spans[after].begin),
        inner: Vec::new(),
        is_launcher: false,
    });
    let mut begin = spans[after].begin;
    for span in spans.into_iter().skip(after) {
        let (end, is_launcher) = (Some(span.end), false);
        intervals.push(Interval { kind: span.kind, name: span.name, begin, end, inner: span.inner, is_launcher });
        begin = span.end;
    }
    let name = crate::start_tree::END_OF_THAW.to_owned();
    intervals.push(Interval { kind: Kind::Exit, name, begin, end: None, inner: Vec::new(), is_launcher: false });
    Some((intervals, thawed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::parse;

    #[test]
    fn parts_follow_each_other_up_to_the_end_of_the_process() {
        let text =
            "begin=1 launcher a|end=2 |begin=2 faults b|end=3 |begin=3 launcher c|end=4 |checked=1 0 5|mapped=1 5|\
                    begin=5 context d|end=6 |begin=6 main e|begin=7 body f|collected=1|end=8 |end=9 |";
        let events = parse(text.replace('|', "\0").as_bytes()).unwrap();
        let (intervals, thawed) = intervals(&events).unwrap();
        assert_eq!(thawed, 5);
        let lie: Vec<_> = intervals.iter().map(|part| (part.name.as_str(), part.begin, part.end)).collect();
        let expected = [
            ("b", 2, Some(4)),
            (crate::start_tree::RETURN, 5, Some(6)),
            ("d", 6, Some(7)),
            ("e", 7, Some(12)),
            (crate::start_tree::END_OF_THAW, 12, None),
        ];
        assert_eq!(lie, expected);
        assert_eq!(intervals[3].inner, [(9, 11)]);
    }
}
