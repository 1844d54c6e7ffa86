//! The report on a new image: its summary, its inputs, hints that would improve it, and what had retired the previous one.

use std::path::Path;

use freeze::Written;
use runtime::Language;
use store::PulledFile;

use crate::human;
use crate::starts;

/// How many names a line holds, and how many lines follow.
const MAX_SHOWN: usize = 5;

/// The whole report, in lines. `here`: the user's current directory.
pub fn text(written: &Written, here: Option<&Path>) -> String {
    let retired_by = written.replaced.as_ref().and_then(starts::retired_by).map(|retired| retired.to_string());
    let lines = [first_line(written, here)]
        .into_iter()
        .chain(learnt(written))
        .chain(depends(&written.depends))
        .chain(hint(written))
        .chain(retired_by);
    lines.map(|line| line + "\n").collect()
}

/// `rails.img  113 MB  0.4 s  from the remote store`.
pub fn of_pulled(pulled: &PulledFile, here: Option<&Path>) -> String {
    let (size, took) = (human::size(pulled.size), human::seconds(pulled.took));
    format!("{}  {size}  {took}  from the remote store", shown(&pulled.path, here).display())
}

/// The path as the user would name it.
fn shown<'a>(path: &'a Path, here: Option<&Path>) -> &'a Path {
    here.and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path)
}

/// `rails.img  113 MB  2.3 s  preloaded config/environment (1868 files)  thaws in 15 ms`.
fn first_line(written: &Written, here: Option<&Path>) -> String {
    let shown = shown(&written.path, here);
    let names: Vec<&str> = written.preloaded.iter().map(|name| name.strip_prefix("./").unwrap_or(name)).collect();
    let preloaded = if names.is_empty() { "loaded".to_owned() } else { format!("preloaded {}", names.join(", ")) };
    let kinds = [
        (written.at_terminals, "for terminals"),
        (written.in_other_locale, "for another encoding"),
        (written.on_higher_level, "for CPUs of a higher level"),
    ];
    let kinds: Vec<String> =
        kinds.iter().filter(|(count, _)| *count > 0).map(|(count, which)| format!("{count} {which}")).collect();
    let variants = match (written.variants, &kinds[..]) {
        (1, _) => String::new(),
        (count, []) => format!("{count} variants, "),
        (count, kinds) => format!("{count} variants ({}), ", kinds.join(", ")),
    };
    format!(
        "{}  {}  {}  {variants}{preloaded} ({})  thaws in {}",
        shown.display(),
        human::size(written.size),
        human::seconds(written.took),
        human::count(written.loaded, "file"),
        human::whole_milliseconds(written.thaws_in)
    )
}

/// The modules that training has added, and those that it could not add. A module left out only because of its imports is not named.
fn learnt(written: &Written) -> Vec<String> {
    let word = match written.language {
        Language::Python => "module",
        Language::Ruby => "feature",
    };
    let left = &written.left_out;
    let patterns = human::count(written.patterns, "regular expression");
    let added = match (written.learnt, written.patterns) {
        (0, 0) if left.is_empty() => return Vec::new(),
        (modules, 0) => human::count(modules, word),
        (0, _) => patterns,
        (modules, _) => format!("{} and {patterns}", human::count(modules, word)),
    };
    if left.is_empty() {
        return vec![format!("learnt {added} from training runs")];
    }
    let roots: Vec<_> = left.iter().filter(|left| left.why.loads().is_none()).collect();
    let mut lines = vec![format!("learnt {added} from training runs; {} more must be left to each start:", left.len())];
    lines.extend(roots.iter().take(MAX_SHOWN).map(|root| format!("  {} {}", root.name, root.why)));
    if let Some(last) = lines.last_mut().filter(|_| roots.len() > MAX_SHOWN) {
        last.push_str(&more(roots.len()));
    }
    lines
}

/// A hint for an image that holds little of the program: a freeze that gains little says so.
fn hint(written: &Written) -> Option<String> {
    match written.left.as_deref().filter(|_| written.left_out.is_empty())? {
        "" => Some(
            "holds Ruby and RubyGems only: what the script requires it still loads at each start; name that with --preload"
                .to_owned(),
        ),
        module => Some(format!(
            "leaves the import of {module} and what follows to each start, since it fails, prints, or reads what may be another one at \
             each start; --preload {module} takes it into the image, if that can be"
        )),
    }
}

/// The inputs: names share one line, a phrase has a line of its own.
fn depends(depends: &[String]) -> Vec<String> {
    let is_phrase = |text: &&String| text.split(" (").next().is_some_and(|what| what.contains(' '));
    let (phrases, names): (Vec<&String>, Vec<&String>) = depends.iter().partition(is_phrase);
    let mut lines = Vec::new();
    if !names.is_empty() {
        let shown: Vec<&str> = names.iter().take(MAX_SHOWN).map(|name| name.as_str()).collect();
        lines.push(format!("depends on {}{}", shown.join(", "), more(names.len())));
    }
    lines.extend(phrases.iter().take(MAX_SHOWN).map(|phrase| format!("depends on {phrase}")));
    if let (Some(last), true) = (lines.last_mut(), phrases.len() > MAX_SHOWN) {
        last.push_str(&more(phrases.len()));
    }
    lines
}

fn more(count: usize) -> String {
    match count.saturating_sub(MAX_SHOWN) {
        0 => String::new(),
        rest => format!(", and {rest} more (snapboot inspect lists them)"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn written() -> Written {
        Written {
            default_path: "rails.img".into(),
            path: "/x/rails.img".into(),
            size: 113_000_000,
            took: Duration::from_millis(2300),
            thaws_in: Duration::from_micros(14_700),
            variants: 1,
            at_terminals: 0,
            in_other_locale: 0,
            on_higher_level: 0,
            only_native: None,
            loaded: 2,
            preloaded: vec!["./config/environment".into()],
            left: None,
            language: Language::Ruby,
            prints_version: false,
            learnt: 0,
            learnt_in: Default::default(),
            patterns: 0,
            left_out: Vec::new(),
            depends: Vec::new(),
            lacks: false,
            warnings: Vec::new(),
            replaced: None,
        }
    }

    #[test]
    fn the_summary_is_one_line() {
        let line = text(&written(), None);
        assert_eq!(line, "/x/rails.img  113 MB  2.3 s  preloaded config/environment (2 files)  thaws in 15 ms\n");
    }

    #[test]
    fn names_share_a_line_and_nothing_floods() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert!(depends(&[]).is_empty());
        let some = texts(&["NO_COLOR (read by a.py:3)", "the current directory (/x), read by a.py:1", "SHELL"]);
        assert_eq!(
            depends(&some),
            ["depends on NO_COLOR (read by a.py:3), SHELL", "depends on the current directory (/x), read by a.py:1"]
        );
        let names = depends(&texts(&["A", "B", "C", "D", "E", "F", "G"]));
        assert_eq!(names, ["depends on A, B, C, D, E, and 2 more (snapboot inspect lists them)"]);
        let phrases = depends(&texts(&["the a", "the b", "the c", "the d", "the e", "the f"]));
        assert_eq!(phrases.len(), 5);
        assert_eq!(phrases[4], "depends on the e, and 1 more (snapboot inspect lists them)");
    }
}
