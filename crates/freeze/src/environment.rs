//! The environment of one freeze: what of it the boot sees, why that may not do, and what of it an image compares.
//!
//! The boot starts with what the table of [`super::variables`] or `--env` names. All others it sees when it looks them up: front end and
//! freezer find them in the file `environment` of the control directory, and put what is looked up into the process. So the values of
//! all that it never looks up get into no image. A variable becomes an input when the boot has read it ([`super::reads`]), set or not.
//! What looks like a secret is withheld; where it is read nevertheless, an image would differ from an ordinary start: the freeze is refused then.
//! Volatile variables (PWD, TERM, SSH_* and the like, see [`inputs::environment::VOLATILE`]) count when they are read by name only.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use image::{presence, Item, Section, TablesWriter, Variable};
use inputs::environment::{is_own, is_volatile, locale, matches, ALL, LOCALE};
use runtime::Language;

use super::findings::Finding;
use super::reads::{FullEnvironmentRead, Reads};
use super::variables::{always_compared, is_secret, rule, Rule};
use crate::entries::Entries;

/// Name and value of a variable.
type Pair = (OsString, OsString);

/// The environment of a freeze.
#[derive(Clone)]
pub struct Environment {
    /// What the boot sees from its start.
    seen: Vec<Pair>,
    /// What it sees when it asks.
    on_demand: Vec<Pair>,
    /// Names of what is set and looks like a secret, and would be an input if it were read.
    secrets: Vec<OsString>,
    /// Names of what is set and withheld because the user said so.
    withheld: Vec<OsString>,
    /// Names and patterns from `--env`.
    named: Vec<String>,
    /// Names and patterns from `--withhold`.
    patterns_withheld: Vec<String>,
    /// What is set for the boot, in place of what is seen, and is no input.
    boot_only: Vec<Pair>,
}

impl Environment {
    /// Picks what the boot sees from `all`, with the names given by `--env` and without those given by `--withhold`.
    pub fn pick(all: impl Iterator<Item = Pair>, named: &[String], withheld: &[String]) -> Self {
        let mut picked = Environment {
            seen: Vec::new(),
            on_demand: Vec::new(),
            secrets: Vec::new(),
            withheld: Vec::new(),
            named: named.to_vec(),
            patterns_withheld: withheld.to_vec(),
            boot_only: Vec::new(),
        };
        for (name, value) in all.filter(|(name, _)| !is_own(name.as_bytes())) {
            // What is named by itself wins over a pattern that it is under.
            let is_in = |names: &[String]| names.iter().any(|wanted| name == wanted.as_str());
            let is_withheld = is_in(withheld) || (is_under(withheld, &name) && rule(&name).is_none());
            let rule = rule(&name);
            if is_withheld && !is_in(named) {
                picked.withheld.push(name);
            } else if is_under(named, &name) || rule.is_some_and(Rule::acts) {
                picked.seen.push((name, value));
            } else if is_secret(&name, &value) {
                picked.secrets.push(name);
            } else if rule.is_some() {
                picked.seen.push((name, value));
            } else {
                picked.on_demand.push((name, value));
            }
        }
        picked.seen.sort();
        picked.on_demand.sort();
        picked.secrets.sort();
        picked
    }

    /// The same, but that the boot sees from its start what was read before it could ask, as `reads` tell.
    pub fn with_seen_early(&self, reads: &Entries) -> Self {
        let mut picked = self.clone();
        let reads_all = reads.all("variables").next().is_some();
        let is_read = |(name, _): &Pair| {
            reads.all("variable").any(|read| read == name) || (reads_all && !is_volatile(name.as_bytes()))
        };
        let (early, later) = picked.on_demand.into_iter().partition(is_read);
        picked.on_demand = later;
        picked.seen.extend::<Vec<_>>(early);
        picked.seen.sort();
        picked
    }

    /// Sets these variables for the boot alone.
    pub fn with_boot_only(self, boot_only: Vec<Pair>) -> Self {
        Environment { boot_only, ..self }
    }

    /// Names of the variables that are set for the boot alone.
    pub fn boot_only_names(&self) -> impl Iterator<Item = &OsStr> {
        self.boot_only.iter().map(|(name, _)| name.as_os_str())
    }

    /// Names of all variables that are set, but for the volatile ones and those that the user wants withheld.
    pub fn names(&self) -> impl Iterator<Item = &OsStr> {
        let shown = self.shown().map(|(name, _)| name.as_os_str()).filter(|name| !is_volatile(name.as_bytes()));
        shown.chain(self.secrets.iter().map(OsString::as_os_str))
    }

