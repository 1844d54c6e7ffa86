//! The environment of one freeze: what the boot sees of it. [`super::environment_inputs`] lists what an image depends
//! on.
//!
//! The boot starts with the variables named by the table of [`super::variables`] or by `--env`. It gets all others on
//! demand: front end and freezer find them in the file `environment` of the control directory, and set a variable in
//! the process when the program looks it up. So values that it never looks up get into no image. A variable becomes an
//! input when the boot reads it ([`super::reads`]), set or not. A variable that looks like a secret has a placeholder
//! ([`super::secrets`]), which each thaw replaces by the real value. Volatile variables (PWD, TERM, SSH_* and the like,
//! see [`inputs::environment::VOLATILE`]) count only when they are read by name.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use inputs::environment::{is_own, is_volatile, matches, ALL};

use crate::entries::Entries;
use crate::events::{Event, Kind};
use crate::secret_names::is_secret;
use crate::secrets::{Fiction, Form, Secret};
use crate::variables::{rule, Rule};

/// Name and value of a variable.
type Pair = (OsString, OsString);

/// The environment of a freeze.
#[derive(Clone)]
pub struct Environment {
    /// What the boot sees from its start.
    seen: Vec<Pair>,
    /// What the boot gets on demand.
    on_demand: Vec<Pair>,
    /// The secrets, for which the boot sees placeholders.
    pub secrets: Vec<Secret>,
    /// The set of placeholders.
    fiction: Fiction,
    /// Whether an image also compares the form of secrets.
    pub compares_forms: bool,
    /// Names of the set variables that the user withholds.
    pub withheld: Vec<OsString>,
    /// Names and patterns from `--env`.
    pub named: Vec<String>,
    /// Names and patterns from `--withhold`.
    pub patterns_withheld: Vec<String>,
    /// What a recipe sets for the boot only, and is not an input.
    boot_only: Vec<Pair>,
    /// What only the libraries of the boot see, in place of the user's: neither the program nor what it starts sees it.
    for_libraries: Vec<Pair>,
}

impl Environment {
    /// Selects what the boot sees from `all`: `named` comes from `--env`, `withheld` from `--withhold`.
    pub fn pick(all: impl Iterator<Item = Pair>, named: &[String], withheld: &[String]) -> Self {
        let mut picked = Environment {
            seen: Vec::new(),
            on_demand: Vec::new(),
            secrets: Vec::new(),
            fiction: Fiction::made_up(),
            compares_forms: false,
            withheld: Vec::new(),
            named: named.to_vec(),
            patterns_withheld: withheld.to_vec(),
            boot_only: Vec::new(),
            for_libraries: Vec::new(),
        };
        for (name, value) in all.filter(|(name, _)| !is_own(name.as_bytes())) {
            // An exact name takes precedence over a pattern that matches it.
            let is_in = |names: &[String]| names.iter().any(|wanted| name == wanted.as_str());
            let is_withheld = is_in(withheld) || (is_under(withheld, &name) && rule(&name).is_none());
            let rule = rule(&name);
            if is_withheld && !is_in(named) {
                picked.withheld.push(name);
            } else if is_under(named, &name) {
                picked.seen.push((name, value));
            } else if is_secret(&name, &value) {
                let secret = Secret::new(name.clone(), value);
                let pairs =
                    if rule.is_some_and(Rule::affects_runtime) { &mut picked.seen } else { &mut picked.on_demand };
                pairs.push((name, picked.fiction.value(&secret)));
                picked.secrets.push(secret);
            } else if rule.is_some() {
                picked.seen.push((name, value));
            } else {
                picked.on_demand.push((name, value));
            }
        }
        picked.seen.sort();
        picked.on_demand.sort();
        picked.secrets.sort_by(|one, other| one.name.cmp(&other.name));
        picked
    }

    /// The same with other placeholders.
    pub fn with_other_fiction(&self, form: Form) -> Self {
        let mut other = Environment { fiction: self.fiction.with_form(form), ..self.clone() };
        for (name, value) in other.seen.iter_mut().chain(&mut other.on_demand) {
            if let Some(secret) = self.secrets.iter().find(|secret| secret.name == *name) {
                *value = other.fiction.value(secret);
            }
        }
        other
    }

    /// The same with other values of some variables; None unsets a variable.
    pub fn with_values(&self, values: &[(OsString, Option<OsString>)]) -> Self {
        let mut other = self.clone();
        for (name, value) in values {
            let is_seen = other.seen.iter().any(|(seen, _)| seen == name) || rule(name).is_some();
            let pairs = if is_seen { &mut other.seen } else { &mut other.on_demand };
            pairs.retain(|(other, _)| other != name);
            pairs.extend(value.iter().map(|value| (name.clone(), value.clone())));
            pairs.sort();
        }
        other
    }

