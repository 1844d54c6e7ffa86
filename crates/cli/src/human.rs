//! Sizes and times as people read them.

use std::time::Duration;

use failure::is_harmful;
pub use failure::{harmless, harmless_lines};

/// A size with a unit, three digits at most: `113 MB`, `4.2 kB`, `812 B` (decimal units, as `ls -h --si` has them).
pub fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB"] {
        if value < 999.5 {
            let decimals = usize::from(unit != "B" && value < 9.95);
            return format!("{value:.decimals$} {unit}");
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

/// A duration in seconds with one decimal: `2.3 s`.
pub fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// A duration in whole milliseconds, one at least: `7 ms`.
pub fn whole_milliseconds(duration: Duration) -> String {
    format!("{:.0} ms", (duration.as_secs_f64() * 1000.0).max(1.0))
}

/// Milliseconds with three significant digits: `2.71 ms`, `27.1 ms`, `271 ms`.
pub fn milliseconds(milliseconds: f64) -> String {
    let decimals = if milliseconds < 9.995 {
        2
    } else if milliseconds < 99.95 {
        1
    } else {
        0
    };
    format!("{milliseconds:.decimals$} ms")
}

/// Like [`harmless_lines`], for a page with colours of its own: only those that pages use (bold, faint, a few colours) pass.
pub fn harmless_page(page: &str, has_colour: bool) -> String {
    let mut pieces = page.split('\x1b');
    let mut text = harmless_lines(pieces.next().unwrap_or_default());
    for piece in pieces {
        let code = piece.strip_prefix('[').and_then(|rest| rest.split_once('m')).map(|(code, _)| code);
        let is_colour = code.is_some_and(|code| ["0", "1", "2", "1;31", "31", "32", "33", "36"].contains(&code));
        text.push(if is_colour && has_colour { '\x1b' } else { '?' });
        text += &harmless_lines(piece);
    }
    text
}

/// Escaped as in JSON: the reader gets all characters back.
pub fn escaped_in_json(json: &str) -> String {
    let is_plain = |letter: char| !is_harmful(letter) || letter == '\n';
    json.chars().fold(String::with_capacity(json.len()), |mut text, letter| {
        match is_plain(letter) {
            true => text.push(letter),
            false => text += &format!("\\u{:04x}", letter as u32),
        }
        text
    })
}

/// The first characters of a text, with a mark that there are more.
pub fn shortened(text: &str, characters: usize) -> String {
    let start: String = text.chars().take(characters).collect();
    match start.len() < text.len() {
        true => start + "…",
        false => start,
    }
}

/// Like [`count`], for numbers from a file.
pub fn count_of(number: u64, singular: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), singular)
}

/// `1 file`, `2 files`, `2 entries`.
pub fn count(number: usize, singular: &str) -> String {
    match singular.strip_suffix('y') {
        _ if number == 1 => format!("{number} {singular}"),
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {singular}s"),
    }
}

/// The maximum length of a shown word of a command.
const LONGEST_WORD: usize = 60;

/// A command on one line, quoted as a shell would need it; long words, such as programs given with -c, are cut.
pub fn command<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(word).collect::<Vec<_>>().join(" ")
}

fn word(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
    if !word.is_empty() && word.len() <= LONGEST_WORD && word.bytes().all(plain) {
        return word.to_owned();
    }
    let mut shown: String = word.chars().take(LONGEST_WORD).collect();
    if shown.len() < word.len() {
        shown.push('…');
    }
    format!("'{}'", shown.replace('\'', "'\\''").replace('\n', "⏎"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits_at_most() {
        let cases = [(0, "0 B"), (812, "812 B"), (1000, "1.0 kB"), (9_949, "9.9 kB"), (9_950, "10 kB")];
        for (bytes, text) in cases {
            assert_eq!(size(bytes), text);
        }
        assert_eq!(size(999_600), "1.0 MB");
        assert_eq!(size(113_200_000), "113 MB");
        assert_eq!(size(1_100_000_000), "1.1 GB");
    }

    #[test]
    fn milliseconds_have_three_digits() {
        assert_eq!(milliseconds(2.714), "2.71 ms");
        assert_eq!(milliseconds(27.14), "27.1 ms");
        assert_eq!(milliseconds(271.4), "271 ms");
    }

    #[test]
    fn terminals_obey_nothing_that_is_printed() {
        let text = "a\x1b[2J\n\tb\u{9b}c\u{202e}d\re\x07";
        let page = "\x1b[1mbold\x1b[0m\x1b]0;title\x07\x1b[2J\x1b[31m";
        assert_eq!(harmless_page(page, true), "\x1b[1mbold\x1b[0m?]0;title??[2J\x1b[31m");
        assert_eq!(harmless_page(page, false), "?[1mbold?[0m?]0;title??[2J?[31m");
        let json = serde_json::to_string(text).unwrap();
        let escaped = escaped_in_json(&json);
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
        assert!(escaped.is_ascii());
    }

    #[test]
    fn counts_have_their_plural() {
        let counts = [count(0, "file"), count(1, "file"), count(1, "entry"), count(2, "entry")];
        assert_eq!(counts, ["0 files", "1 file", "1 entry", "2 entries"]);
    }

    #[test]
    fn commands_are_shown_so_that_a_shell_reads_them_again() {
        assert_eq!(command(["./app.img", "-c", "it's", ""].into_iter()), "./app.img -c 'it'\\''s' ''");
        let long = command(["a\n".repeat(50).as_str()].into_iter());
        assert!(long.starts_with("'a⏎a⏎") && long.ends_with("…'") && !long.contains('\n'), "{long}");
    }
}
