//! What the boot read of its environment, and of machine, user and process, as front end and freezer recorded it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use image_file::info::{Decision, Verdict};
use inputs::facts::searched;
use recipes::ReadOf;
use runtime::Language;

use crate::entries::Entries;
use crate::environment::Environment;
use crate::events::{Event, Kind, Phase};
use crate::exceptions::{is_one_of, rules_of_reader, RENEWED_VARIABLES};
use crate::findings::Finding;
use crate::renewals::Renewals;
use crate::source_locations::{self, relative_location};

/// The reads that count.
#[derive(Clone, Debug, Default)]
pub struct Reads {
    /// Names of variables, set or not, and where they were read, if known.
    pub variables: BTreeMap<OsString, Option<String>>,
    /// Reads of the whole environment.
    pub wholes: Vec<FullEnvironmentRead>,
    /// Patterns under which variables were looked up. A matching variable that appears later counts, too.
    pub patterns: BTreeSet<String>,
    /// Variables that C code of the program read.
    pub by_c: BTreeSet<OsString>,
    /// Variables whose value a thaw puts where the program keeps it. Any value is served.
    pub renewed: BTreeSet<OsString>,
    /// What was looked up in the directories of variables, and where it was found: see [`inputs::facts::fact_kind::FOUND`].
    pub found: BTreeSet<Vec<u8>>,
    /// What the boot looked up along the search path of its runtime, if that differs between starts.
    pub searched: Option<Searched>,
    /// Other values of variables that make no difference.
    pub alternatives: Vec<Alternative>,
    /// Other locales that make no difference to a program that read its own, in the form of inputs/environment.rs, each
    /// with its boots as in [`Alternative`].
    pub locales: Vec<(Option<Vec<u8>>, u32)>,
    /// The size of an environment that makes no difference (bytes), if a larger one does.
    pub largest: Option<u64>,
    /// Facts: kind and number.
    pub facts: Vec<(u32, u32)>,
    /// Facts that C code of the program read.
    pub facts_by_c: BTreeSet<(u32, u32)>,
    /// Where facts were read, if known.
    pub places: BTreeMap<(u32, u32), String>,
    /// The decisions about facts that are not inputs.
    pub decided: Vec<Decision>,
    /// Per-start values that cannot be compared, and where they were read.
    pub early: Vec<Early>,
    /// Patterns of arguments with which the boot would have gone differently.
    pub guards: BTreeSet<&'static str>,
    /// Settings of the runtime that are left to starts.
    pub renewals: Renewals,
}

/// Names that were looked up in the directories of a variable and found in none: see [`inputs::facts::fact_kind::SEARCHED`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Searched {
    /// The variable.
    pub variable: &'static str,
    /// The names, each up to its first dot.
    pub names: BTreeSet<OsString>,
}

impl Searched {
    /// The text of the fact. `value` is the variable's value during the boot.
    pub fn record(&self, value: Option<&OsStr>) -> Vec<u8> {
        let digest =
            |value: &OsStr| image::digest(value.as_bytes()).map(|byte| format!("{byte:02x}")).concat().into_bytes();
        let value = value.filter(|value| !value.is_empty()).map_or(searched::UNSET.to_vec(), digest);
        let names: Vec<&[u8]> = self.names.iter().map(|name| name.as_bytes()).collect();
        [self.variable.as_bytes(), b" ", &value, b": ", &names.join(&searched::SEPARATOR)].concat()
    }
}

/// Another value of a variable with which the program booted to the same state: see [`image::Alternative`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    /// The variable.
    pub name: &'static str,
    /// Its other value.
    pub value: OtherValue,
    /// The boots that had it, one bit each.
    pub boots: u32,
}

/// Another value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherValue {
    /// The variable is unset.
    Unset,
    /// This value.
    Is(&'static str),
    /// This path below HOME.
    BelowHome(&'static str),
}

impl OtherValue {
    /// The value in such an environment; None if it is unset.
    pub fn resolve(self, environment: &Environment) -> Option<OsString> {
        match self {
            OtherValue::Unset => None,
            OtherValue::Is(value) => Some(value.into()),
            OtherValue::BelowHome(rest) => {
                let home = environment.value("HOME").filter(|home| home.as_bytes().starts_with(b"/"))?;
                Some([home, OsStr::new(rest)].join(OsStr::new("")))
            }
        }
    }
}

/// A read that came too early: `sys.argv`, and `FILE:LINE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Early {
    what: String,
    place: String,
}

