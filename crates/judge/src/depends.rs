//! Dependencies of an image that the user may not expect: shown below the summary of a freeze, and by `snapboot
//! inspect`.

use image_file::this_process::ThisProcess;
use inputs::facts::{fact_kind, Value};

use crate::environment::Environment;
use crate::environment_inputs::EnvironmentInputs;
use crate::reads::{FullEnvironmentRead, Reads};
use crate::source_locations::{reader, relative_location};

/// All of them as text: names such as `NO_COLOR (read by lib.py:2)`, and phrases such as
/// `the current directory (/x), read by lib.py:3`. `compared` describes what the front end compares itself; `has_preloads` says whether modules were
/// preloaded.
pub fn all(environment: &Environment, reads: &Reads, compared: &[String], has_preloads: bool) -> Vec<String> {
    let whole = |place: &str| format!("every variable of the environment, read by {}", relative_location(place));
    let wholes = reads.wholes.iter().map(|read| match read {
        FullEnvironmentRead::Read(place) => whole(place),
        FullEnvironmentRead::Passed(program) => {
            format!("every variable of the environment, passed to {program}")
        }
    });
    EnvironmentInputs { environment, reads }
        .read_by_name()
        .into_iter()
        .chain(wholes)
        .chain(compared.iter().cloned())
        .chain(settings(reads))
        .chain(facts(reads, has_preloads))
        .collect()
}

/// Settings of the runtime that a thaw would take from its own environment if the boot had not read them.
fn settings(reads: &Reads) -> impl Iterator<Item = String> + use<'_> {
    reads.renewals.bound.iter().map(|(setting, place)| {
        let who = if place.is_empty() { "the program".into() } else { relative_location(place) };
        match setting.as_str() {
            "locale" => format!("the locale of text (LC_ALL, LC_CTYPE, LANG), read by {who}"),
            variable => format!("{variable}, whose effect is read by {who}"),
        }
    })
}

/// The names of all facts that the boot read, and where it read them.
pub(crate) fn of_facts(reads: &Reads) -> impl Iterator<Item = (String, Option<&str>)> {
    let place = |fact| reads.places.get(fact).map(String::as_str);
    reads.facts.iter().map(move |fact| (inputs::facts::name(fact.0, fact.1).to_string(), place(fact)))
}

/// Per-start facts that the boot read. Facts of the machine and the user (CPUs, limits, groups) differ between
/// machines, as files do; these differ between two starts of one user.
fn facts(reads: &Reads, has_preloads: bool) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for &(kind, of) in &reads.facts {
        if !PER_START.contains(&kind) {
            continue;
        }
        let value = Value::read(&ThisProcess::FOR_BOOT, kind, of);
        let value = value.as_ref().map_or(&b"?"[..], Value::bytes);
        let who = reader(reads.places.get(&(kind, of)).map(String::as_str));
        let value = String::from_utf8_lossy(value);
        let what = match kind {
            fact_kind::TERMINAL => format!("{} being {value}", STREAMS[of.min(2) as usize]),
            _ => format!("the {} ({value})", inputs::facts::name(kind, of)),
        };
        let remedy = match kind {
            fact_kind::TERMINAL | fact_kind::WINDOW if has_preloads => REMEDY,
            fact_kind::TERMINAL | fact_kind::WINDOW => STARTS_ORDINARY,
            _ => "",
        };
        words.push(format!("{what}, read by {who}{remedy}"));
    }
    words
}

const PER_START: [u32; 4] = [fact_kind::CWD, fact_kind::WINDOW, fact_kind::TERMINAL, fact_kind::UMASK];
/// A boot has no terminal.
const REMEDY: &str = "; to start it at a terminal, do not preload the code that asks";
const STARTS_ORDINARY: &str = "; at a terminal it starts the ordinary way";
const STREAMS: [&str; 3] = ["standard input", "standard output", "standard error"];
