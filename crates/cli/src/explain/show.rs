//! The page for people: the sorts of work, side by side; the parts that cost most; advice.

use std::fmt::Write;
use std::io::IsTerminal;

use explain::{Advice, Kind, Report, Start};

use super::rows::{self, Row};
use crate::human;

/// How it looks.
pub struct Look {
    /// Columns of the terminal.
    width: usize,
    pub has_colour: bool,
    /// Whether every part is shown.
    shows_all: bool,
}

/// Narrowest and widest page.
const WIDTHS: std::ops::RangeInclusive<usize> = 60..=140;
/// Columns where there is no terminal.
const WIDTH: usize = 100;
/// A part with a smaller share of its start is folded.
const LEAST: f64 = 0.01;
/// How many lines of a tree are shown.
const MAX_ROWS: usize = 40;
/// The minimum number of columns for a name in a tree.
const NAME: usize = 20;
/// The number of parts that are shown for a comparison.
const MAX_DIFFERENCES: usize = 15;
/// Columns of a bar if there is room, and of the narrowest one.
const BAR: usize = 10;
const LEAST_BAR: usize = 4;
/// Columns that a spread takes below a bar.
const SPREAD: usize = 9;
/// Columns for the name of a sort of work, and for a time.
const SORT: usize = 28;
const TIME: usize = 11;

impl Look {
    /// Settings from the terminal of standard output, and NO_COLOR.
    pub fn of_terminal(shows_all: bool) -> Look {
        let stdout = std::io::stdout();
        let wide = rustix::termios::tcgetwinsize(&stdout).ok().map(|size| usize::from(size.ws_col));
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Look {
            width: wide.filter(|&columns| columns > 0).unwrap_or(WIDTH).clamp(*WIDTHS.start(), *WIDTHS.end()),
            has_colour: stdout.is_terminal() && !plain && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
            shows_all,
        }
    }

