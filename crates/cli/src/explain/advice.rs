//! What to do about a start's time: what freezing saves, what stands in its way, what it leaves to each start.

use std::collections::BTreeSet;
use std::ffi::OsString;

use explain::{Advice, Kind, Node, Start};
use freeze::Written;
use regex::Regex;
use runtime::{resolve, search_path};

use super::trial::Trial;
use crate::human;

/// What a start still loads is worth a word from this share of it on.
const WORTH: f64 = 0.05;
/// How many pieces of one sort there are.
const MAX: usize = 5;

/// When the command was frozen and has thawed.
pub fn frozen(ordinary: &Start, thawed: &Start, trial: &Trial, written: &Written) -> Vec<Advice> {
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
    advice.push(if after < before {
        Advice {
            headline: format!("Freeze it: {:.1} times as fast", before / after),
            text: took + &learnt,
            place: None,
            remedy: Some(trial.typed()),
            saves: Some(before - after),
        }
    } else {
        Advice { text: took + &learnt, ..worded("Freezing gains nothing here", None) }
    });
    let minded = written
        .warnings
        .iter()
        .map(|warning| Advice { remedy: withheld(warning, trial), ..worded("Mind this of the image", Some(warning)) });
    // What can be mended comes first: it may be why an image holds little.
    let (mended, noted): (Vec<Advice>, Vec<Advice>) = minded.partition(|advice| advice.remedy.is_some());
    advice.extend(mended);
    advice.extend(left_out(thawed, written));
    advice.extend(still_loaded(thawed, trial, written));
    advice.extend(noted);
    advice
}

/// When the command cannot be frozen: why, sentence and place.
pub fn refused(reasons: &[(String, Option<String>)], trial: &Trial) -> Vec<Advice> {
    let one = |(reason, place): &(String, Option<String>)| Advice {
        place: place.clone().or_else(|| place_in(reason)),
        remedy: withheld(reason, trial),
        ..worded("This stands in the way of freezing it", Some(reason))
    };
    reasons.iter().map(one).collect()
}

/// What holds for an ordinary start, frozen or not.
pub fn ordinary(words: &[OsString]) -> Vec<Advice> {
    let shim = resolve(words, &search_path()).ok().and_then(|resolved| resolved.shim);
    shim.into_iter()
        .map(|shim| Advice {
            text: format!(
                "{} is a version manager's script that looks for the interpreter in each start: its time is in the interpreter's own. \
                 It leads to {}.",
                shim.script.display(),
                shim.program.display()
            ),
            ..worded("Name the interpreter itself", None)
        })
        .collect()
}

/// What training has shown and an image must not hold, where that costs anything; what is left only for what it imports is not named.
fn left_out(thawed: &Start, written: &Written) -> Vec<Advice> {
    let roots =
        written.left_out.iter().filter(|(_, why)| !why.starts_with("imports ") && !why.starts_with("requires "));
    let mut advice: Vec<Advice> = roots
        .filter_map(|(name, why)| {
            let seconds = seconds_of(&thawed.root, name);
            (seconds >= thawed.root.seconds * WORTH / 5.0).then(|| Advice {
                place: place_in(why),
                saves: Some(seconds),
                ..worded(&format!("{name} is left to each start"), Some(&format!("It {why}.")))
            })
        })
        .collect();
    most_first(&mut advice);
    advice
}

/// What a thawed start loads, and an image could hold.
fn still_loaded(thawed: &Start, trial: &Trial, written: &Written) -> Option<Advice> {
    let left: BTreeSet<&str> = written.left_out.iter().map(|(name, _)| name.as_str()).collect();
    let main = thawed.root.children.iter().find(|child| child.kind == Kind::Main)?;
    let mut loaded: Vec<&Node> = main
        .children
        .iter()
        .filter(|child| child.kind == Kind::Body && child.seconds >= thawed.root.seconds * WORTH)
        .filter(|child| !left.contains(child.name.as_str()))
        .filter(|child| child.detail.as_deref().is_none_or(|file| !left.contains(file)))
        .collect();
    loaded.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    loaded.truncate(MAX);
    let names = loaded.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(",");
    let first = loaded.first()?;
    let typed = trial.typed();
    Some(Advice {
        headline: format!("Load {} before the image is written", if loaded.len() == 1 { &first.name } else { "more" }),
        text: format!(
            "A thawed start still loads {}, which --preload takes into the image, if that can be.",
            names.replace(',', ", ")
        ),
        place: first.detail.clone(),
        remedy: Some(typed.replacen("snapboot freeze ", &format!("snapboot freeze --preload {names} "), 1)),
        saves: Some(loaded.iter().map(|node| node.seconds).sum()),
    })
}

fn most_first(advice: &mut Vec<Advice>) {
    advice.sort_by(|one, other| other.saves.unwrap_or(0.0).total_cmp(&one.saves.unwrap_or(0.0)));
    advice.truncate(MAX);
}

/// How long the loading of a module or feature took, wherever it was.
fn seconds_of(node: &Node, name: &str) -> f64 {
    let is_it = node.kind == Kind::Body && (node.name == name || node.detail.as_deref() == Some(name));
    match is_it {
        true => node.seconds,
        false => node.children.iter().map(|child| seconds_of(child, name)).sum(),
    }
}

/// What one would type where a secret stands in the way, as such a sentence says: it is read by each start, and never in the image.
fn withheld(sentence: &str, trial: &Trial) -> Option<String> {
    let option = Regex::new(r"--withhold [A-Z_][A-Z0-9_]*").ok()?.find(sentence)?.as_str();
    // The name of no variable, but of what stands for one.
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

    #[test]
    fn places_are_found_in_sentences() {
        assert_eq!(place_in("reads LANG (at /a/b.py:12)."), Some("/a/b.py:12".to_owned()));
        assert_eq!(place_in("is a TCP socket (127.0.0.1:6379)."), None);
    }

    #[test]
    fn a_secret_in_the_way_is_withheld() {
        let trial = Trial::of(&["/bin/sh".into()]).unwrap();
        let typed = withheld("it is withheld; make it an input, with --env TOKEN; or --withhold TOKEN", &trial);
        assert_eq!(typed.as_deref(), Some("snapboot freeze --withhold TOKEN -- /bin/sh"));
        assert_eq!(withheld("have the rest taken for unset with --withhold NAME, or --withhold '*'", &trial), None);
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
