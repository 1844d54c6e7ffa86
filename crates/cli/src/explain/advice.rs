//! Advice about a start's time: what freezing saves, what prevents it, and what it leaves to each start.

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;

use explain::{Advice, Kind, Node, Start};
use freeze::Written;
use image_file::info::{LeftOut, WhyLeftOut};
use regex::Regex;
use runtime::{resolve, search_path};

use super::same::Comparison;
use super::trial::{self, Obstacle, Trial};
use super::Tried;
use crate::human;

/// Modules that a start still loads are mentioned from this share of it on.
const WORTH: f64 = 0.05;
/// A start must take less than this share of another one's time to be worth a command.
pub const WORTHWHILE: f64 = 0.8;
/// A start with the boot archive must take less than this share of an ordinary one's time: it only takes a word before the command.
const WORTH_RUNNING: f64 = 0.9;
/// The maximum number of pieces of one sort.
const MAX: usize = 5;

/// Advice after the command was frozen and has thawed. `same`: what it omits of an ordinary start's output.
pub fn frozen(ordinary: &Start, tried: &Tried, same: Comparison) -> Vec<Advice> {
    let Tried { trial, written, thawed } = tried;
    let (before, after) = (ordinary.root.seconds, thawed.root.seconds);
    let mut advice = Vec::new();
    let took = format!(
        "A trial freeze took {} and made an image of {}. From it a start takes {} instead of {}.",
        human::seconds(written.took),
        human::size(written.size),
        time(after),
        time(before)
    );
    let learnt = match written.learnt {
        0 => String::new(),
        count => format!(" It holds {} that a run with these arguments has loaded later.", human::count(count, "file")),
    };
    let silent = match same {
        Comparison::Same => String::new(),
        omits => format!(" {omits}"),
    };
    let text = took + &learnt + &silent;
    advice.push(if after < before * WORTHWHILE {
        Advice {
            text,
            remedy: Some(trial.typed()),
            start: trial.typed_start(written),
            saves: Some(before - after),
            ..worded(&format!("Freeze it: {:.1} times as fast", before / after), None)
        }
    } else {
        Advice { text, ..worded("Freezing gains little here", None) }
    });
    let minded = written.warnings.iter().map(|warning| Advice {
        remedy: withheld(warning, trial),
        ..worded("What to know about the image", Some(warning))
    });
    // Problems with a remedy come first: they may be why an image holds little.
    let (mended, noted): (Vec<Advice>, Vec<Advice>) = minded.partition(|advice| advice.remedy.is_some());
    advice.extend(mended);
    advice.extend(left_out(thawed, written));
    advice.extend(noted);
    advice.extend(written.only_native.iter().map(|why| Advice {
        text: format!("The image thaws only on CPUs with all features of this one, not on all of level v3: {why}."),
        ..worded("What to know about the image", None)
    }));
    advice
}

/// Advice about modules that stay in each start, though loading them before the image is written was tried.
pub fn not_loaded(names: &[String], why: &str) -> Advice {
    let headline = format!("{} cannot be loaded before the image is written", names.join(", "));
    Advice { place: place_in(why), ..worded(&headline, Some(why)) }
}

/// Advice to use the boot archive, if a start with it is the fastest, or the only alternative. `thawed`: None without an image;
/// `was_tried`: whether one was tried.
pub fn archived(
    words: &[OsString],
    ordinary: &Start,
    archived: &Start,
    thawed: Option<&Start>,
    was_tried: bool,
) -> Option<Advice> {
    let (before, after) = (ordinary.root.seconds, archived.root.seconds);
    let is_gain = after < before * WORTH_RUNNING && before - after > ordinary.root.spread + archived.root.spread;
    if !is_gain || thawed.is_some_and(|thawed| thawed.root.seconds < after.min(before * WORTHWHILE)) {
        return None;
    }
    let why = match (thawed, was_tried) {
        (Some(thawed), _) => format!("From an image a start takes {}. ", time(thawed.root.seconds)),
        (None, true) => "It could not be frozen for a trial. ".to_owned(),
        (None, false) => String::new(),
    };
    let text = format!(
        "{why}With the boot archive it takes {} instead of {}: look-ups of files, their code and parsed data come from there, for as long as \
         these files are unchanged. The first starts fill it.",
        time(after),
        time(before)
    );
    Some(Advice {
        text,
        remedy: Some(format!("snapboot run --no-freeze -- {}", trial::line(words))),
        saves: Some(before - after),
        ..worded(&format!("Start it with the boot archive: {:.1} times as fast", before / after), None)
    })
}

/// Advice for a command that cannot be frozen.
pub fn refused(reasons: &[Obstacle], trial: &Trial) -> Vec<Advice> {
    let one = |obstacle: &Obstacle| {
        let text = obstacle.to_string();
        Advice {
            place: obstacle.place().map(str::to_owned).or_else(|| place_in(&text)),
            remedy: withheld(&text, trial),
            ..worded("This stands in the way of freezing it", Some(&text))
        }
    };
    reasons.iter().map(one).collect()
}

