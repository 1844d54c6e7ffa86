//! A report as JSON that existing viewers open: speedscope's file format and the Trace Event Format in one file.
//!
//! speedscope has the better overview of one start and needs its own format, since it otherwise makes counts a part of names. Chrome's
//! viewers and Perfetto read trace events, and show the counts beside them. Each format allows further properties in its object:
//! speedscope's schema does not forbid them, and the Trace Event Format takes them for metadata. Its events come first, because Perfetto
//! stops reading at an unknown property.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::spans::{spans, Span};
use crate::{Advice, Kind, Report, Start};

/// The identifier of speedscope's files.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// The report as one line of JSON, for speedscope, Perfetto and Chrome.
pub fn json(report: &Report) -> String {
    let mut frames = Frames::default();
    let mut events = Vec::new();
    let mut profiles = Vec::new();
    for (place, start) in report.starts.iter().enumerate() {
        let spans = spans(start);
        let process = place + 1;
        events.extend(named("process_name", process, &start.title));
        events.extend(named("thread_name", process, &start.command));
        events.extend(spans.iter().map(|span| Event::new(span, process)));
        profiles.push(profile(start, &spans, &mut frames));
    }
    let file = File {
        events,
        unit: "ms",
        other: Other {
            snapboot: &report.snapboot,
            machine: &report.machine,
            when: &report.when,
            no_archive: report.no_archive.as_deref(),
            advice: &report.advice,
            starts: report.starts.iter().map(|start| About { runs: start.runs, overhead: start.overhead }).collect(),
        },
        schema: SCHEMA,
        name: report.starts.first().map_or("", |start| &start.command),
        exporter: format!("snapboot {}", report.snapboot),
        shared: Shared { frames: frames.list },
        profiles,
    };
    serde_json::to_string(&file).expect("strings and numbers can be written as JSON")
}

/// Both formats: the properties of the Trace Event Format, then those of speedscope.
#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "traceEvents")]
    events: Vec<Event<'a>>,
    #[serde(rename = "displayTimeUnit")]
    unit: &'a str,
    #[serde(rename = "otherData")]
    other: Other<'a>,
    #[serde(rename = "$schema")]
    schema: &'a str,
    name: &'a str,
    exporter: String,
    shared: Shared<'a>,
    profiles: Vec<Profile<'a>>,
}

#[derive(Serialize)]
struct Other<'a> {
    snapboot: &'a str,
    machine: &'a str,
    when: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    no_archive: Option<&'a str>,
    advice: &'a [Advice],
    starts: Vec<About>,
}

/// The data of each start that no viewer shows.
#[derive(Serialize, Deserialize)]
pub(crate) struct About {
    pub(crate) runs: u32,
    pub(crate) overhead: f64,
}

/// An event: of phase X, which has a begin and a duration, in microseconds; or M, which names a process.
#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    #[serde(rename = "cat", skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    #[serde(rename = "ph")]
    phase: &'a str,
    #[serde(rename = "pid")]
    process: usize,
    #[serde(rename = "tid")]
    thread: usize,
    #[serde(rename = "ts")]
    begin: f64,
    #[serde(rename = "dur", skip_serializing_if = "Option::is_none")]
    duration: Option<f64>,
    args: Arguments<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Arguments<'a> {
    Name {
        name: &'a str,
    },
    Part {
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<&'a str>,
        #[serde(rename = "time in ms")]
        milliseconds: f64,
        #[serde(rename = "spread in ms")]
        spread: f64,
        #[serde(rename = "system calls")]
        system_calls: u64,
        #[serde(rename = "failed look-ups")]
        failed_lookups: u64,
    },
}

impl<'a> Event<'a> {
    fn new(span: &Span<'a>, process: usize) -> Event<'a> {
        let node = span.node;
        Event {
            name: &node.name,
            kind: Some(node.kind),
            phase: "X",
            process,
            thread: 1,
            begin: microseconds(span.begin),
            duration: Some(microseconds(span.end - span.begin)),
            args: Arguments::Part {
                detail: node.detail.as_deref(),
                milliseconds: milliseconds(node.seconds),
                spread: milliseconds(node.spread),
                system_calls: node.system_calls,
                failed_lookups: node.failed_lookups,
            },
        }
    }
}

/// The event that names a process or its only thread in viewers.
fn named<'a>(what: &'a str, process: usize, name: &'a str) -> Option<Event<'a>> {
    let args = Arguments::Name { name };
    Some(Event { name: what, kind: None, phase: "M", process, thread: 1, begin: 0.0, duration: None, args })
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

/// The frames of all profiles, each once.
#[derive(Default)]
struct Frames<'a> {
    list: Vec<Frame<'a>>,
    places: HashMap<Frame<'a>, usize>,
}

impl<'a> Frames<'a> {
    fn place(&mut self, frame: Frame<'a>) -> usize {
        *self.places.entry(frame).or_insert_with(|| {
            self.list.push(frame);
            self.list.len() - 1
        })
    }
}

/// One start in speedscope's form: frames that are opened and closed.
#[derive(Serialize)]
struct Profile<'a> {
    r#type: &'a str,
    name: &'a str,
    unit: &'a str,
    #[serde(rename = "startValue")]
    begin: u64,
    #[serde(rename = "endValue")]
    end: u64,
    events: Vec<Step>,
}

#[derive(Serialize)]
struct Step {
    r#type: char,
    frame: usize,
    at: u64,
}

fn profile<'a>(start: &'a Start, spans: &[Span<'a>], frames: &mut Frames<'a>) -> Profile<'a> {
    let mut events = Vec::with_capacity(spans.len() * 2);
    let mut open: Vec<(usize, u64)> = Vec::new();
    for span in spans {
        close(&mut open, span.depth, &mut events);
        let frame = frames.place(Frame { name: &span.node.name, file: span.node.detail.as_deref() });
        events.push(Step { r#type: 'O', frame, at: span.begin });
        open.push((frame, span.end));
    }
    close(&mut open, 0, &mut events);
    let end = spans.first().map_or(0, |root| root.end);
    Profile { r#type: "evented", name: &start.title, unit: "nanoseconds", begin: 0, end, events }
}

/// Close frames until only `depth` of them are open.
fn close(open: &mut Vec<(usize, u64)>, depth: usize, events: &mut Vec<Step>) {
    while open.len() > depth {
        let (frame, at) = open.pop().expect("there is one");
        events.push(Step { r#type: 'C', frame, at });
    }
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

/// Seconds as milliseconds, to the microsecond: further digits would be noise.
fn milliseconds(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e3
}