    /// Why an image would not do what an ordinary start does: what is set, and was read, and was withheld.
    pub fn findings(&self, reads: &Reads) -> Vec<Finding> {
        let read = self.secrets.iter().filter_map(|name| Some((name, reads.variables.get(name)?)));
        let named = read.map(|(name, place)| {
            let place = place.as_deref().map(shown);
            let reader = place.as_deref().unwrap_or("C code of the program");
            let name = name.to_string_lossy();
            format!(
                "{name} is set, and {reader} reads it, but it looks like a secret and is withheld from the boot; let the boot see it, and \
                 make it an input, with --env {name}; or have it taken for unset with --withhold {name}"
            )
        });
        named.chain(self.found_in_copies(reads)).map(|text| Finding::new("variable", text)).collect()
    }

    /// Whoever reads the whole environment may read secrets in it, and nobody sees which.
    fn found_in_copies(&self, reads: &Reads) -> Option<String> {
        let places: Vec<String> = reads.wholes.iter().filter_map(FullEnvironmentRead::place).map(shown).collect();
        let secrets: Vec<_> = self.secrets.iter().map(|name| name.to_string_lossy()).collect();
        if places.is_empty() || secrets.is_empty() {
            return None;
        }
        Some(format!(
            "{} reads the whole environment, but this looks like secrets and is withheld from the boot: {}; let the boot see what the \
             program needs with --env NAME; and have the rest taken for unset with --withhold NAME, or --withhold '*'",
            places.join(", "),
            secrets.join(", ")
        ))
    }

    fn withholds_all(&self) -> bool {
        self.patterns_withheld.iter().any(|pattern| pattern.as_bytes() == ALL)
    }

    /// What the boot sees from its start.
    pub fn seen(&self) -> &[Pair] {
        &self.seen
    }

    /// What the boot sees, or would if it looked it up: a start with these is fresh.
    pub fn shown(&self) -> impl Iterator<Item = &Pair> {
        self.seen.iter().chain(&self.on_demand)
    }

    /// The value of a variable that the boot sees, or would if it looked it up.
    pub fn value(&self, name: &str) -> Option<&OsStr> {
        self.shown().find(|(seen, _)| seen == name).map(|(_, value)| value.as_os_str())
    }

    /// The files `environment` and `on_demand` of the control directory: what the boot sees when it looks it up; and the names, with offset
    /// and size of each value in the first file, since whoever reads all of that has it in its memory.
    pub fn on_demand(&self) -> (Entries, Entries) {
        let (mut entries, mut index, mut offset) = (Entries::default(), Entries::default(), 0);
        for (name, value) in &self.on_demand {
            let key = if is_volatile(name.as_bytes()) { "volatile" } else { "variable" };
            offset += key.len() + 1 + name.len() + 1;
            entries.push(key, [name.as_os_str(), value].join(OsStr::new("=")));
            index.push(key, [OsStr::new(&format!("{offset},{}", value.len())), name].join(OsStr::new(",")));
            offset += value.len() + 1;
        }
        (entries, index)
    }

    /// The environment to start the runtime with: what the boot sees, with the freezer in front of LD_PRELOAD.
    pub fn for_boot(&self, freezer: &OsStr, control_dir: &OsStr) -> Vec<Pair> {
        let mut preload = freezer.to_owned();
        if let Some(own) = self.value("LD_PRELOAD").filter(|own| !own.is_empty()) {
            preload.push(":");
            preload.push(own);
        }
        let is_replaced = |name: &OsStr| name == "LD_PRELOAD" || self.boot_only.iter().any(|(own, _)| own == name);
        let mut all: Vec<_> = self.seen.iter().filter(|(name, _)| !is_replaced(name)).cloned().collect();
        all.extend(self.boot_only.iter().cloned());
        all.push(("LD_PRELOAD".into(), preload));
        all.push(("SNAPBOOT_FREEZE_DIR".into(), control_dir.to_owned()));
        // A thaw should not look up symbols that the boot has not called yet. The freezer takes this value out again.
        if self.value("LD_BIND_NOW").is_none() {
            all.push(("LD_BIND_NOW".into(), "snapboot".into()));
        }
        all
    }

    /// Names of the variables that are set and that an image of this language compares, for people.
    pub fn compared_names<'a>(&'a self, language: Language, reads: &'a Reads) -> impl Iterator<Item = &'a OsStr> {
        self.shown().map(|(name, _)| name.as_os_str()).filter(move |name| self.compares(language, reads, name))
    }

