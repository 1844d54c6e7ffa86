//! Times as a page for people, or as JSON: selects the figures and columns. statistics.rs computes them.

use std::fmt::Write;

use serde_json::{json, Value};

use super::statistics::{Ratio, Summary};
use super::{histogram, Subject};
use crate::human::{harmless, milliseconds};
use crate::render::numbers;

/// Names of the two commands.
const LETTERS: [&str; 2] = ["A", "B"];

/// The output of `--json`: every time, and the statistics (ms).
pub fn json(subjects: &[Subject]) -> Value {
    let commands: Vec<_> = subjects
        .iter()
        .map(|subject| {
            let summary = Summary::from_values(&subject.wall);
            json!({
                "command": subject.command.words(), "n": subject.wall.len(), "median_ms": summary.median, "min_ms": summary.min,
                "mad_ms": summary.mad, "p95_ms": summary.p95, "max_ms": summary.max, "cpu_median_ms": Summary::from_values(&subject.cpu).median,
                "wall_ms": subject.wall, "cpu_ms": subject.cpu, "failures": subject.failures,
                "image": subject.command.counter.as_ref().and_then(|counter| counter.counted()),
                "shim_of": subject.command.shim.as_ref().map(|shim| shim.program.to_string_lossy().into_owned()),
            })
        })
        .collect();
    let ratio = ratio(subjects).map(|ratio| json!({ "value": ratio.value, "low": ratio.low, "high": ratio.high }));
    json!({ "commands": commands, "ratio": ratio })
}

/// The page for people.
pub fn page(subjects: &[Subject]) -> String {
    let rows = LETTERS.iter().zip(subjects).map(|(letter, subject)| {
        let summary = Summary::from_values(&subject.wall);
        vec![
            (*letter).to_owned(),
            milliseconds(summary.median),
            milliseconds(summary.min),
            format!("± {}", milliseconds(summary.mad)),
            milliseconds(summary.p95),
            milliseconds(Summary::from_values(&subject.cpu).median),
            subject.command.shown(),
        ]
    });
    let mut page = numbers(&["", "median", "min", "spread", "p95", "cpu", "command"], 5, rows) + "\n";
    // Writing to a string cannot fail.
    for (letter, subject) in LETTERS.iter().zip(subjects) {
        let summary = Summary::from_values(&subject.wall);
        let bars = histogram::line(&subject.wall, summary.min, summary.p95.max(summary.min));
        let _ = writeln!(page, " {letter} {} ▕{bars}▏ {}", milliseconds(summary.min), milliseconds(summary.p95));
    }
    let runs = subjects[0].wall.len();
    if let Some(ratio) = ratio(subjects) {
        let _ = writeln!(
            page,
            "\n A / B = {:.3}  (95 %: {:.3} to {:.3}, n = {runs} pairs{})",
            ratio.value,
            ratio.low,
            ratio.high,
            times(ratio.value)
        );
    } else {
        let _ = writeln!(page, "\n n = {runs}");
    }
    for (letter, subject) in LETTERS.iter().zip(subjects) {
        for (status, count) in &subject.failures {
            let _ = writeln!(page, " {letter} ended with {status} in {count} of {runs} runs");
        }
    }
    for (letter, subject) in LETTERS.iter().zip(subjects) {
        if let Some((count, why)) = subject.not_thawed() {
            let why = harmless(&why);
            let _ = writeln!(page, " {letter} is an image, but {count} of {runs} runs did not thaw: {why}");
        }
    }
    for (letter, shim) in LETTERS.iter().zip(subjects.iter().map(|subject| &subject.command.shim)) {
        if let Some(shim) = shim {
            let _ = writeln!(
                page,
                " {letter} starts through the shim {}, which takes its share; freeze starts what it leads to: {}",
                shim.script.display(),
                shim.program.display()
            );
        }
    }
    page
}

/// The ratio in words: `; A is 74 times as fast`.
fn times(ratio: f64) -> String {
    match ratio {
        ratio if ratio <= 0.0 => String::new(),
        ratio if ratio < 0.95 => format!("; A is {:.*} times as fast", usize::from(ratio > 0.1), 1.0 / ratio),
        ratio if ratio > 1.05 => format!("; B is {:.*} times as fast", usize::from(ratio < 10.0), ratio),
        _ => "; about the same".to_owned(),
    }
}

fn ratio(subjects: &[Subject]) -> Option<Ratio> {
    match subjects {
        [first, second] => Some(Ratio::of_medians(&first.wall, &second.wall)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_in_words() {
        assert_eq!(times(0.0135), "; A is 74 times as fast");
        assert_eq!(times(0.5), "; A is 2.0 times as fast");
        assert_eq!(times(1.0), "; about the same");
        assert_eq!(times(3.0), "; B is 3.0 times as fast");
    }
}