/// Advice about an ordinary start, frozen or not.
pub fn ordinary(words: &[OsString], start: &Start) -> Vec<Advice> {
    let last =
        start.root.children.iter().find_map(|child| Some((child.name.strip_prefix(explain::EXECUTED)?, child.seconds)));
    let executed = last.map(|(program, seconds)| Advice {
        text: format!(
            "The process goes on as {program}, which takes {} of its time and is not looked into. If that is Python or Ruby, explain it by itself.",
            time(seconds)
        ),
        ..worded(&format!("It executes {program}"), None)
    });
    let shim = resolve(words, &search_path()).ok().and_then(|resolved| resolved.shim);
    executed
        .into_iter()
        .chain(shim.map(|shim| Advice {
            text: format!(
                "{} is a version manager's script that looks for the interpreter in each start: its time is in the interpreter's own. \
                 It leads to {}.",
                shim.script.display(),
                shim.program.display()
            ),
            ..worded("Name the interpreter itself", None)
        }))
        .collect()
}

/// Modules of training runs that an image must not hold, if they take time; a module left out only because of its imports is not named.
fn left_out(thawed: &Start, written: &Written) -> Vec<Advice> {
    let roots = written.left_out.iter().filter(|left| left.why.loads().is_none());
    let mut advice: Vec<Advice> = roots
        .filter_map(|LeftOut { name, why }| {
            let seconds = seconds_of(&thawed.root, name);
            (seconds >= thawed.root.seconds * WORTH / 5.0).then(|| {
                let text = format!("It {why}.");
                Advice {
                    place: place_in(&text),
                    saves: Some(seconds),
                    ..worded(&format!("{name} is left to each start"), Some(&text))
                }
            })
        })
        .collect();
    most_first(&mut advice);
    advice
}

/// Modules that a thawed start still loads and an image could hold, the slowest first: those that the main part loads by itself. Modules of
/// training runs were left out for a reason, unless they only print something.
pub fn still_loaded(tried: &Tried) -> Vec<String> {
    let Tried { thawed, written, .. } = tried;
    let left = standing_in_the_way(&written.left_out);
    let Some(main) = thawed.root.children.iter().find(|child| child.kind == Kind::Main) else { return Vec::new() };
    let mut loaded = Vec::new();
    add_loaded(main, thawed.root.seconds * WORTH, &left, &mut loaded);
    // Another trial takes seconds, so it is made only where it can gain something.
    if loaded.iter().map(|node| node.seconds).sum::<f64>() < thawed.root.seconds * (1.0 - WORTHWHILE) {
        return Vec::new();
    }
    loaded.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    loaded.truncate(MAX);
    let mut names: Vec<String> = loaded.iter().map(|node| node.name.clone()).collect();
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Adds what a part loads that takes `least` (s) and is not in `left`. A loaded script is no feature, but it may load some.
fn add_loaded<'a>(above: &'a Node, least: f64, left: &BTreeSet<&str>, loaded: &mut Vec<&'a Node>) {
    for child in above.children.iter().filter(|child| child.kind == Kind::Body && child.seconds >= least) {
        // Code may name a feature without its ending; its file has one.
        let file = child.detail.as_deref().unwrap_or(&child.name);
        let is_script = child.name.starts_with('/') && !file.ends_with(".rb") && !file.ends_with(".so");
        let is_left =
            [Some(&child.name), child.detail.as_ref()].into_iter().flatten().any(|name| left.contains(name.as_str()));
        match is_script && !child.children.is_empty() {
            true => add_loaded(child, least, left, loaded),
            false if is_left => {}
            false => loaded.push(child),
        }
    }
}

/// Names of modules that must be left to each start, and of modules that load them. Those that only print are compared instead (see
/// [`super::same`]).
fn standing_in_the_way(left_out: &[LeftOut]) -> BTreeSet<&str> {
    let whys: HashMap<&str, &WhyLeftOut> = left_out.iter().map(|left| (left.name.as_str(), &left.why)).collect();
    let only_prints = |name: &str| {
        let mut name = name;
        for _ in 0..=whys.len() {
            match whys.get(name) {
                Some(WhyLeftOut::Prints) => return true,
                Some(WhyLeftOut::Imports(next) | WhyLeftOut::Requires(next)) => name = next,
                Some(WhyLeftOut::Other(_)) | None => return false,
            }
        }
        false
    };
    whys.keys().copied().filter(|name| !only_prints(name)).collect()
}

fn most_first(advice: &mut Vec<Advice>) {
    advice.sort_by(|one, other| other.saves.unwrap_or(0.0).total_cmp(&one.saves.unwrap_or(0.0)));
    advice.truncate(MAX);
}

/// How long loading a module or feature took, anywhere in the tree.
fn seconds_of(node: &Node, name: &str) -> f64 {
    let is_it = node.kind == Kind::Body && (node.name == name || node.detail.as_deref() == Some(name));
    match is_it {
        true => node.seconds,
        false => node.children.iter().map(|child| seconds_of(child, name)).sum(),
    }
}