    /// Names of the variables that are set, count because the boot has read them by name, and are in no table; none where all count.
    pub fn asked_for(&self, reads: &Reads) -> Vec<String> {
        if !reads.wholes.is_empty() {
            return Vec::new();
        }
        let is_asked_for = |name: &OsStr| reads.variables.contains_key(name) && rule(name).is_none();
        let names = self.shown().map(|(name, _)| name.as_os_str()).filter(|name| is_asked_for(name));
        names
            .map(|name| {
                let place = reads.variables.get(name).and_then(Option::as_deref);
                format!("{} (read by {})", name.to_string_lossy(), place.map_or("C code of the program".into(), shown))
            })
            .collect()
    }

    /// Writes what is compared: a digest of each value that is set, what was read and not set, the locale, and the patterns.
    pub fn write(&self, language: Language, reads: &Reads, tables: &mut TablesWriter) {
        let mut rows: BTreeMap<&[u8], (u32, [u8; 16])> = BTreeMap::new();
        // Those of the table that are not set need no rows.
        let is_in_table = |name: &OsStr| rule(name).is_some_and(|rule| rule.compares(language));
        for name in reads.variables.keys().filter(|name| !is_in_table(name)) {
            let wanted = if is_under(&self.patterns_withheld, name) { presence::ANY } else { presence::UNSET };
            rows.insert(name.as_bytes(), (wanted, [0; 16]));
        }
        // Secrets that were read have ended the freeze.
        for name in self.withheld.iter().chain(&self.secrets) {
            rows.insert(name.as_bytes(), (presence::ANY, [0; 16]));
        }
        for (name, value) in self.shown().filter(|(name, _)| self.compares(language, reads, name)) {
            rows.insert(name.as_bytes(), (presence::SET, image::digest(value.as_bytes())));
        }
        let entries: Vec<Vec<u8>> =
            self.shown().map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat()).collect();
        let locale = locale(entries.iter().map(Vec::as_slice));
        let present = if locale.is_some() { presence::SET } else { presence::UNSET };
        rows.insert(LOCALE, (present, locale.map_or([0; 16], image::digest)));
        for (name, (present, value)) in rows {
            let name = tables.text(name);
            tables.push(Section::Variables, &Variable { name, value, present, reserved: 0 });
        }
        let whole = (!reads.wholes.is_empty() && !self.withholds_all()).then_some(ALL);
        let always = always_compared(language).map(|pattern| pattern.as_bytes());
        for pattern in always.chain(self.named.iter().map(String::as_bytes)).chain(whole) {
            let text = tables.text(pattern);
            tables.push(Section::Patterns, &Item { text });
        }
    }

    fn compares(&self, language: Language, reads: &Reads, name: &OsStr) -> bool {
        (!reads.wholes.is_empty() && !is_volatile(name.as_bytes()))
            || reads.variables.contains_key(name)
            || is_under(&self.named, name)
            || rule(name).is_some_and(|rule| rule.compares(language))
    }
}

/// Whether one of these names or patterns is meant. That for all names leaves out the volatile ones.
fn is_under(patterns: &[String], name: &OsStr) -> bool {
    let is_meant =
        |pattern: &[u8]| matches(pattern, name.as_bytes()) && !(pattern == ALL && is_volatile(name.as_bytes()));
    patterns.iter().any(|pattern| is_meant(pattern.as_bytes()))
}