    /// Whether a boot with another value of this variable is possible: the user has not named it, and it is not a
    /// secret.
    pub fn may_change(&self, name: &OsStr) -> bool {
        let is_named = is_under(&self.named, name) || is_under(&self.patterns_withheld, name);
        !is_named && !self.is_secret(name) && self.names_for_boot().all(|own| own != name)
    }

    /// Whether a variable is a secret.
    pub fn is_secret(&self, name: &OsStr) -> bool {
        self.secrets.iter().any(|secret| secret.name == name)
    }

    /// The same, but the boot sees from its start what it read too early to get on demand, according to `reads`.
    pub fn with_seen_early(&self, reads: &Entries) -> Self {
        let mut picked = self.clone();
        let reads = Event::parse_all(reads);
        let reads_all = reads.iter().any(|event| event.kind == Kind::AllVariables);
        let is_read = |(name, _): &Pair| {
            reads.iter().any(|event| event.is_of_variable(name)) || (reads_all && !is_volatile(name.as_bytes()))
        };
        let (early, later) = picked.on_demand.into_iter().partition(is_read);
        picked.on_demand = later;
        picked.seen.extend::<Vec<_>>(early);
        picked.seen.sort();
        picked
    }

    /// The same, but the libraries of the boot see these variables, in place of all that earlier calls have set.
    pub fn with_for_libraries(mut self, for_libraries: Vec<Pair>) -> Self {
        self.for_libraries = for_libraries;
        self
    }

    /// The same with these variables also set for the boot, unless the user has set them.
    pub fn with_more_for_boot(mut self, more: &[Pair]) -> Self {
        let unset =
            more.iter().filter(|(name, _)| self.value(&name.to_string_lossy()).is_none()).cloned().collect::<Vec<_>>();
        self.boot_only.extend(unset);
        self
    }

    /// Names of the variables that the user has not set to what the boot, or its libraries, see.
    pub fn names_for_boot(&self) -> impl Iterator<Item = &OsStr> {
        self.boot_only.iter().chain(&self.for_libraries).map(|(name, _)| name.as_os_str())
    }

    fn is_for_libraries(&self, name: &OsStr) -> bool {
        self.for_libraries.iter().any(|(own, _)| own == name)
    }

    /// Names of all set variables but the volatile and the withheld ones.
    pub fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.visible().map(|(name, _)| name.as_os_str()).filter(|name| !is_volatile(name.as_bytes()))
    }

    /// What the boot sees from its start.
    pub fn seen(&self) -> &[Pair] {
        &self.seen
    }

    /// What the boot sees from its start or on demand: a start with these is fresh.
    pub fn visible(&self) -> impl Iterator<Item = &Pair> {
        self.seen.iter().chain(&self.on_demand)
    }

    /// The value of a variable that the boot sees from its start or on demand.
    pub fn value(&self, name: &str) -> Option<&OsStr> {
        self.visible().find(|(seen, _)| seen == name).map(|(_, value)| value.as_os_str())
    }

    /// Whether C code read the variable's initial value, not one that the program has set.
    pub fn has_given(&self, event: &Event) -> bool {
        let digest = |value: &OsStr| -> String {
            image::digest(value.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
        };
        let given = event.subject.to_str().and_then(|name| self.value(name));
        event.kind != Kind::Variable || event.detail == given.map(digest).unwrap_or_default()
    }

    /// The files `environment` and `on_demand` of the control directory: the variables that the boot gets on demand,
    /// and their names with offset and size of each value in the first file. Code that reads all of that file has the
    /// values in its memory. The first file ends with the variables for libraries, and with what the boot sees from its start
    /// in their place.
    pub fn on_demand(&self) -> (Entries, Entries) {
        let (mut entries, mut index, mut offset) = (Entries::default(), Entries::default(), 0);
        for (name, value) in &self.on_demand {
            let key = if is_volatile(name.as_bytes()) { "volatile" } else { "variable" };
            offset += key.len() + 1 + name.len() + 1;
            entries.push(key, [name.as_os_str(), value].join(OsStr::new("=")));
            index.push(key, [OsStr::new(&format!("{offset},{}", value.len())), name].join(OsStr::new(",")));
            offset += value.len() + 1;
        }
        let mut push = |key, (name, value): &Pair| entries.push(key, [name.as_os_str(), value].join(OsStr::new("=")));
        self.for_libraries.iter().for_each(|pair| push("internal", pair));
        self.seen.iter().filter(|(name, _)| self.is_for_libraries(name)).for_each(|pair| push("variable", pair));
        (entries, index)
    }

    /// The environment of the runtime: what the boot sees, with the freezer first in LD_PRELOAD.
    pub fn for_boot(&self, freezer: &OsStr, control_dir: &OsStr) -> Vec<Pair> {
        let mut preload = freezer.to_owned();
        if let Some(own) = self.value("LD_PRELOAD").filter(|own| !own.is_empty()) {
            preload.push(":");
            preload.push(own);
        }
        let is_replaced = |name: &OsStr| name == "LD_PRELOAD" || self.names_for_boot().any(|own| own == name);
        let mut all: Vec<_> = self.seen.iter().filter(|(name, _)| !is_replaced(name)).cloned().collect();
        all.extend(self.boot_only.iter().chain(&self.for_libraries).cloned());
        all.push(("LD_PRELOAD".into(), preload));
        all.push(("SNAPBOOT_FREEZE_DIR".into(), control_dir.to_owned()));
        // Binds all symbols now, so a thaw need not look up those that the boot has not called yet. The freezer removes
        // the variable.
        if self.value("LD_BIND_NOW").is_none() {
            all.push(("LD_BIND_NOW".into(), "snapboot".into()));
        }
        all
    }
}