    fn colour(&self, code: &str, text: &str) -> String {
        match self.has_colour {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }

    fn bold(&self, text: &str) -> String {
        self.colour("1", text)
    }

    fn faint(&self, text: &str) -> String {
        self.colour("2", text)
    }
}

/// The whole page.
pub fn page(report: &Report, look: &Look) -> String {
    let mut page = sorts(report, look);
    for line in report.no_archive.iter().flat_map(|why| wrapped(why, look.width - 2)) {
        let _ = writeln!(page, " {}", look.faint(&line));
    }
    if let [one, other] = report.starts.as_slice() {
        if one.title.starts_with("A, ") {
            page += &differing(one, other, look);
        }
    }
    for start in &report.starts {
        page += "\n";
        page += &tree(start, look);
    }
    for (number, advice) in report.advice.iter().enumerate() {
        page += "\n";
        page += &advised(number + 1, advice, look);
    }
    page
}

/// The time of each sort of work, the starts side by side.
fn sorts(report: &Report, look: &Look) -> String {
    let sums: Vec<_> = report.starts.iter().map(|start| rows::by_kind(&start.root)).collect();
    let mut kinds: Vec<Kind> = sums.iter().flatten().map(|(kind, ..)| *kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let mut page = String::new();
    // Writing to a string cannot fail.
    let widest = report.starts.iter().map(|start| start.title.chars().count()).fold(TIME, usize::max);
    let room = (look.width - SORT - 1) / report.starts.len().max(1);
    let bar_width = match room.saturating_sub(widest + 2).min(BAR) {
        width if width < LEAST_BAR => 0,
        width => width,
    };
    // Without bars, there may still be no room for a title.
    let widest = if bar_width == 0 { widest.min(room.saturating_sub(2)) } else { widest };
    let named = |start: &Start| match start.title.chars().count() > widest {
        true => start.title.replace("with ", ""),
        false => start.title.clone(),
    };
    let head: String =
        report.starts.iter().map(|start| format!("{:>widest$} {:<bar_width$} ", named(start), "")).collect();
    let _ = writeln!(page, "{}", look.bold(format!(" {:<SORT$}{head}", "").trim_end()));
    for kind in kinds {
        let mut line = format!(" {:<SORT$}", sort(kind));
        for (start, sums) in report.starts.iter().zip(&sums) {
            let seconds = sums.iter().find(|(of, ..)| *of == kind).map(|(_, seconds, ..)| *seconds);
            let time = seconds.map_or("–".to_owned(), time);
            let bar = bar(seconds.unwrap_or(0.0) / start.root.seconds, bar_width);
            let _ = write!(line, "{time:>widest$} {} ", look.colour("36", &bar));
        }
        let _ = writeln!(page, "{}", line.trim_end());
    }
    let mut line = format!(" {:<SORT$}", "the whole process");
    for start in &report.starts {
        let spread = if bar_width < SPREAD { String::new() } else { format!("± {}", time(start.root.spread)) };
        let _ = write!(line, "{:>widest$} {spread:<bar_width$} ", time(start.root.seconds));
    }
    let _ = writeln!(page, "{}", look.bold(line.trim_end()));
    page
}

/// The parts in which two starts differ most.
fn differing(one: &Start, other: &Start, look: &Look) -> String {
    let mut page = format!("\n {}\n", look.bold("What differs most"));
    let _ = writeln!(page, " {}", look.faint(&format!("{:>11} {:>11} {:>11}  part", "A", "B", "B - A")));
    for (name, a, b) in rows::differences(&one.root, &other.root).into_iter().take(MAX_DIFFERENCES) {
        let sign = if b < a { "−" } else { "+" };
        let difference = format!("{sign}{}", time((b - a).abs()));
        let name = tail(&human::harmless(&name), look.width.saturating_sub(40));
        let _ = writeln!(page, " {:>11} {:>11} {difference:>11}  {name}", time(a), time(b));
    }
    page
}

/// The parts of a start that cost most.
fn tree(start: &Start, look: &Look) -> String {
    let least = if look.shows_all { 0.0 } else { start.root.seconds * LEAST };
    let mut shown = rows::lines(&start.root, least);
    let mut least = least;
    // A deep tree has more lines than anyone reads.
    while !look.shows_all && shown.len() > MAX_ROWS {
        least *= 1.25;
        shown = rows::lines(&start.root, least);
    }
    let measuring = match start.overhead {
        overhead if overhead < 0.005 => "measuring took next to nothing of it".to_owned(),
        overhead => format!("measuring took {:.0} % more processor time", overhead * 100.0),
    };
    let runs = human::count(start.runs as usize, "run");
    let mut page = String::new();
    let title = format!("{} of {}", capitalised(&titled(&start.title)), human::harmless(&start.command));
    let _ = writeln!(page, " {}", look.bold(&human::shortened(&title, look.width - 2)));
    let _ = writeln!(page, " {}", look.faint(&format!("{runs}; {measuring}")));
    for line in start.root.detail.iter().flat_map(|detail| wrapped(detail, look.width - 2)) {
        let _ = writeln!(page, " {line}");
    }
    let _ =
        writeln!(page, " {}", look.faint(&format!("{:>9} {:>9} {:>7} {:>7}  part", "time", "own", "calls", "failed")));
    for (index, row) in shown.iter().enumerate() {
        let _ = writeln!(page, " {}", line(row, &shown[index + 1..], start.root.seconds, look));
    }
    page
}

/// A start by its title: `ordinary start`, `A, start with archive`.
fn titled(title: &str) -> String {
    match title.strip_suffix(explain::WITH_ARCHIVE) {
        Some(letter) => format!("{letter}start {}", explain::WITH_ARCHIVE),
        None => format!("{title} start"),
    }
}

fn line(row: &Row, below: &[Row], whole: f64, look: &Look) -> String {
    let count = |number: u64| if number == 0 { String::new() } else { number.to_string() };
    let numbers = format!(
        "{:>9} {:>9} {:>7} {:>7}  ",
        time(row.seconds),
        time(row.own),
        count(row.system_calls),
        count(row.failed_lookups)
    );
    // The next line of the same part, if any.
    let next = below.iter().find(|next| next.depth <= row.depth);
    let is_last = next.is_none_or(|next| next.depth < row.depth);
    let branch = match row.depth {
        0 => String::new(),
        depth => {
            // Levels for which there is no room are aligned with their parent.
            let deepest = look.width.saturating_sub(numbers.chars().count() + NAME) / 2;
            format!("{}{} ", "│ ".repeat((depth - 1).min(deepest)), if is_last { "└" } else { "├" })
        }
    };
    let room = look.width.saturating_sub(numbers.chars().count() + branch.chars().count() + 2);
    let name = match &row.amount {
        // Of a path the end matters, of an amount the beginning.
        Some(amount) => {
            let amount = human::shortened(&human::harmless(amount), room.saturating_sub(NAME));
            let room = room.saturating_sub(amount.chars().count() + 2);
            format!("{}: {amount}", tail(&human::harmless(&row.name), room))
        }
        None => tail(&human::harmless(&row.name), room),
    };
    let share = row.own / whole;
    let name = match row.kind {
        _ if share >= 0.1 => look.colour("1;31", &name),
        _ if share >= 0.03 => look.colour("33", &name),
        Kind::Search | Kind::Code | Kind::Collector | Kind::Other => look.faint(&name),
        _ => name,
    };
    format!("{numbers}{}{name}", look.faint(&branch))
}

/// One piece of advice.
fn advised(number: usize, advice: &Advice, look: &Look) -> String {
    let saves = advice.saves.map_or(String::new(), |saves| format!(" (saves {})", time(saves)));
    let mut page = format!(" {}{}\n", look.bold(&format!("{number}. {}", advice.headline)), look.colour("32", &saves));
    let place = advice.place.as_ref().filter(|place| !advice.text.contains(*place)).map(|place| format!("at {place}"));
    for text in [Some(advice.text.clone()), place].into_iter().flatten().filter(|text| !text.is_empty()) {
        for line in wrapped(&text, look.width - 5) {
            let _ = writeln!(page, "    {line}");
        }
    }
    for typed in advice.remedy.iter().chain(&advice.start) {
        let _ = writeln!(page, "    {}", look.colour("36", &format!("$ {typed}")));
    }
    page
}

/// The name of a sort of work.
fn sort(kind: Kind) -> &'static str {
    match kind {
        Kind::Process | Kind::Other => "measuring, not broken down",
        Kind::Interpreter => "the interpreter's own start",
        Kind::Archive => "the archive's own start",
        Kind::Search => "path search",
        Kind::Lookup => "look-ups from the archive",
        Kind::Code => "reading and decoding code",
        Kind::Stored => "code from the archive",
        Kind::Data => "data from the archive",
        Kind::Body => "bodies of modules",
        Kind::Collector => "garbage collection",
        Kind::Exit => "exit",
        Kind::Launcher => "launcher",
        Kind::Mapping => "mapping memory",
        Kind::Faults => "page faults",
        Kind::Context => "renewing the context",
        Kind::Hook => "hooks",
        Kind::Main => "main part",
    }
}

fn time(seconds: f64) -> String {
    human::milliseconds(seconds * 1000.0)
}

/// A share as a bar of that width.
fn bar(share: f64, width: usize) -> String {
    const PARTS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * (width * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(PARTS[eighths % 8]);
    }
    format!("{bar}{}", " ".repeat(width - bar.chars().count()))
}

/// The end of a text, which distinguishes paths.
fn tail(text: &str, room: usize) -> String {
    let count = text.chars().count();
    match count <= room || room < 2 {
        true => text.to_owned(),
        false => "…".chars().chain(text.chars().skip(count + 1 - room)).collect(),
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is one");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::node;
    use super::*;

    #[test]
    fn a_page_keeps_to_its_width_and_has_colours_only_where_they_are_wanted() {
        let deep = (0..20).fold(node("leaf", Kind::Body, 1.0, vec![]), |below, number| {
            node(&format!("a.module.with.quite.a.long.name{number}"), Kind::Body, 1.0, vec![below])
        });
        let start = |title: &str| Start {
            title: title.to_owned(),
            command: "python a.py".to_owned(),
            runs: 5,
            overhead: 0.02,
            root: node("process", Kind::Process, 1.0, vec![node("__main__", Kind::Main, 1.0, vec![deep.clone()])]),
        };
        let advice = Advice {
            headline: "Freeze it".to_owned(),
            text: "word ".repeat(60),
            place: None,
            remedy: None,
            start: None,
            saves: Some(0.5),
        };
        let text = || String::new();
        let report = Report {
            starts: vec![start("ordinary"), start(explain::WITH_ARCHIVE), start("thawed")],
            no_archive: None,
            advice: vec![advice],
            snapboot: text(),
            machine: text(),
            when: text(),
        };
        for width in [60, 80, 100, 140] {
            let plain = page(&report, &Look { width, has_colour: false, shows_all: false });
            assert!(!plain.contains('\x1b'));
            let long: Vec<_> = plain.lines().filter(|line| line.chars().count() > width).collect();
            assert!(long.is_empty(), "{}", long.join("\n"));
            assert!(plain.contains("Start with archive of python a.py"), "{plain}");
        }
        assert_eq!(titled("A, with archive"), "A, start with archive");
        assert!(page(&report, &Look { width: 80, has_colour: true, shows_all: false }).contains('\x1b'));
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(0.5, 10), "█████     ");
        assert_eq!(bar(0.01, 10), "▏         ");
        assert_eq!(bar(1.0, 6).chars().count(), 6);
    }
}