/// A read of the whole environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FullEnvironmentRead {
    /// At this FILE:LINE.
    Read(String),
    /// By starting a program of this name with it.
    Passed(String),
}

impl FullEnvironmentRead {
    /// Where it was read, if the program itself read it.
    pub fn place(&self) -> Option<&str> {
        match self {
            FullEnvironmentRead::Read(place) => Some(place),
            FullEnvironmentRead::Passed(_) => None,
        }
    }
}

impl Reads {
    /// Collects events: `reports` come from the front end, `from_c` from the freezer.
    pub fn gather(reports: &[&Entries], from_c: &Entries, language: Language, environment: &Environment) -> Reads {
        let reported: Vec<Event> = reports.iter().flat_map(|report| Event::parse_all(report)).collect();
        let by_c = Event::parse_all(from_c);
        let renewals = reports.first().map(|report| Renewals::gather(report, language)).unwrap_or_default();
        let mut reads = Reads { renewals, ..Reads::default() };
        for event in reported.iter().filter(|event| !event.is_renewed) {
            reads.add(event, language, environment, &reported);
        }
        // Ruby also reads through C functions, and makes objects of the values.
        let foreign = by_c
            .iter()
            .filter(|event| matches!(event.phase, Phase::Runtime | Phase::Program) && event.kind == Kind::Foreign);
        reads.by_c.extend(foreign.map(|event| event.subject.clone()));
        for event in &by_c {
            let was_reported = || reported.iter().any(|other| other.is_same(event));
            let counts = match (event.phase, event.kind, language) {
                // ENV calls the C library, so the front end has reported this read with its reader.
                (Phase::Program, Kind::Variable, Language::Ruby) => !was_reported(),
                // So has it whether a standard stream is a terminal.
                (Phase::Program, Kind::Fact, _) if event.subject == "terminal" => !was_reported(),
                (Phase::Program, ..) => true,
                // RubyGems belongs to the program as much as to the runtime. CPython reads PYTHON variables, and PATH
                // to find itself.
                (Phase::Runtime, Kind::Variable, Language::Ruby) => {
                    !RENEWED_VARIABLES.iter().any(|name| event.subject == *name)
                }
                _ => false,
            };
            if counts && environment.has_given(event) {
                if event.kind == Kind::Variable && language == Language::Python {
                    reads.by_c.insert(event.subject.clone());
                }
                if !was_reported() {
                    reads.facts_by_c.extend(event.fact());
                }
                reads.add(event, language, environment, &reported);
            }
        }
        reads.facts.sort_unstable();
        reads.facts.dedup();
        reads.wholes.dedup();
        reads
    }

