//! A report as one HTML page: with its style, its script and its data in one file, so that it can be kept and sent.
//!
//! The script renders everything (see page/). Text of the report enters the page only as data: as JSON in which no `<` can end the
//! surrounding element, and from there as the text of elements. A policy in the page forbids it to load anything.

use std::collections::{BTreeSet, HashMap};

use serde_json::{json, Value};

use crate::spans::{nanoseconds, spans, Span};
use crate::{Kind, Report, Start};

/// The page around style, data and script, with a marker for each.
const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    include_str!("page/data.js"),
    include_str!("page/chart.js"),
    include_str!("page/table.js"),
    include_str!("page/page.js")
);

/// All kinds, with their names and descriptions on the page, in its order.
const KINDS: [(Kind, &str, &str); 18] = [
    (Kind::Interpreter, "Interpreter", "the interpreter's own start"),
    (Kind::Archive, "Archive", "switching the boot archive on, and opening it"),
    (Kind::Search, "Search", "looking for the files of modules"),
    (Kind::Lookup, "Archived search", "the same, answered from the boot archive"),
    (Kind::Code, "Code", "reading and decoding code"),
    (Kind::Stored, "Archived code", "code from the boot archive"),
    (Kind::Data, "Archived data", "parsed files, patterns and gems from the boot archive"),
    (Kind::Body, "Body", "what modules do while they are loaded"),
    (Kind::Collector, "Garbage collection", "the collector's runs"),
    (Kind::Launcher, "Launcher", "checking the image"),
    (Kind::Mapping, "Mapping", "mapping the memory of the image"),
    (Kind::Faults, "Page faults", "bringing in memory that is touched"),
    (Kind::Context, "Context", "renewing arguments, environment, standard streams"),
    (Kind::Hook, "Hook", "hooks of the program"),
    (Kind::Main, "Main part", "what the program does once it is loaded"),
    (Kind::Exit, "Exit", "the end of the process"),
    (Kind::Process, "The rest", "time of the process that no part explains"),
    (Kind::Other, "Other", "anything else"),
];

/// The report as an HTML page.
pub fn page(report: &Report) -> String {
    // The data last: markers in it are text of the report.
    PAGE.replacen("/* STYLE */", STYLE, 1).replacen("/* SCRIPT */", SCRIPT, 1).replacen("DATA", &data(report), 1)
}

/// The report as JSON that can stand in a page. It is compact: a boot has ten thousand parts, and their files long names.
fn data(report: &Report) -> String {
    let starts: Vec<Vec<Span>> = report.starts.iter().map(spans).collect();
    let strings: BTreeSet<&str> = starts.iter().flatten().flat_map(texts).collect();
    let places: HashMap<&str, usize> = strings.iter().enumerate().map(|(place, &text)| (text, place)).collect();
    let data = json!({
        "snapboot": report.snapboot,
        "machine": report.machine,
        "when": report.when,
        "no_archive": report.no_archive,
        "advice": report.advice,
        "kinds": KINDS.map(|(kind, label, about)| json!([kind, label, about])),
        "strings": front_coded(&strings),
        "starts": report.starts.iter().zip(&starts).map(|(start, spans)| columns(start, spans, &places)).collect::<Vec<_>>(),
    });
    data.to_string().replace('<', "\\u003c")
}

fn texts<'a>(span: &Span<'a>) -> [&'a str; 2] {
    [&span.node.name, span.node.detail.as_deref().unwrap_or("")]
}

/// Front-codes sorted texts: for each, the length of the prefix shared with the previous one, in JavaScript's characters, and the rest.
fn front_coded(strings: &BTreeSet<&str>) -> Vec<Value> {
    let mut before = "";
    let mut coded = Vec::with_capacity(strings.len() * 2);
    for &text in strings {
        let same: usize = text.chars().zip(before.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum();
        coded.push(json!(text[..same].encode_utf16().count()));
        coded.push(json!(text[same..]));
        before = text;
    }
    coded
}

/// A start, its parts as columns of whole numbers. Times are in microseconds, begins relative to the end of the previous sibling or the
/// begin of the parent. `time` is the time to show plus one, if it differs from the width.
fn columns(start: &Start, spans: &[Span], places: &HashMap<&str, usize>) -> Value {
    let micro = |nanoseconds: u64| nanoseconds.saturating_add(500) / 1000;
    let mut begins = Vec::with_capacity(spans.len());
    let mut free_from = Vec::new(); // by depth
    for span in spans {
        free_from.truncate(span.depth + 1);
        free_from.resize(span.depth + 1, 0);
        begins.push(micro(span.begin) - free_from[span.depth]);
        free_from[span.depth] = micro(span.end);
        free_from.push(micro(span.begin)); // of its first child
    }
    let width = |span: &Span| micro(span.end) - micro(span.begin);
    let time = |span: &Span| micro(nanoseconds(span.node.seconds));
    let column = |figure: &dyn Fn(&Span) -> u64| spans.iter().map(figure).collect::<Vec<_>>();
    let kind =
        |span: &Span| KINDS.iter().position(|&(kind, ..)| kind == span.node.kind).unwrap_or(KINDS.len() - 1) as u64;
    json!({
        "title": start.title,
        "command": start.command,
        "runs": start.runs,
        "overhead": start.overhead,
        "depth": column(&|span| span.depth as u64),
        "name": column(&|span| places[texts(span)[0]] as u64),
        "detail": column(&|span| places[texts(span)[1]] as u64),
        "kind": column(&kind),
        "begin": begins,
        "width": column(&width),
        "time": column(&|span| if time(span) == width(span) { 0 } else { time(span) + 1 }),
        "spread": column(&|span| micro(nanoseconds(span.node.spread))),
        "calls": column(&|span| span.node.system_calls),
        "lookups": column(&|span| span.node.failed_lookups),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_listed_once_and_has_a_colour() {
        for (kind, ..) in KINDS {
            assert_eq!(KINDS.iter().filter(|(other, ..)| *other == kind).count(), 1, "{kind:?}");
            let id = json!(kind);
            let rule = format!(".k-{} {{ --hue:", id.as_str().expect("a name"));
            let shared = format!(".k-{},", id.as_str().expect("a name"));
            assert!(STYLE.contains(&rule) || STYLE.contains(&shared), "page.css has no colour for {id}");
        }
        // Unlisted kinds count as the last one.
        assert_eq!(KINDS.last().map(|(kind, ..)| *kind), Some(Kind::Other));
    }

    #[test]
    fn markers_in_a_report_stay_what_they_are() {
        let text = "DATA /* STYLE */ /* SCRIPT */".to_owned();
        let report = Report {
            starts: vec![],
            no_archive: None,
            advice: vec![],
            snapboot: text.clone(),
            machine: text.clone(),
            when: text,
        };
        let page = page(&report);
        assert_eq!(page.matches("DATA /* STYLE */ /* SCRIPT */").count(), 3);
        assert_eq!(page.matches(":root {").count(), STYLE.matches(":root {").count());
    }

    #[test]
    fn texts_share_their_begins() {
        let coded = front_coded(&BTreeSet::from(["", "a/é🦀b", "a/é🦀c", "b"]));
        assert_eq!(json!(coded), json!([0, "", 0, "a/é🦀b", 5, "c", 0, "b"]));
    }
}
