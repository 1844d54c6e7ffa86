//! Reads a saved report, which [`crate::trace`] has written, to show it again or to compare it with another one.

use serde::Deserialize;

use crate::json::About;
use crate::{Advice, Kind, Node, Report, Start};

/// The beginning of such a file.
const BEGIN: &str = "{\"traceEvents\":";

/// The report with the JSON `text`; `None` if [`crate::trace`] has not written it.
pub fn saved_report(text: &str) -> Option<Report> {
    if !text.starts_with(BEGIN) {
        return None;
    }
    let file: File = serde_json::from_str(text).ok()?;
    let mut starts = Vec::new();
    for (place, (profile, about)) in file.profiles.iter().zip(file.other.starts).enumerate() {
        let events: Vec<&Event> = file.events.iter().filter(|event| event.process == place + 1).collect();
        starts.push(Start {
            title: profile.name.clone(),
            command: events.iter().find(|event| event.name == "thread_name")?.args.name.clone()?,
            runs: about.runs,
            overhead: about.overhead,
            root: tree(profile, events.into_iter().filter(|event| event.phase == "X"))?,
        });
    }
    let Other { snapboot, machine, when, no_archive, advice, .. } = file.other;
    (!starts.is_empty()).then_some(Report { starts, no_archive, advice, snapboot, machine, when })
}

/// The profile opens and closes the parts, and the events have their figures, in the same order.
fn tree<'a>(profile: &Profile, mut parts: impl Iterator<Item = &'a Event>) -> Option<Node> {
    let mut open: Vec<Node> = Vec::new();
    for step in &profile.events {
        if step.r#type == 'O' {
            open.push(part(parts.next()?)?);
            continue;
        }
        let node = open.pop()?;
        match open.last_mut() {
            Some(parent) => parent.children.push(node),
            None => return Some(node),
        }
    }
    None
}

fn part(event: &Event) -> Option<Node> {
    Some(Node {
        name: event.name.clone(),
        kind: event.kind?,
        detail: event.args.detail.clone(),
        start: event.begin / 1e6,
        seconds: event.args.milliseconds? / 1e3,
        spread: event.args.spread? / 1e3,
        system_calls: event.args.system_calls?,
        failed_lookups: event.args.failed_lookups?,
        children: Vec::new(),
    })
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "traceEvents")]
    events: Vec<Event>,
    #[serde(rename = "otherData")]
    other: Other,
    profiles: Vec<Profile>,
}

#[derive(Deserialize)]
struct Other {
    snapboot: String,
    machine: String,
    when: String,
    no_archive: Option<String>,
    advice: Vec<Advice>,
    starts: Vec<About>,
}

#[derive(Deserialize)]
struct Event {
    name: String,
    #[serde(rename = "cat")]
    kind: Option<Kind>,
    #[serde(rename = "ph")]
    phase: String,
    #[serde(rename = "pid")]
    process: usize,
    #[serde(rename = "ts")]
    begin: f64,
    args: Arguments,
}

#[derive(Deserialize)]
struct Arguments {
    name: Option<String>,
    detail: Option<String>,
    #[serde(rename = "time in ms")]
    milliseconds: Option<f64>,
    #[serde(rename = "spread in ms")]
    spread: Option<f64>,
    #[serde(rename = "system calls")]
    system_calls: Option<u64>,
    #[serde(rename = "failed look-ups")]
    failed_lookups: Option<u64>,
}

#[derive(Deserialize)]
struct Profile {
    name: String,
    events: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    r#type: char,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn node(name: &str, seconds: f64, children: Vec<Node>) -> Node {
        Node {
            name: name.to_owned(),
            kind: Kind::Body,
            detail: (seconds > 1.0).then(|| format!("/{name}.py")),
            start: 0.5,
            seconds,
            spread: 0.25,
            system_calls: 7,
            failed_lookups: 2,
            children,
        }
    }

    fn report() -> Report {
        // Parts that take no time lie where others end, and are in none of them.
        let root = node("process", 4.0, vec![node("a", 2.0, vec![node("b", 1.5, vec![])]), node("c", 0.0, vec![])]);
        let text = |text: &str| text.to_owned();
        let start =
            |title: &str, root: Node| Start { title: text(title), command: text("x"), runs: 3, overhead: 0.05, root };
        let advice =
            Advice { headline: text("h"), text: text("t"), place: None, remedy: None, start: None, saves: Some(1.0) };
        Report {
            starts: vec![start("ordinary", root.clone()), start("thawed", root)],
            no_archive: Some(text("n")),
            advice: vec![advice],
            snapboot: text("1"),
            machine: text("m"),
            when: text("w"),
        }
    }

    #[test]
    fn a_saved_report_is_the_one_that_was_written() {
        let written = report();
        let mut read = saved_report(&json(&written)).expect("a report");
        for start in &mut read.starts {
            // The place where a part is drawn, which may differ.
            fn place(node: &mut Node) {
                node.start = 0.5;
                node.children.iter_mut().for_each(place);
            }
            place(&mut start.root);
        }
        assert_eq!(read, written);
    }

    #[test]
    fn anything_else_is_none() {
        for text in ["", "{}", "{\"traceEvents\":[]}", "{\"traceEvents\":[],\"otherData\":{},\"profiles\":[]}"] {
            assert_eq!(saved_report(text), None, "{text}");
        }
    }
}