    fn add(&mut self, event: &Event, language: Language, environment: &Environment, all: &[Event]) {
        let reader = event.reader.as_deref();
        match event.kind {
            Kind::Variable => {
                let leaves = |read: &ReadOf| matches!(read, ReadOf::Variable(name) if event.subject == **name);
                // Who goes through a copy in Python reads each of them by name.
                let picks =
                    rules_of_reader(language, reader).filter(|_| language == Language::Python).find_map(patterns);
                if rules_of_reader(language, reader).any(leaves) {
                    self.leave(&event.subject.to_string_lossy(), reader);
                } else if picks.is_none_or(|picks| is_one_of(picks, &event.subject)) {
                    self.add_variable(&event.subject, event.place.as_deref());
                }
            }
            Kind::AllVariables => match rules_of_reader(language, reader).find_map(patterns) {
                Some(picks) => self.add_matching(picks, environment, event.place.as_deref()),
                None => self.wholes.push(FullEnvironmentRead::Read(event.place.clone().unwrap_or_default())),
            },
            Kind::Executed => {
                let name = Path::new(&event.subject).file_name().unwrap_or(&event.subject);
                match recipes::programs().find(|row| name == OsStr::new(&row.program)) {
                    Some(row) => self.add_matching(&row.environment, environment, None),
                    None => self.wholes.push(FullEnvironmentRead::Passed(name.to_string_lossy().into_owned())),
                }
            }
            Kind::Early => {
                let what = event.subject.to_string_lossy().into_owned();
                let guards = rules_of_reader(language, reader).find_map(|read| match read {
                    ReadOf::AtStart { what: known, guards } => (*known == what).then_some(guards),
                    _ => None,
                });
                if let Some(guards) = guards {
                    self.guards.extend(guards.iter().map(String::as_str));
                    return self.leave(&what, reader);
                }
                let early = Early { what, place: event.place.clone().unwrap_or_default() };
                if !self.early.contains(&early) {
                    self.early.push(early);
                }
            }
            Kind::Fact => {
                let Some((kind, of)) = event.fact() else { return };
                let is_unset = |name: &str| {
                    let same = |other: &Event| other.is_of_variable(OsStr::new(name)) && other.reader == event.reader;
                    environment.value(name).is_none() && all.iter().any(same)
                };
                let excepted = rules_of_reader(language, reader).any(|read| match read {
                    ReadOf::Fact { kind: known, unless_unset, .. } => {
                        *known == kind && !unless_unset.as_deref().is_some_and(is_unset)
                    }
                    _ => false,
                });
                if !excepted {
                    self.facts.push((kind, of));
                    if let Some(place) = &event.place {
                        self.places.entry((kind, of)).or_insert_with(|| place.clone());
                    }
                    // Ruby gets the host's name only from the C library, which returns it with the rest.
                    if language == Language::Ruby && kind == inputs::facts::fact_kind::KERNEL {
                        self.facts.push((inputs::facts::fact_kind::HOSTNAME, 0));
                    }
                } else {
                    self.leave(inputs::facts::name(kind, of), reader);
                }
            }
            Kind::Foreign => {}
        }
    }

    /// Records that a known reader keeps nothing of its read.
    fn leave(&mut self, what: &str, reader: Option<&str>) {
        self.decide(
            what,
            Verdict::NoInput,
            format!("read by {}, which keeps nothing of it", source_locations::reader(reader)),
        );
    }

    /// Adds the reads of another boot that the first one lacks.
    pub fn add_those_of(&mut self, other: &Reads, first: &Reads) {
        for (name, place) in other.variables.iter().filter(|(name, _)| !first.variables.contains_key(*name)) {
            self.variables.entry(name.clone()).or_insert_with(|| place.clone());
        }
        self.by_c.extend(other.by_c.difference(&first.by_c).cloned());
        self.facts_by_c.extend(&other.facts_by_c);
        self.patterns.extend(other.patterns.difference(&first.patterns).cloned());
        for fact in other.facts.iter().filter(|fact| !first.facts.contains(fact)) {
            if let Some(place) = other.places.get(fact) {
                self.places.entry(*fact).or_insert_with(|| place.clone());
            }
            self.facts.push(*fact);
        }
        self.facts.sort_unstable();
        self.facts.dedup();
    }

    /// Restricts the user, read by a boot without HOME, to starts without it: with HOME nobody looks the user up.
    pub fn count_user_without_home(&mut self) {
        for fact in &mut self.facts {
            if *fact == (inputs::facts::fact_kind::USER, 0) {
                fact.1 = inputs::facts::WITHOUT_HOME;
            }
        }
    }

    fn add_variable(&mut self, name: &OsStr, place: Option<&str>) {
        if !inputs::environment::is_own(name.as_bytes()) {
            let known = self.variables.entry(name.to_owned()).or_default();
            if known.is_none() {
                *known = place.map(str::to_owned);
            }
        }
    }

    /// Adds the variables that the boot could have read under these patterns, and those that appear later.
    pub fn add_matching(&mut self, patterns: &[impl AsRef<str>], environment: &Environment, place: Option<&str>) {
        for pattern in patterns.iter().map(AsRef::as_ref) {
            let matches = |name: &OsStr| inputs::environment::matches(pattern.as_bytes(), name.as_bytes());
            environment.names().filter(|name| matches(name)).for_each(|name| self.add_variable(name, place));
            if pattern.starts_with('*') || pattern.ends_with('*') {
                self.patterns.insert(pattern.to_owned());
            } else {
                self.add_variable(OsStr::new(pattern), place);
            }
        }
    }
}