/// Whether one of these names or patterns matches. The pattern for all names excludes the volatile ones.
pub fn is_under(patterns: &[String], name: &OsStr) -> bool {
    let is_meant =
        |pattern: &[u8]| matches(pattern, name.as_bytes()) && !(pattern == ALL && is_volatile(name.as_bytes()));
    patterns.iter().any(|pattern| is_meant(pattern.as_bytes()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::events::tests::read_by;

    pub fn environment(all: &[(&str, &str)], named: &[&str], withheld: &[&str]) -> Environment {
        let all = all.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        Environment::pick(all, &owned(named), &owned(withheld))
    }

    pub fn names<'a>(pairs: impl IntoIterator<Item = &'a Pair>) -> Vec<&'a str> {
        pairs.into_iter().map(|(name, _)| name.to_str().unwrap()).collect()
    }

    #[test]
    fn what_is_read_early_is_seen_early() {
        let all = [("A", "1"), ("B", "1"), ("TERM", "vt")];
        let early = |read: &[(Kind, &str)]| environment(&all, &[], &[]).with_seen_early(&read_by("/a.py", read));
        assert_eq!(names(early(&[]).seen()), [""; 0]);
        let read = ["B", "TERM", "C"].map(|name| (Kind::Variable, name));
        assert_eq!(names(early(&read).seen()), ["B", "TERM"]);
        let all = early(&[(Kind::AllVariables, "*")]);
        assert_eq!((names(all.seen()), names(all.visible())), (vec!["A", "B"], vec!["A", "B", "TERM"]));
    }

    #[test]
    fn all_may_be_seen_but_what_is_volatile() {
        let all =
            [("A", "1"), ("PWD", "/"), ("TERM", "vt"), ("SNAPBOOT_LOG", "1"), ("RAILS_ENV", "test"), ("TOKEN", "x")];
        assert_eq!(names(environment(&all, &["*"], &[]).seen()), ["A", "RAILS_ENV", "TOKEN"]);
        assert_eq!(names(environment(&all, &["*", "TERM"], &[]).seen()), ["A", "RAILS_ENV", "TERM", "TOKEN"]);
        assert_eq!(names(environment(&all, &["*"], &["A"]).seen()), ["RAILS_ENV", "TOKEN"]);
        assert_eq!(names(environment(&all, &["A"], &["*"]).visible()), ["A", "RAILS_ENV", "PWD", "TERM"]);
        assert_eq!(names(environment(&all, &[], &["RAILS_ENV"]).visible()), ["A", "PWD", "TERM", "TOKEN"]);
    }

    #[test]
    fn the_freezer_comes_before_the_users_preloaded_libraries() {
        let picked = environment(&[("LD_PRELOAD", "/lib/jemalloc.so")], &[], &[]);
        let all = picked.for_boot(OsStr::new("/f.so"), OsStr::new("/dir"));
        let preload = all.iter().filter(|(name, _)| name == "LD_PRELOAD").map(|(_, value)| value).collect::<Vec<_>>();
        assert_eq!(preload, ["/f.so:/lib/jemalloc.so"]);
    }
}
