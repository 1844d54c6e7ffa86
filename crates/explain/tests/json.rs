//! The JSON of a report conforms to what the viewers document: speedscope in its schema (file-format-schema.json), the Trace Event Format
//! in its description.

mod synthetic;

use std::sync::OnceLock;

use serde_json::Value;
use snapboot_explain::json;

fn rails() -> &'static Value {
    static FILE: OnceLock<Value> = OnceLock::new();
    FILE.get_or_init(|| serde_json::from_str(&json(&synthetic::rails(""))).expect("JSON"))
}

/// The members of an object or list.
fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

#[test]
fn speedscope_knows_it_by_its_schema() {
    let file = rails();
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    assert!(file["exporter"].is_string() && file["name"].is_string());
    for frame in list(&file["shared"]["frames"]) {
        text(&frame["name"]);
        assert!(frame.get("file").is_none_or(Value::is_string), "{frame}");
    }
}

#[test]
fn profiles_are_evented_and_balanced() {
    let file = rails();
    let frames = list(&file["shared"]["frames"]).len();
    let profiles = list(&file["profiles"]);
    let titles: Vec<&str> = profiles.iter().map(|profile| text(&profile["name"])).collect();
    assert_eq!(titles, ["ordinary", "with archive", "thawed"]);
    for profile in profiles {
        assert_eq!(profile["type"], "evented");
        assert_eq!(profile["unit"], "nanoseconds");
        let (mut now, end) = (number(&profile["startValue"]), number(&profile["endValue"]));
        let mut open = Vec::new();
        for event in list(&profile["events"]) {
            let frame = event["frame"].as_u64().expect("a place in the list of frames") as usize;
            assert!(frame < frames, "{event}");
            assert!(number(&event["at"]) >= now, "{event} comes after {now}");
            now = number(&event["at"]);
            match text(&event["type"]) {
                "O" => open.push(frame),
                "C" => assert_eq!(open.pop(), Some(frame), "{event}"),
                other => panic!("{other}"),
            }
        }
        assert!(open.is_empty());
        assert_eq!(now, end);
        assert!(end > 0.0);
    }
}

#[test]
fn trace_events_are_complete_and_nest() {
    let file = rails();
    assert_eq!(file["displayTimeUnit"], "ms");
    let events = list(&file["traceEvents"]);
    let mut open: Vec<(u64, f64)> = Vec::new(); // process, end
    for event in events {
        let process = event["pid"].as_u64().expect("a number");
        assert!(event["tid"].is_u64() && event["args"].is_object(), "{event}");
        let begin = number(&event["ts"]);
        match text(&event["ph"]) {
            "M" => {
                assert!(["process_name", "thread_name"].contains(&text(&event["name"])), "{event}");
                text(&event["args"]["name"]);
            }
            "X" => {
                text(&event["name"]);
                text(&event["cat"]);
                assert!(event["args"]["system calls"].is_u64() && event["args"]["failed look-ups"].is_u64(), "{event}");
                let end = begin + number(&event["dur"]);
                // Viewers need nested parts; they round to nanoseconds.
                while open.last().is_some_and(|&(other, until)| other != process || until <= begin + 1e-4) {
                    open.pop();
                }
                assert!(
                    open.last().is_none_or(|&(_, until)| end <= until + 1e-4),
                    "{event} ends after what it is a part of"
                );
                open.push((process, end));
            }
            other => panic!("{other}"),
        }
    }
    let complete = events.iter().filter(|event| event["ph"] == "X").count();
    let opened: usize = list(&file["profiles"]).iter().map(|profile| list(&profile["events"]).len() / 2).sum();
    assert_eq!(complete, opened, "both formats have the same parts");
}

/// Perfetto stops reading at an unknown property.
#[test]
fn trace_events_come_first() {
    assert!(json(&synthetic::rails("")).starts_with("{\"traceEvents\":["));
}