/// The patterns of what a reader of the whole environment picks.
fn patterns(read: &'static ReadOf) -> Option<&'static [String]> {
    match read {
        ReadOf::Environment(patterns) => Some(patterns),
        _ => None,
    }
}

impl Early {
    /// Why the process cannot be frozen.
    pub fn finding(&self) -> Finding {
        let Early { what, place } = self;
        let reader = if place.is_empty() { "the program".to_owned() } else { relative_location(place) };
        Finding::new(
            "early",
            format!(
                "{reader} reads {what} while it boots, which differs at each start; leave the read to the main part: do not preload the \
                 module that reads it, or wrap the read in snapboot.defer"
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::tests::{add, from_c, read_by};

    fn gather(report: &Entries, from_c: &Entries, language: Language, all: &[(&str, &str)]) -> Reads {
        let all = all.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment = Environment::pick(all, &["SEEN".to_owned()], &[]);
        Reads::gather(&[report], from_c, language, &environment)
    }

    fn reported(reader: &str, read: &[(Kind, &str)], language: Language, all: &[(&str, &str)]) -> Reads {
        gather(&read_by(reader, read), &Entries::default(), language, all)
    }

    fn by_c(phase: Phase, read: &[(Kind, &str, &str)], language: Language, all: &[(&str, &str)]) -> Reads {
        gather(&Entries::default(), &from_c(phase, read), language, all)
    }

    fn names(reads: &Reads) -> Vec<&str> {
        reads.variables.keys().map(|name| name.to_str().unwrap()).collect()
    }

    #[test]
    fn front_end_and_freezer_add_to_each_other() {
        let report = read_by("/a.py", &[(Kind::Variable, "A"), (Kind::Variable, "PWD")]);
        let mut all = from_c(Phase::Runtime, &[(Kind::Variable, "EARLY", "")]);
        add(&mut all, &["variable", "program", "B"]);
        add(&mut all, &["variable", "program", "A"]);
        add(&mut all, &["fact", "program", "limit", "", "", "07"]);
        add(&mut all, &["variable", "front end", "C"]);
        add(&mut all, &["variable", "trial", "D"]);
        let reads = gather(&report, &all, Language::Python, &[]);
        assert_eq!(names(&reads), ["A", "B", "PWD"]);
        assert_eq!(reads.variables[OsStr::new("A")].as_deref(), Some("/a.py:1"));
        assert_eq!(reads.facts, [(inputs::facts::fact_kind::LIMIT, 7)]);
        assert_eq!(names(&gather(&report, &all, Language::Ruby, &[])), ["A", "B", "EARLY", "PWD"]);
        let zone = [(Kind::Variable, "TZ", "")];
        assert_eq!(names(&by_c(Phase::Runtime, &zone, Language::Ruby, &[])), [""; 0], "the front end renews it");
        assert_eq!(names(&by_c(Phase::Program, &zone, Language::Ruby, &[])), ["TZ"]);
    }

    #[test]
    fn what_the_program_set_itself_is_not_read() {
        let digest: String = image::digest(b"given").iter().map(|byte| format!("{byte:02x}")).collect();
        let read = |digest: &str, all: &[(&str, &str)]| {
            by_c(Phase::Program, &[(Kind::Variable, "SEEN", digest)], Language::Python, all)
        };
        let all = [("SEEN", "given")];
        assert_eq!(names(&read(&digest, &all)), ["SEEN"]);
        assert_eq!(names(&read("00", &all)), [""; 0]);
        assert_eq!(names(&read(&digest, &[])), [""; 0]);
        assert_eq!(names(&read("", &all)), [""; 0], "removed");
    }

    #[test]
    fn whoever_reads_everything_is_named_unless_it_is_known_what_for() {
        let whole = [(Kind::AllVariables, "*")];
        let all = [("BUNDLE_GEMFILE", "/g"), ("BUNDLE_X", "1")];
        assert_eq!(
            reported("/app.py", &whole, Language::Ruby, &all).wholes,
            [FullEnvironmentRead::Read("/app.py:1".to_owned())]
        );
        let known = reported("/lib/bundler/settings.rb", &whole, Language::Ruby, &all);
        assert!(known.wholes.is_empty());
        assert_eq!(names(&known), ["BUNDLE_GEMFILE", "BUNDLE_X"]);
        assert!(known.patterns.contains("BUNDLE_*"));
        let executed = ["/sbin/ldconfig", "/bin/git", "/usr/bin/git"].map(|program| (Kind::Executed, program, ""));
        let passed = by_c(Phase::Program, &executed, Language::Python, &all).wholes;
        assert_eq!(passed, [FullEnvironmentRead::Passed("git".to_owned())]);
    }

    #[test]
    fn what_is_read_too_early_is_found_once() {
        let mut report = Entries::default();
        for _ in 0..2 {
            add(&mut report, &["early", "program", "sys.argv", "/a.py", "/a.py:1"]);
        }
        add(&mut report, &["early", "program", "__main__.__file__", "/lib/inspect.py", "/a.py:2"]);
        add(&mut report, &["early", "program", "$0", "", ""]);
        let early = gather(&report, &Entries::default(), Language::Python, &[]).early;
        let texts: Vec<String> = early.iter().map(|early| early.finding().text).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts[0].starts_with("/a.py:1 reads sys.argv while it boots"), "{}", texts[0]);
        assert!(texts[1].starts_with("the program reads $0 while it boots"), "{}", texts[1]);
    }

    #[test]
    fn who_reads_arguments_for_some_of_them_gives_guards() {
        let arguments = [(Kind::Early, "ARGV")];
        let known = reported("/gems/yard-1/lib/yard/config.rb", &arguments, Language::Ruby, &[]);
        assert!(known.early.is_empty() && known.guards.contains("--plugin"));
        let other = reported("/app/config.rb", &arguments, Language::Ruby, &[]);
        assert!(!other.early.is_empty() && other.guards.is_empty());
    }

    #[test]
    fn terminals_that_the_front_end_told_of_are_not_those_of_c_code() {
        let from_c = from_c(Phase::Program, &[(Kind::Fact, "terminal", "01"), (Kind::Fact, "terminal", "02")]);
        let mut report = Entries::default();
        add(&mut report, &["fact", "program", "terminal", "/a.py", "/a.py:1", "1"]);
        let reads = gather(&report, &from_c, Language::Python, &[]);
        let kind = inputs::facts::fact_kind::TERMINAL;
        assert_eq!(reads.facts, [(kind, 1), (kind, 2)]);
        assert_eq!(reads.places.into_iter().collect::<Vec<_>>(), [((kind, 1), "/a.py:1".to_owned())]);
    }

    #[test]
    fn exceptions_hold_for_their_readers_only() {
        let cwd = inputs::facts::fact_kind::CWD;
        let bundler = "/lib/bundler/shared_helpers.rb";
        let folder = (Kind::Fact, "cwd");
        assert_eq!(reported("/app.rb", &[folder], Language::Ruby, &[]).facts, [(cwd, 0)]);
        assert_eq!(reported(bundler, &[folder], Language::Ruby, &[]).facts, []);
        let unset = [(Kind::Variable, "BUNDLE_GEMFILE"), folder];
        assert_eq!(reported(bundler, &unset, Language::Ruby, &[]).facts, [(cwd, 0)]);
        assert_eq!(reported(bundler, &unset, Language::Ruby, &[("BUNDLE_GEMFILE", "/g")]).facts, []);
        let user = [(Kind::Fact, "user", "")];
        assert_eq!(by_c(Phase::Program, &user, Language::Ruby, &[]).facts, []);
        assert_eq!(by_c(Phase::Program, &user, Language::Python, &[]).facts, [(inputs::facts::fact_kind::USER, 0)]);
        assert_eq!(by_c(Phase::Runtime, &user, Language::Python, &[]).facts, [], "the runtime itself");
        let path = gather(
            &read_by(bundler, &[(Kind::Variable, "PATH")]),
            &from_c(Phase::Program, &[(Kind::Variable, "PATH", "")]),
            Language::Ruby,
            &[],
        );
        assert_eq!(names(&path), [""; 0]);
    }
}
