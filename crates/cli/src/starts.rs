//! The starts of an image, in words.

use std::fmt;

use image_file::starts::{Fallback, Starts};

use crate::human;

/// `thawed 41 times, fell back 3 times (2 since it last thawed); last 2026-11-22T20:14:05Z: stale: this file has changed: /a.py`.
pub fn line(starts: &Starts) -> String {
    let since = match starts.since_thaw {
        0 => String::new(),
        since if since == starts.fallbacks && starts.thaws == 0 => String::new(),
        since => format!(" ({since} since it last thawed)"),
    };
    let last = starts.last_fallback.as_ref().map(|last| format!("; last {}", said(last))).unwrap_or_default();
    let (thaws, fallbacks) = (human::count_of(starts.thaws, "time"), human::count_of(starts.fallbacks, "time"));
    format!("thawed {thaws}, fell back {fallbacks}{since}{last}")
}

/// Why an image that is replaced was of no use any more. In words, the message of `snapboot freeze`.
pub struct Retired<'a> {
    /// How many starts have fallen back since the last one that has thawed.
    since: u64,
    last: &'a Fallback,
}

/// None for an image whose last start has thawed.
pub fn retired_by(starts: &Starts) -> Option<Retired<'_>> {
    let last = starts.last_fallback.as_ref().filter(|_| starts.since_thaw > 0)?;
    Some(Retired { since: starts.since_thaw, last })
}

impl fmt::Display for Retired<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let starts = match self.since {
            1 => "whose last start".to_owned(),
            since => format!("whose last {since} starts"),
        };
        write!(f, "replaces an image {starts} fell back, {}", said(self.last))
    }
}

fn said(last: &Fallback) -> String {
    format!("{}: {}", last.time, human::harmless(&last.reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starts(thaws: u64, since_thaw: u64, fallbacks: u64) -> Starts {
        let last = Fallback {
            time: "2001-09-09T01:46:40Z".into(),
            reason: "stale: this file has changed: /a\x1b[2J.py".into(),
        };
        Starts { thaws, fallbacks, since_thaw, last_fallback: Some(last) }
    }

    #[test]
    fn starts_are_told_in_one_line() {
        let expected = "thawed 41 times, fell back 3 times (2 since it last thawed); last 2001-09-09T01:46:40Z: \
                        stale: this file has changed: /a?[2J.py";
        assert_eq!(line(&starts(41, 2, 3)), expected);
        assert!(line(&starts(0, 1, 1)).starts_with("thawed 0 times, fell back 1 time; last "));
    }

    #[test]
    fn an_image_that_thawed_last_was_not_retired() {
        let line = retired_by(&starts(41, 2, 3)).unwrap().to_string();
        assert!(line.starts_with("replaces an image whose last 2 starts fell back, 2001-"), "{line}");
        assert!(retired_by(&starts(1, 0, 3)).is_none());
    }
}