/// The command line that avoids a secret, if such a sentence names one: each start reads it, and the image never has it.
fn withheld(sentence: &str, trial: &Trial) -> Option<String> {
    let option = Regex::new(r"--withhold [A-Z_][A-Z0-9_]*").ok()?.find(sentence)?.as_str();
    // A placeholder, and not the name of a variable.
    (option != "--withhold NAME").then(|| trial.typed().replacen("freeze", &format!("freeze {option}"), 1))
}

/// The first `FILE:LINE` in a sentence.
fn place_in(text: &str) -> Option<String> {
    let place = Regex::new(r"[^\s()]+\.[A-Za-z]+:[0-9]+").ok()?;
    place.find(text).map(|found| found.as_str().to_owned())
}

fn worded(headline: &str, text: Option<&str>) -> Advice {
    Advice {
        headline: headline.to_owned(),
        text: text.unwrap_or_default().to_owned(),
        place: None,
        remedy: None,
        start: None,
        saves: None,
    }
}

fn time(seconds: f64) -> String {
    human::milliseconds(seconds * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::node;
    use super::*;

    fn start(seconds: f64) -> Start {
        let root = Node { spread: seconds / 100.0, ..node("process", Kind::Process, seconds, vec![]) };
        Start { title: String::new(), command: String::new(), runs: 5, overhead: 0.0, root }
    }

    #[test]
    fn the_archive_is_advised_where_nothing_else_is_faster() {
        let words = ["python".into(), "my app.py".into()];
        let advised = |after: f64, thawed: Option<f64>, was_tried| {
            archived(&words, &start(1.0), &start(after), thawed.map(start).as_ref(), was_tried)
        };
        let advice = advised(0.5, None, true).unwrap();
        assert_eq!(advice.remedy.as_deref(), Some("snapboot run --no-freeze -- python 'my app.py'"));
        assert_eq!((advice.saves, advice.headline.contains("2.0 times")), (Some(0.5), true));
        assert!(advice.text.contains("could not be frozen") && advice.text.contains("500 ms instead of 1000 ms"));
        assert!(!advised(0.5, None, false).unwrap().text.contains("frozen"));
        assert!(advised(0.5, Some(0.7), true).unwrap().text.contains("From an image a start takes 700 ms"));
        // Another start is faster, or this one is not.
        assert_eq!(advised(0.5, Some(0.1), true), None);
        assert_eq!(advised(0.95, None, true), None);
        let mut unsteady = start(0.8);
        unsteady.root.spread = 0.3;
        assert_eq!(archived(&words, &start(1.0), &unsteady, None, true), None);
        // Freezing is not advised if it gains so little.
        assert!(advised(0.88, Some(0.85), true).is_some());
    }

    #[test]
    fn places_are_found_in_sentences() {
        assert_eq!(place_in("reads LANG (at /a/b.py:12)."), Some("/a/b.py:12".to_owned()));
        assert_eq!(place_in("is a TCP socket (127.0.0.1:6379)."), None);
    }

    #[test]
    fn a_secret_in_the_way_is_withheld() {
        let trial = Trial::new(&["/bin/sh".into()]).unwrap();
        let typed = withheld("it is withheld; make it an input, with --env TOKEN; or --withhold TOKEN", &trial);
        assert_eq!(typed.as_deref(), Some("snapboot freeze --withhold TOKEN -- /bin/sh"));
        assert_eq!(withheld("have the rest taken for unset with --withhold NAME, or --withhold '*'", &trial), None);
    }

    #[test]
    fn what_a_script_loads_may_be_preloaded_and_not_the_script() {
        let feature = |name: &str, seconds| node(name, Kind::Body, seconds, vec![]);
        let script = node(
            "/gems/x/exe/x",
            Kind::Body,
            5.0,
            vec![feature("x", 3.0), feature("left", 2.0), feature("small", 0.1)],
        );
        let mut relative = feature("/app/y", 1.0);
        relative.detail = Some("/app/y.rb".to_owned());
        relative.children.push(node("/app/y", Kind::Search, 0.5, vec![]));
        let main = node("__main__", Kind::Main, 6.0, vec![script, relative]);
        let mut loaded = Vec::new();
        add_loaded(&main, 0.5, &BTreeSet::from(["left"]), &mut loaded);
        assert_eq!(loaded.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["x", "/app/y"]);
    }

    #[test]
    fn what_loads_only_what_prints_may_be_tried() {
        let why = |name: &str, why: &str| LeftOut::from((name.to_owned(), why.to_owned()));
        let left = [
            why("a", "imports b"),
            why("b", "prints"),
            why("c", "requires d"),
            why("d", "reads LANG"),
            why("e", "imports f"),
        ];
        assert_eq!(Vec::from_iter(standing_in_the_way(&left)), ["c", "d", "e"]);
    }

    #[test]
    fn a_feature_is_found_by_name_or_file() {
        let mut feature = node("net/http", Kind::Body, 2.0, vec![]);
        feature.detail = Some("/lib/net/http.rb".to_owned());
        let root = node("process", Kind::Process, 3.0, vec![feature]);
        assert_eq!(
            [seconds_of(&root, "/lib/net/http.rb"), seconds_of(&root, "net/http"), seconds_of(&root, "x")],
            [2.0, 2.0, 0.0]
        );
    }
}
