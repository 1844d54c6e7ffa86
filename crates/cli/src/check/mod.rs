//! `snapboot check`: what this machine supports, each line with its reason.

mod host;
mod interpreters;
mod watching;

use failure::Result;
use inputs::on_stale;
use installation::Installation;
use serde::Serialize;

use crate::arguments::Check;
use crate::inspect::why::unknown_on_stale;
use crate::render::{print, print_json};
use crate::FAILED;

/// The verdict of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As it should be.
    Yes,
    /// Usable, with a remark.
    Note,
    /// Prevents making or using images.
    No,
}

/// One fact about the machine.
#[derive(Clone, Debug, Serialize)]
struct Line {
    name: &'static str,
    state: State,
    reason: String,
}

impl Line {
    fn new(name: &'static str, state: State, reason: impl Into<String>) -> Self {
        Line { name, state, reason: reason.into() }
    }

    /// Yes with one reason, or No with the other.
    fn yes_if(name: &'static str, holds: bool, yes: impl Into<String>, no: impl Into<String>) -> Self {
        if holds {
            Line::new(name, State::Yes, yes)
        } else {
            Line::new(name, State::No, no)
        }
    }
}

/// Runs the subcommand; returns the exit status.
pub fn main(arguments: &Check) -> Result<u8> {
    let mut lines = host::lines();
    lines.extend(watching::lines());
    lines.push(installation());
    lines.extend(remote_store());
    lines.extend(unknown_on_stale().map(|unknown| Line::new(on_stale::NAME, State::Note, unknown.to_string())));
    lines.extend(interpreters::lines());
    let usable = lines.iter().all(|line| line.state != State::No);
    if arguments.json {
        print_json(&serde_json::json!({ "usable": usable, "checks": lines }))?;
    } else {
        let verdict = match usable {
            true => "Images can be made and used here.",
            false => "Images cannot be made or used here: see the lines with ✗.",
        };
        let lines: String = lines.iter().map(|line| page_line(line) + "\n").collect();
        print(&format!("{lines}\n{verdict}\n"))?;
    }
    Ok(if usable { 0 } else { FAILED })
}

fn page_line(line: &Line) -> String {
    let mark = match line.state {
        State::Yes => '✓',
        State::Note => '•',
        State::No => '✗',
    };
    format!("{mark} {:<14} {}", line.name, line.reason)
}

/// Checks whether all parts of Snapboot are installed.
fn installation() -> Line {
    let found = Installation::find().and_then(|parts| {
        parts.freezer()?;
        parts.python_front_end()?;
        parts.ruby_front_end()?;
        parts.launcher()
    });
    match found {
        Ok(launcher) => {
            let directory = launcher.parent().unwrap_or(&launcher).display().to_string();
            Line::new("installation", State::Yes, format!("launcher, freezer and front ends found ({directory})"))
        }
        Err(failure) => Line::new("installation", State::No, failure.message),
    }
}

/// Says whose images of the remote store are used, or why none is. That keeps nobody from making images.
fn remote_store() -> Option<Line> {
    Some(match store::remote::check()? {
        Ok(whose) => Line::new("remote store", State::Yes, whose),
        Err(failure) => Line::new("remote store", State::Note, failure.message),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_mark_a_name_and_a_reason() {
        let line = Line::yes_if("kernel", false, "good", "too old");
        assert_eq!((line.state, page_line(&line).as_str()), (State::No, "✗ kernel         too old"));
    }
}
