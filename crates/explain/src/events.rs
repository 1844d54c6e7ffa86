//! The events of a traced start: spans that begin and end, and their numbers.
//!
//! `python/snapboot/explain/run/sitecustomize.py` and `ruby/lib/snapboot/explain/run.rb` write them, and describe the format.

use rustix::time::{clock_gettime, ClockId};

use crate::tree::Kind;

/// An event of a start.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A part begins.
    Begin { time: f64, kind: Kind, name: String },
    /// The part that began last ends.
    End { time: f64, detail: Option<String>, failed: bool },
    /// The part that began last spent that much time in garbage collection since the previous event.
    Collected { seconds: f64 },
    /// The process executes this program.
    Executed(String),
    /// How long a thaw took for each directory of inputs, in the order of the image's tables. `beside`: in a second process meanwhile.
    Checked { tables: u64, beside: bool, seconds: Vec<f64> },
    /// How long a thaw took for each file that it mapped, in the order of the tables; then for the image itself, and for all other memory.
    Mapped { tables: u64, seconds: Vec<f64> },
    /// `snapboot run` has switched the boot archive on, and the program's own start begins.
    HasRun { time: f64 },
}

/// The entry that `snapboot run` writes, see [`Event::HasRun`].
pub fn has_run() -> Vec<u8> {
    let time = clock_gettime(ClockId::Monotonic);
    format!("run={}\0", time.tv_sec * 1_000_000_000 + time.tv_nsec).into_bytes()
}

/// Parses the events of a start. None if they are cut off or malformed. Times in seconds of the monotonic clock.
pub fn parse(text: &[u8]) -> Option<Vec<Event>> {
    let entries = text.strip_suffix(b"\0")?.split(|&byte| byte == 0);
    let events: Vec<Event> = entries.map(event).collect::<Option<_>>()?;
    let depth = events.iter().try_fold(0usize, |depth, event| match event {
        Event::Begin { .. } => Some(depth + 1),
        Event::End { .. } => depth.checked_sub(1),
        _ => Some(depth),
    });
    (depth == Some(0)).then_some(events)
}

fn event(entry: &[u8]) -> Option<Event> {
    let entry = String::from_utf8_lossy(entry);
    let (key, value) = entry.split_once('=')?;
    match key {
        "begin" => {
            let mut words = value.splitn(3, ' ');
            let (time, kind, name) = (words.next()?, words.next()?, words.next()?);
            Some(Event::Begin { time: seconds(time)?, kind: kind_of(kind)?, name: name.to_owned() })
        }
        "end" => {
            let (time, detail) = value.split_once(' ')?;
            let failed = detail == "failed";
            let detail = (!failed && !detail.is_empty()).then(|| detail.to_owned());
            Some(Event::End { time: seconds(time)?, detail, failed })
        }
        "executed" => Some(Event::Executed(value.to_owned())),
        "checked" => {
            let mut words = value.splitn(3, ' ');
            let (tables, beside) = (words.next()?.parse().ok()?, words.next()? == "1");
            Some(Event::Checked { tables, beside, seconds: all_seconds(words.next().unwrap_or_default())? })
        }
        "mapped" => {
            let (tables, times) = value.split_once(' ')?;
            Some(Event::Mapped { tables: tables.parse().ok()?, seconds: all_seconds(times)? })
        }
        "run" => Some(Event::HasRun { time: seconds(value)? }),
        "collected" => Some(Event::Collected { seconds: seconds(value)? }),
        _ => None,
    }
}

fn seconds(nanoseconds: &str) -> Option<f64> {
    Some(nanoseconds.parse::<i64>().ok()? as f64 / 1e9)
}

/// Parses a list of times.
fn all_seconds(times: &str) -> Option<Vec<f64>> {
    times.split_ascii_whitespace().map(seconds).collect()
}

/// The kind of that name, as JSON has it.
fn kind_of(name: &str) -> Option<Kind> {
    serde_json::from_value(serde_json::Value::String(name.to_owned())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_what_is_cut_off_is_nothing() {
        let text = b"begin=1000000000 body a b\0collected=5\0end=2500000000 /a b.py\0";
        let events = parse(text).unwrap();
        assert_eq!(events[0], Event::Begin { time: 1.0, kind: Kind::Body, name: "a b".to_owned() });
        assert_eq!(events[2], Event::End { time: 2.5, detail: Some("/a b.py".to_owned()), failed: false });
        for cut in [1, 20, text.len() - 1] {
            assert_eq!(parse(&text[..cut]), None, "{cut}");
        }
        assert_eq!(parse(b"begin=1 body a\0"), None);
        assert_eq!(parse(b"end=1 \0"), None);
        let seconds = vec![1e-9, 2.5];
        assert_eq!(
            parse(b"checked=4096 1 1 2500000000\0mapped=4096 1 2500000000\0").unwrap(),
            [
                Event::Checked { tables: 4096, beside: true, seconds: seconds.clone() },
                Event::Mapped { tables: 4096, seconds }
            ]
        );
    }
}
