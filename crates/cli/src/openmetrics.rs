//! Metrics as text in the format OpenMetrics, as collectors of Prometheus read it.

use std::fmt::Write;

/// All samples of one name.
pub struct Family {
    /// The name, without `_total`.
    pub name: &'static str,
    /// What it counts.
    pub help: &'static str,
    /// What kind it is of.
    pub kind: Kind,
    /// Its unit, which ends the name; empty if it has none.
    pub unit: &'static str,
    /// Each sample: labels by name, and the value.
    pub samples: Vec<(Vec<(&'static str, String)>, f64)>,
}

/// How a value changes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It only grows.
    Counter,
    /// It grows and shrinks.
    Gauge,
}

/// The text of all families.
pub fn text(families: &[Family]) -> String {
    let mut text = String::new();
    for Family { name, help, kind, unit, samples } in families {
        let (word, suffix) = match kind {
            Kind::Counter => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "# TYPE {name} {word}");
        if !unit.is_empty() {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(text, "# HELP {name} {help}");
        for (labels, value) in samples {
            let labels: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(text, "{name}{suffix}{labels} {value}");
        }
    }
    text + "# EOF\n"
}

/// The value of a label as it stands between quotes.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_its_type_and_the_text_its_end() {
        let labels = vec![("command", "a\\b\"c\nd".to_owned()), ("result", "hit".to_owned())];
        let counter = Family {
            name: "snapboot_bytes",
            help: "Bytes.",
            kind: Kind::Counter,
            unit: "bytes",
            samples: vec![(labels, 3.0), (Vec::new(), 1_099_511_627_776.0)],
        };
        let gauge =
            Family { name: "snapboot_x", help: "X.", kind: Kind::Gauge, unit: "", samples: vec![(Vec::new(), 0.5)] };
        assert_eq!(
            text(&[counter, gauge]),
            "# TYPE snapboot_bytes counter\n# UNIT snapboot_bytes bytes\n# HELP snapboot_bytes Bytes.\n\
             snapboot_bytes_total{command=\"a\\\\b\\\"c\\nd\",result=\"hit\"} 3\nsnapboot_bytes_total 1099511627776\n\
             # TYPE snapboot_x gauge\n# HELP snapboot_x X.\nsnapboot_x 0.5\n# EOF\n"
        );
    }
}
