//! Applies the results of other starts: a read that makes no difference is not an input, a value that is only kept is
//! renewed in each thaw, and a value that makes a difference is an input, with the object that shows it.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use image_file::info::{Decision, Verdict};
use inputs::facts::{fact_kind, is_of_terminal};
use runtime::Language;

use crate::environment::Environment;
use crate::reads::{Alternative, FullEnvironmentRead, OtherValue, Reads, Searched};

/// The current directory, among the names of variables.
pub const CWD: &str = "cwd";
/// The kernel's release, likewise.
pub const KERNEL: &str = "kernel";
/// The kernel's version, likewise: its number and build time.
pub const KERNEL_VERSION: &str = "kernel-version";
/// All variables that were not read by name, likewise.
pub const ALL: &str = "*";

/// The host's name, likewise.
pub const HOST: &str = "hostname";

/// The fact of this name: the current directory, or the part of uname(2)'s answer.
fn fact_named(name: &str) -> (u32, u32) {
    let kind = match name {
        CWD => fact_kind::CWD,
        HOST => fact_kind::HOSTNAME,
        _ => fact_kind::KERNEL,
    };
    (kind, 0)
}

/// The variable with directories that the runtime searches before its own.
pub fn search_path(language: Language) -> &'static str {
    match language {
        Language::Python => "PYTHONPATH",
        Language::Ruby => "RUBYLIB",
    }
}

const FOLDER: &str = "the current directory";

impl Reads {
    /// Makes this an input, because an object differs between starts that differ in it; whether or not its reader was
    /// recorded.
    pub fn bind(&mut self, name: &str, object: &str) {
        match name {
            ALL => {} // it was read, and counts
            CWD | HOST | KERNEL | KERNEL_VERSION => {
                let fact = fact_named(name);
                if !self.facts.contains(&fact) {
                    self.facts.push(fact);
                    self.facts.sort_unstable();
                }
                let place = self.places.entry(fact).or_default();
                *place = with_object(place, object);
            }
            name => {
                let place = self.variables.entry(name.into()).or_default();
                *place = Some(with_object(place.as_deref().unwrap_or_default(), object));
            }
        }
    }

    /// Has a thaw renew this variable, because the program only keeps texts with its value. `found` are the look-ups
    /// below it, or along it, that count instead: rows of [`fact_kind::FOUND`]. What C code keeps of it cannot be
    /// observed.
    pub fn renew(&mut self, name: &str, found: Vec<Vec<u8>>) {
        let variable = OsString::from(name);
        if self.by_c.contains(&variable) || (self.variables.remove(&variable).is_none() && found.is_empty()) {
            return;
        }
        let why = match found.is_empty() {
            true => "the program only keeps texts with the value; a boot with another value showed no other difference",
            false => {
                "the program only keeps texts with the value, and its look-ups by the variable are compared; a boot with another value \
                 showed no other difference"
            }
        };
        self.decide(name, Verdict::Renewed, why.to_owned());
        self.renewed.insert(variable);
        self.found.extend(found);
    }

    /// Whether the program itself, and not only the runtime, has read this variable.
    pub fn asks_for(&self, name: &str) -> bool {
        let name = OsStr::new(name);
        self.by_c.contains(name) || self.variables.get(name).is_some_and(Option::is_some)
    }

    /// Drops PYTHONPATH or RUBYLIB as an input: instead, the directories in another value must contain none of `names`,
    /// which the boot looked up and did not find. Does nothing if the program itself has read the variable.
    pub fn search(&mut self, variable: &'static str, names: BTreeSet<OsString>) {
        if self.asks_for(variable) {
            return;
        }
        self.variables.remove(OsStr::new(variable));
        let why = "its directories must not contain what the boot looked up and did not find; a boot with another value showed no other \
                   difference";
        self.decide(variable, Verdict::Renewed, why.to_owned());
        self.searched = Some(Searched { variable, names });
    }

    /// Has a thaw renew the current directory; look-ups in it follow the start.
    pub fn renew_folder(&mut self) {
        self.facts.retain(|fact| *fact != (fact_kind::CWD, 0));
        let why = "the program only keeps texts with the path; a boot in another directory showed no other difference";
        self.decide(FOLDER, Verdict::Renewed, why.to_owned());
    }

    /// Has a thaw renew part of uname(2)'s answer: [`HOST`], or [`KERNEL`] for its release and version. What C code
    /// keeps of it cannot be observed.
    pub fn renew_system(&mut self, name: &str) {
        let own = fact_named(name);
        if !self.facts.contains(&own) || self.facts_by_c.contains(&own) {
            return;
        }
        self.facts.retain(|fact| *fact != own);
        let what = match name {
            HOST => "the name of the host",
            _ => "the kernel's version",
        };
        let why = "the program only keeps texts with it; a boot with another one showed no other difference";
        self.decide(what, Verdict::Renewed, why.to_owned());
    }