/// A place as people read it: from the current directory where it lies below that.
pub fn shown(place: &str) -> String {
    let here = std::env::current_dir().ok();
    let relative = here.as_ref().and_then(|here| place.strip_prefix(here.to_str()?)?.strip_prefix('/'));
    relative.unwrap_or(place).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(all: &[(&str, &str)], named: &[&str], withheld: &[&str]) -> Environment {
        let all = all.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        Environment::pick(all, &owned(named), &owned(withheld))
    }

    fn read(names: &[&str], wholes: Vec<FullEnvironmentRead>) -> Reads {
        let variables = names.iter().map(|name| (OsString::from(name), Some("/app/settings.py:3".to_owned())));
        Reads { variables: variables.collect(), wholes, ..Reads::default() }
    }

    fn names<'a>(pairs: impl IntoIterator<Item = &'a Pair>) -> Vec<&'a str> {
        pairs.into_iter().map(|(name, _)| name.to_str().unwrap()).collect()
    }

    /// Whether an image compares equal in another environment.
    fn holds(made_in: &Environment, language: Language, reads: &Reads, entries: &[&[u8]]) -> bool {
        let mut writer = TablesWriter::new();
        made_in.write(language, reads, &mut writer);
        let bytes = writer.finish();
        let tables = image::Tables::parse_unchecked_sum(&bytes).unwrap();
        let entries: Vec<&[u8]> = entries.to_vec();
        let result = inputs::environment::compare(&tables, entries.into_iter()).unwrap().is_none();
        result
    }

    #[test]
    fn the_table_and_named_variables_are_seen_from_the_start_and_all_but_secrets_on_demand() {
        let all = [("HOME", "/h"), ("PYTHONPATH", "/p"), ("SECRET", "x"), ("TERM", "vt"), ("EL", "1"), ("FM", "1")];
        let picked = environment(&all, &["EL"], &[]);
        assert_eq!(names(picked.seen()), ["EL", "HOME", "PYTHONPATH"]);
        let (entries, index) = picked.on_demand();
        assert_eq!(entries.to_bytes(), b"variable=FM=1\0volatile=TERM=vt\0");
        assert_eq!(index.to_bytes(), b"variable=12,1,FM\0volatile=28,2,TERM\0");
        let compared = |language, reads: &Reads| {
            picked.compared_names(language, reads).map(|name| name.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(compared(Language::Python, &Reads::default()), ["EL", "PYTHONPATH"]);
        assert_eq!(compared(Language::Ruby, &Reads::default()), ["EL"]);
        let reads = read(&["PYTHONPATH", "FM", "TERM", "HOME"], Vec::new());
        assert_eq!(compared(Language::Ruby, &reads), ["EL", "HOME", "PYTHONPATH", "FM", "TERM"]);
    }

    #[test]
    fn what_is_read_early_is_seen_early() {
        let all = [("A", "1"), ("B", "1"), ("TERM", "vt")];
        let early = |told: &[u8]| environment(&all, &[], &[]).with_seen_early(&Entries::parse(told));
        assert_eq!(names(early(b"").seen()), [""; 0]);
        assert_eq!(names(early(b"variable=B\0variable=TERM\0variable=C\0").seen()), ["B", "TERM"]);
        let all = early(b"variables=*\0");
        assert_eq!((names(all.seen()), names(all.shown())), (vec!["A", "B"], vec!["A", "B", "TERM"]));
    }

    #[test]
    fn all_may_be_seen_but_what_is_volatile() {
        let all =
            [("A", "1"), ("PWD", "/"), ("TERM", "vt"), ("SNAPBOOT_LOG", "1"), ("RAILS_ENV", "test"), ("TOKEN", "x")];
        assert_eq!(names(environment(&all, &["*"], &[]).seen()), ["A", "RAILS_ENV", "TOKEN"]);
        assert_eq!(names(environment(&all, &["*", "TERM"], &[]).seen()), ["A", "RAILS_ENV", "TERM", "TOKEN"]);
        assert_eq!(names(environment(&all, &["*"], &["A"]).seen()), ["RAILS_ENV", "TOKEN"]);
        assert_eq!(names(environment(&all, &["A"], &["*"]).shown()), ["A", "RAILS_ENV", "PWD", "TERM"]);
        assert_eq!(names(environment(&all, &[], &["RAILS_ENV"]).shown()), ["A", "PWD", "TERM"]);
    }

    #[test]
    fn secrets_that_were_read_are_found() {
        let found = |environment: &Environment, reads: &Reads| {
            environment.findings(reads).into_iter().map(|finding| finding.text).collect::<Vec<_>>()
        };
        let all = [("DATABASE_URL", "db://me:pass@host"), ("OTHER_KEY", "y"), ("EL", "1"), ("RAILS_ENV", "test")];
        let reads = read(&["DATABASE_URL", "RAILS_ENV", "EL", "MISSING"], Vec::new());
        let text = found(&environment(&all, &[], &[]), &reads);
        assert_eq!(text.len(), 1);
        assert!(text[0].starts_with("DATABASE_URL is set, and /app/settings.py:3 reads it"), "{text:?}");
        assert!(text[0].contains("--env DATABASE_URL"), "{text:?}");
        assert_eq!(found(&environment(&all, &["DATABASE_URL"], &[]), &reads), [""; 0]);
        assert_eq!(found(&environment(&all, &[], &["DATABASE_URL"]), &reads), [""; 0]);
        let wholes = || {
            read(
                &[],
                vec![FullEnvironmentRead::Read("/app.py:1".to_owned()), FullEnvironmentRead::Passed("git".to_owned())],
            )
        };
        let text = found(&environment(&all, &[], &[]), &wholes());
        let expected =
            "/app.py:1 reads the whole environment, but this looks like secrets and is withheld from the boot: \
                        DATABASE_URL, OTHER_KEY;";
        assert!(text[0].starts_with(expected), "{text:?}");
        assert_eq!(found(&environment(&all, &["*"], &[]), &wholes()), [""; 0]);
        assert_eq!(found(&environment(&all, &["OTHER_KEY"], &["*"]), &wholes()), [""; 0]);
        assert_eq!(found(&environment(&all[2..], &[], &[]), &wholes()), [""; 0]);
    }

    #[test]
    fn what_was_read_is_compared() {
        let made_in = environment(&[("TZ", "UTC"), ("PATH", "/bin"), ("TERM", "vt")], &[], &["QUIET"]);
        let reads = read(&["TZ", "MISSING", "QUIET", "LINES"], Vec::new());
        let holds = |entries: &[&[u8]]| holds(&made_in, Language::Python, &reads, entries);
        assert!(holds(&[b"TZ=UTC", b"PATH=/other", b"DATABASE_URL=x", b"QUIET=1", b"TERM=xterm", b"COLUMNS=1"]));
        assert!(!holds(&[b"TZ=CET"]) && !holds(&[]) && !holds(&[b"TZ=UTC", b"MISSING="]));
        assert!(!holds(&[b"TZ=UTC", b"LINES=1"]), "read by name");
        let whole = read(&[], vec![FullEnvironmentRead::Read("/app.py:1".to_owned())]);
        let made_in = environment(&[("A", "1"), ("B_KEY", "1"), ("TERM", "vt")], &[], &["QUIET"]);
        let holds = |entries: &[&[u8]]| super::tests::holds(&made_in, Language::Python, &whole, entries);
        assert!(holds(&[b"A=1", b"PWD=/", b"TERM=xterm"]) && holds(&[b"A=1", b"B_KEY=2"]));
        assert!(!holds(&[b"A=1", b"B=1"]) && !holds(&[b"A=2"]) && !holds(&[]));
        let whole = read(&["TERM"], vec![FullEnvironmentRead::Read("/app.py:1".to_owned())]);
        assert!(!super::tests::holds(&made_in, Language::Python, &whole, &[b"A=1", b"TERM=xterm"]));
    }

    #[test]
    fn the_freezer_comes_before_the_users_preloaded_libraries() {
        let picked = environment(&[("LD_PRELOAD", "/lib/jemalloc.so")], &[], &[]);
        let all = picked.for_boot(OsStr::new("/f.so"), OsStr::new("/dir"));
        let preload = all.iter().filter(|(name, _)| name == "LD_PRELOAD").map(|(_, value)| value).collect::<Vec<_>>();
        assert_eq!(preload, ["/f.so:/lib/jemalloc.so"]);
    }

    #[test]
    fn an_image_compares_equal_in_the_environment_it_was_made_in() {
        let all = [("LANG", "C.UTF-8"), ("LC_ALL", ""), ("RAILS_ENV", "production"), ("LD_DEBUG", "x")];
        let made_in = environment(&all, &["EL"], &[]);
        let reads = read(&["RAILS_ENV"], Vec::new());
        let compare = |entries: &[&[u8]]| holds(&made_in, Language::Ruby, &reads, entries);
        assert!(compare(&[b"LANG=C.UTF-8", b"LC_ALL=", b"RAILS_ENV=production", b"LD_DEBUG=x", b"TZ=UTC"]));
        assert!(
            compare(&[b"LC_ALL=C.UTF-8", b"RAILS_ENV=production", b"LD_DEBUG=x"]),
            "the same locale by another name"
        );
        assert!(
            compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production", b"LD_DEBUG=x", b"PYTHONPATH=/x", b"HOME=/h"]),
            "the other language's, and one that nobody read"
        );
        assert!(!compare(&[b"LANG=C", b"RAILS_ENV=production", b"LD_DEBUG=x"]), "another locale");
        assert!(!compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=test", b"LD_DEBUG=x"]), "another value");
        assert!(!compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production"]), "a variable is gone");
        assert!(
            !compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production", b"LD_DEBUG=x", b"RUBYOPT=-w"]),
            "a variable appeared"
        );
        assert!(
            !compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production", b"LD_DEBUG=x", b"EL=0"]),
            "a named variable appeared"
        );
    }
}