    /// Whether the program has asked for this part of uname(2)'s answer.
    pub fn asks_for_system(&self, name: &str) -> bool {
        self.facts.contains(&fact_named(name))
    }

    /// Restricts all variables to those that the program selects by these patterns. `largest`: see [`Reads::largest`].
    pub fn pick(&mut self, patterns: &[String], largest: Option<u64>, environment: &Environment) {
        let place = self.wholes.iter().find_map(FullEnvironmentRead::place).map(str::to_owned);
        let before = self.wholes.len();
        self.wholes.retain(|read| read.place().is_none());
        self.largest = largest;
        if self.wholes.len() < before {
            let names = if patterns.is_empty() { "none".to_owned() } else { patterns.join(", ") };
            let why = format!("a boot had more of them, and the program used only these: {names}");
            self.decide("variables that were not read by name", Verdict::NoInput, why);
        }
        self.add_matching(patterns, environment, place.as_deref());
    }

    /// Serves these other values, because a boot with them came to the same state. `boots`: the number of that boot, as a bit (1 << number), which
    /// shows which values were tried together.
    pub fn serve(&mut self, values: &[(&'static str, OtherValue)], boots: u32) {
        self.alternatives.extend(values.iter().map(|&(name, value)| Alternative { name, value, boots }));
        let named = values.iter().map(|(name, value)| match value {
            OtherValue::Unset => format!("{name} not set"),
            OtherValue::Is(value) => format!("{name}={value}"),
            OtherValue::BelowHome(rest) => format!("{name}=$HOME{rest}"),
        });
        let named = named.collect::<Vec<_>>().join(", ");
        self.decide(&named, Verdict::NoInput, "a boot with these values reached the same state".to_owned());
    }

    /// Whether the program has asked for its terminal, and not through C code, where the kept answer cannot be
    /// observed.
    pub fn asks_for_terminal(&self) -> bool {
        self.streams_asked_for().contains(&true)
    }

    /// The standard streams for which the program has asked whether they are a terminal, or for their size.
    pub fn streams_asked_for(&self) -> [bool; 3] {
        [0, 1, 2].map(|stream| self.facts.iter().any(|fact| fact.1 == stream && self.is_seen_terminal(fact)))
    }

    /// Whether the program has asked for the size of its terminal.
    pub fn asks_for_size(&self) -> bool {
        self.facts.iter().any(|(kind, _)| *kind == fact_kind::WINDOW)
    }

    /// Whether starts with another terminal are not served.
    pub fn depends_on_terminal(&self) -> bool {
        self.facts.iter().any(|(kind, _)| is_of_terminal(*kind))
    }

    /// Records that the image has a variant for each kind of start.
    pub fn split_by_terminal(&mut self) {
        self.facts.retain(|(kind, _)| !is_of_terminal(*kind));
    }

    /// Serves starts with and without a terminal, because boots came to the same state.
    pub fn serve_all_terminals(&mut self) {
        self.serve_all(fact_kind::TERMINAL, "the terminal", "boots with and without a terminal reached the same state");
    }

    /// Serves all terminal sizes, because a boot with another size came to the same state.
    pub fn serve_all_sizes(&mut self) {
        self.serve_all(
            fact_kind::WINDOW,
            "the size of the terminal",
            "boots at terminals of other sizes reached the same state",
        );
    }

    fn serve_all(&mut self, kind: u32, what: &str, why: &str) {
        let (before, by_c) = (self.facts.len(), &self.facts_by_c);
        self.facts.retain(|fact| fact.0 != kind || by_c.contains(fact));
        if self.facts.len() < before {
            self.decide(what, Verdict::NoInput, why.to_owned());
        }
    }

    fn is_seen_terminal(&self, fact: &(u32, u32)) -> bool {
        is_of_terminal(fact.0) && !self.facts_by_c.contains(fact)
    }

    /// Whether the program has asked for the current directory.
    pub fn asks_for_folder(&self) -> bool {
        self.facts.contains(&(fact_kind::CWD, 0))
    }

    pub(crate) fn decide(&mut self, what: &str, verdict: Verdict, why: String) {
        let decision = Decision::new(what, verdict, why);
        if !self.decided.contains(&decision) {
            self.decided.push(decision);
        }
    }
}

/// The place where a fact is read, with an object that follows from it.
fn with_object(place: &str, object: &str) -> String {
    match (place, object) {
        ("", object) => object.to_owned(),
        (place, "") => place.to_owned(),
        (place, object) => format!("{place} ({object} depends on it)"),
    }
}
