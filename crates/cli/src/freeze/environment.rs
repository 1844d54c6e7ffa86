//! Which environment variables the boot sees, and which of them become inputs: one table for both.
//!
//! What is not in the table is withheld from the boot. A variable becomes an input when the boot has read it ([`super::reads`]), set or
//! not; those that act on a runtime or on C code without anybody noticing always do. One that is set, withheld and read nevertheless
//! would make an image that differs from an ordinary start: the freeze is refused then. Volatile variables (PWD, TERM, SSH_* and the
//! like, see [`inputs::environment::VOLATILE`]) are never inputs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use image::{presence, Item, Section, TablesWriter, Variable};
use inputs::environment::{is_volatile, matches, ALL};

use super::reads::{Reads, Whole};
use super::report::Finding;
use crate::runtime::Language;

/// What the table says about a variable that the boot sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// An input of every image.
    Always,
    /// An input of every image of a Python program.
    Python,
    /// An input of every image of a Ruby program.
    Ruby,
    /// An input when the boot has read it.
    WhenRead,
}

/// Name patterns (a final `*` stands for anything), the rule, and who reads them.
const TABLE: &[(&str, Rule)] = {
    use Rule::{Always, Python, Ruby, WhenRead};
    &[
        // The user's session. Python's site and RubyGems look below HOME before any program runs.
        ("HOME", Always),
        ("PATH", WhenRead),
        ("USER", WhenRead),
        ("LOGNAME", WhenRead),
        // The three names that Python's tempfile and Ruby's Dir.tmpdir keep.
        ("TMPDIR", WhenRead),
        ("TEMP", WhenRead),
        ("TMP", WhenRead),
        // Locale and time zone, which the front ends renew after a thaw. LC_CTYPE, which they cannot renew, is always an input: as the
        // first of LC_ALL, LC_CTYPE and LANG that is not empty.
        ("LANG", WhenRead),
        ("LC_*", WhenRead),
        ("LANGUAGE", WhenRead),
        ("TZ", WhenRead),
        ("TZDIR", Always),
        ("XDG_CACHE_HOME", WhenRead),
        ("XDG_CONFIG_DIRS", WhenRead),
        ("XDG_CONFIG_HOME", WhenRead),
        ("XDG_DATA_DIRS", WhenRead),
        ("XDG_DATA_HOME", WhenRead),
        ("XDG_STATE_HOME", WhenRead),
        // The loader and the C library, which ask nobody.
        ("LD_*", Always),
        ("GLIBC_TUNABLES", Always),
        ("LOCPATH", Always),
        ("GCONV_PATH", Always),
        // Allocators: glibc's, jemalloc's, mimalloc's, tcmalloc's.
        ("MALLOC_*", Always),
        ("MIMALLOC_*", Always),
        ("TCMALLOC_*", Always),
        // OpenSSL.
        ("OPENSSL_*", Always),
        ("SSL_CERT_*", Always),
        // Python. Which virtual environment it is follows from the interpreter, not from what was activated.
        ("PYTHON*", Python),
        ("VIRTUAL_ENV", WhenRead),
        ("CONDA_PREFIX", WhenRead),
        ("CONDA_DEFAULT_ENV", WhenRead),
        ("DJANGO_*", WhenRead),
        ("FLASK_*", WhenRead),
        ("MPLBACKEND", WhenRead),
        ("MPLCONFIGDIR", WhenRead),
        // Numerical libraries: those whose C code goes through the environment by itself, and those that ask for a name.
        ("GOMP_*", Always),
        ("KMP_*", Always),
        ("MKL_*", Always),
        ("OMP_*", Always),
        ("BLIS_*", WhenRead),
        ("GOTO_NUM_THREADS", WhenRead),
        ("NPY_*", WhenRead),
        ("NUMEXPR_*", WhenRead),
        ("OPENBLAS_*", WhenRead),
        // Ruby. Bundler goes through the environment for its own.
        ("RUBY*", Ruby),
        ("BUNDLE_*", Ruby),
        ("GEM_*", WhenRead),
        ("BUNDLER_*", WhenRead),
        ("BOOTSNAP_*", WhenRead),
        ("RACK_ENV", WhenRead),
        ("RAILS_*", WhenRead),
    ]
};

/// The locale that text is read and written in: the first of these that is not empty.
const LC_CTYPE: &str = "LC_ALL:LC_CTYPE:LANG";

/// The table in words, for `snapboot freeze --help`.
pub fn help() -> String {
    let names = |wanted| {
        let rows = TABLE.iter().filter(|(_, rule)| *rule == wanted).map(|(pattern, _)| *pattern);
        rows.collect::<Vec<_>>().join(" ")
    };
    format!(
        "Environment of the boot:\n  \
         Seen, and always inputs (with another value, COMMAND runs in the ordinary way): {}, and the locale of text: the first of \
         LC_ALL, LC_CTYPE and LANG that is not empty.\n  \
         The same for Python programs: {}.\n  \
         The same for Ruby programs: {}.\n  \
         Seen, and inputs when the boot has read them: {}.\n  \
         Never inputs, and withheld: {}.\n  \
         All others are withheld, unless --env names them; a program that reads one of them while it boots cannot be frozen where it \
         is set. When the image runs, the program sees its whole environment.",
        names(Rule::Always),
        names(Rule::Python),
        names(Rule::Ruby),
        names(Rule::WhenRead),
        inputs::environment::VOLATILE.join(" ")
    )
}

/// Why these names for `--env` and `--withhold` cannot be meant; None when they can.
pub fn mistake(named: &[String], withheld: &[String]) -> Option<String> {
    let is_pattern =
        |name: &str| !name.is_empty() && !name.strip_suffix('*').unwrap_or(name).contains(['=', '*', ':', '\0']);
    if let Some(name) = named.iter().find(|name| !is_pattern(name)) {
        return Some(format!(
            "--env takes the name of a variable, not \"{name}\". Set its value before the command: NAME=VALUE snapboot freeze \
             --env NAME ..."
        ));
    }
    if let Some(name) = withheld.iter().find(|name| !is_pattern(name)) {
        return Some(format!("--withhold takes the name of a variable, not \"{name}\"."));
    }
    if let Some(name) = withheld.iter().find(|name| named.contains(name)) {
        return Some(format!("{name} is named by --env and by --withhold; take one of them out."));
    }
    let acts = |name: &&String| rule(OsStr::new(name.as_str())).is_some_and(|rule| rule != Rule::WhenRead);
    withheld.iter().find(acts).map(|name| {
        format!("{name} acts on the runtime when it starts, so --withhold cannot name it. Unset it: env -u {name} snapboot freeze ...")
    })
}

/// The environment of a freeze.
pub struct Environment {
    /// Name and value of what the boot sees.
    seen: Vec<(OsString, OsString)>,
    /// Names of what is set and not seen, and would be an input if it were read.
    missed: Vec<OsString>,
    /// Names of what is set and withheld because the user said so.
    withheld: Vec<OsString>,
    /// Names and patterns from `--env`.
    named: Vec<String>,
    /// Names and patterns from `--withhold`.
    patterns_withheld: Vec<String>,
    /// What is set for the boot, in place of what is seen, and is no input.
    boot_only: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Picks what the boot sees from `all`, with the names given by `--env` and without those given by `--withhold`.
    pub fn pick(all: impl Iterator<Item = (OsString, OsString)>, named: &[String], withheld: &[String]) -> Self {
        let mut picked = Environment {
            seen: Vec::new(),
            missed: Vec::new(),
            withheld: Vec::new(),
            named: named.to_vec(),
            patterns_withheld: withheld.to_vec(),
            boot_only: Vec::new(),
        };
        for (name, value) in all {
            // What is named by itself wins over a pattern that it is under.
            let is_in = |names: &[String]| names.iter().any(|wanted| name == wanted.as_str());
            let is_withheld = is_in(withheld) || (is_under(withheld, &name) && rule(&name).is_none());
            if is_withheld && !is_in(named) {
                picked.withheld.push(name);
            } else if is_under(named, &name) || rule(&name).is_some() {
                picked.seen.push((name, value));
            } else if !is_volatile(name.as_bytes()) {
                picked.missed.push(name);
            }
        }
        picked.seen.sort();
        picked.missed.sort();
        picked
    }

    /// Sets these variables for the boot alone.
    pub fn with_boot_only(self, boot_only: Vec<(OsString, OsString)>) -> Self {
        Environment { boot_only, ..self }
    }

    /// Names of the variables that are set for the boot alone.
    pub fn boot_only_names(&self) -> impl Iterator<Item = &OsStr> {
        self.boot_only.iter().map(|(name, _)| name.as_os_str())
    }

    /// Names of all variables that are set, but for the volatile ones and those that the user wants withheld.
    pub fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.seen.iter().map(|(name, _)| name.as_os_str()).chain(self.missed.iter().map(OsString::as_os_str))
    }

    /// Why an image would not do what an ordinary start does: what is set, and was read, and was withheld.
    pub fn findings(&self, reads: &Reads) -> Vec<Finding> {
        let mut findings = Vec::new();
        for name in self.missed.iter().filter(|name| reads.variables.contains_key(*name)) {
            let place = reads.variables[name].as_deref().map(shown);
            let reader = place.as_deref().unwrap_or("C code of the program");
            let name = name.to_string_lossy();
            findings.push(Finding::new(
                "variable",
                format!(
                    "{name} is set, and {reader} reads it, but it is withheld from the boot; let the boot see it, and make it an \
                     input, with --env {name}; or have it taken for unset with --withhold {name}"
                ),
            ));
        }
        if !self.missed.is_empty() && !reads.wholes.is_empty() {
            let who: Vec<String> = reads.wholes.iter().map(Whole::sentence).collect();
            let missed: Vec<_> = self.missed.iter().map(|name| name.to_string_lossy()).collect();
            findings.push(Finding::new(
                "variable",
                format!(
                    "{} the whole environment, but this is withheld from the boot: {}; let the boot see what the program needs with \
                     --env NAME, or everything with --env '*'; and have the rest taken for unset with --withhold NAME, or \
                     --withhold '*'",
                    who.join(", "),
                    missed.join(", ")
                ),
            ));
        }
        findings
    }

    fn withholds_all(&self) -> bool {
        self.patterns_withheld.iter().any(|pattern| pattern.as_bytes() == ALL)
    }

    /// What the boot sees.
    pub fn seen(&self) -> &[(OsString, OsString)] {
        &self.seen
    }

    /// The value of a variable that the boot sees.
    pub fn value(&self, name: &str) -> Option<&OsStr> {
        self.seen.iter().find(|(seen, _)| seen == name).map(|(_, value)| value.as_os_str())
    }

    /// The environment to start the runtime with: what the boot sees, with the freezer in front of LD_PRELOAD.
    pub fn for_boot(&self, freezer: &OsStr, control_dir: &OsStr) -> Vec<(OsString, OsString)> {
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
        self.seen.iter().map(|(name, _)| name.as_os_str()).filter(move |name| self.compares(language, reads, name))
    }

    /// Writes what is compared: a digest of each value that is set, what was read and not set, the locale, and the patterns.
    pub fn write(&self, language: Language, reads: &Reads, tables: &mut TablesWriter) {
        let mut rows: BTreeMap<&[u8], (u32, [u8; 16])> = BTreeMap::new();
        let table = TABLE.iter().filter(|(_, rule)| rule.compares(language)).map(|(pattern, _)| pattern.as_bytes());
        // Those of the table that are not set need no rows.
        let is_in_table = |name: &OsStr| rule(name).is_some_and(|rule| rule.compares(language));
        for name in reads.variables.keys().filter(|name| !is_in_table(name)) {
            let wanted = if is_under(&self.patterns_withheld, name) { presence::ANY } else { presence::UNSET };
            rows.insert(name.as_bytes(), (wanted, [0; 16]));
        }
        for name in &self.withheld {
            rows.insert(name.as_bytes(), (presence::ANY, [0; 16]));
        }
        for (name, value) in self.seen.iter().filter(|(name, _)| self.compares(language, reads, name)) {
            rows.insert(name.as_bytes(), (presence::SET, image::digest(value.as_bytes())));
        }
        let locale = LC_CTYPE.split(':').find_map(|name| self.value(name).filter(|value| !value.is_empty()));
        let present = if locale.is_some() { presence::SET } else { presence::UNSET };
        rows.insert(LC_CTYPE.as_bytes(), (present, locale.map_or([0; 16], |value| image::digest(value.as_bytes()))));
        for (name, (present, value)) in rows {
            let name = tables.text(name);
            tables.push(Section::Variables, &Variable { name, value, present, reserved: 0 });
        }
        let whole = (!reads.wholes.is_empty() && !self.withholds_all()).then_some(ALL);
        for pattern in table.chain(self.named.iter().map(String::as_bytes)).chain(whole) {
            let text = tables.text(pattern);
            tables.push(Section::Patterns, &Item { text });
        }
    }

    fn compares(&self, language: Language, reads: &Reads, name: &OsStr) -> bool {
        !reads.wholes.is_empty()
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
fn shown(place: &str) -> String {
    let here = std::env::current_dir().ok();
    let relative = here.as_ref().and_then(|here| place.strip_prefix(here.to_str()?)?.strip_prefix('/'));
    relative.unwrap_or(place).to_owned()
}

impl Whole {
    fn sentence(&self) -> String {
        match self {
            Whole::Read(place) => format!("{} reads", shown(place)),
            Whole::Passed(program) => format!("the boot starts {program} with"),
        }
    }
}

impl Rule {
    fn compares(self, language: Language) -> bool {
        match self {
            Rule::Always => true,
            Rule::Python => language == Language::Python,
            Rule::Ruby => language == Language::Ruby,
            Rule::WhenRead => false,
        }
    }
}

/// What the table says about a name: its first matching row.
fn rule(name: &OsStr) -> Option<Rule> {
    let row = TABLE.iter().find(|(pattern, _)| inputs::environment::matches(pattern.as_bytes(), name.as_bytes()));
    row.map(|(_, rule)| *rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(all: &[(&str, &str)], named: &[&str], withheld: &[&str]) -> Environment {
        let all = all.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        Environment::pick(all, &owned(named), &owned(withheld))
    }

    fn read(names: &[&str], wholes: Vec<Whole>) -> Reads {
        let variables = names.iter().map(|name| (OsString::from(name), Some("/app/settings.py:3".to_owned())));
        Reads { variables: variables.collect(), wholes, facts: Vec::new() }
    }

    fn seen(environment: &Environment) -> Vec<&str> {
        environment.seen().iter().map(|(name, _)| name.to_str().unwrap()).collect()
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
    fn only_the_table_and_named_variables_are_seen() {
        let all = [("HOME", "/h"), ("PYTHONPATH", "/p"), ("SECRET", "x"), ("PWD", "/"), ("TERM", "vt"), ("EL", "1")];
        let picked = environment(&all, &["EL"], &[]);
        assert_eq!(seen(&picked), ["EL", "HOME", "PYTHONPATH"]);
        let compared = |language, reads: &Reads| {
            picked.compared_names(language, reads).map(|name| name.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(compared(Language::Python, &Reads::default()), ["EL", "HOME", "PYTHONPATH"]);
        assert_eq!(compared(Language::Ruby, &Reads::default()), ["EL", "HOME"]);
        assert_eq!(compared(Language::Ruby, &read(&["PYTHONPATH"], Vec::new())), ["EL", "HOME", "PYTHONPATH"]);
    }

    #[test]
    fn all_may_be_seen_but_what_is_volatile() {
        let all = [("A", "1"), ("PWD", "/"), ("TERM", "vt"), ("SNAPBOOT_LOG", "1"), ("RAILS_ENV", "test")];
        assert_eq!(seen(&environment(&all, &["*"], &[])), ["A", "RAILS_ENV"]);
        assert_eq!(seen(&environment(&all, &["*", "TERM"], &[])), ["A", "RAILS_ENV", "TERM"]);
        assert_eq!(seen(&environment(&all, &["*"], &["A"])), ["RAILS_ENV"]);
        assert_eq!(seen(&environment(&all, &["A"], &["*"])), ["A", "RAILS_ENV"]);
        assert_eq!(seen(&environment(&all, &[], &["RAILS_ENV"])), [""; 0]);
    }

    #[test]
    fn names_that_cannot_be_meant_are_refused() {
        let mistake = |named: &[&str], withheld: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
            super::mistake(&owned(named), &owned(withheld)).unwrap_or_default()
        };
        assert_eq!(mistake(&["EL", "AWS_*", "*"], &["B", "C_*"]), "");
        assert!(mistake(&["EL=1"], &[]).contains("--env takes the name"));
        assert!(mistake(&["*X"], &[]).contains("--env takes the name"));
        assert!(mistake(&[], &[""]).contains("--withhold takes the name"));
        assert!(mistake(&["A"], &["A"]).contains("by --env and by --withhold"));
        assert!(mistake(&[], &["PYTHONPATH"]).contains("env -u PYTHONPATH"));
        assert_eq!(mistake(&[], &["RAILS_ENV"]), "");
    }

    #[test]
    fn what_was_read_and_withheld_is_found() {
        let found = |environment: &Environment, reads: &Reads| {
            environment.findings(reads).into_iter().map(|finding| finding.text).collect::<Vec<_>>()
        };
        let all = [("DATABASE_URL", "x"), ("OTHER", "y"), ("TERM", "vt"), ("RAILS_ENV", "test")];
        let reads = read(&["DATABASE_URL", "RAILS_ENV", "MISSING"], Vec::new());
        let text = found(&environment(&all, &[], &[]), &reads);
        assert_eq!(text.len(), 1);
        assert!(text[0].starts_with("DATABASE_URL is set, and /app/settings.py:3 reads it"), "{text:?}");
        assert!(text[0].contains("--env DATABASE_URL"), "{text:?}");
        assert_eq!(found(&environment(&all, &["DATABASE_URL"], &[]), &reads), [""; 0]);
        assert_eq!(found(&environment(&all, &[], &["DATABASE_URL"]), &reads), [""; 0]);
        let wholes = || read(&[], vec![Whole::Read("/app.py:1".to_owned()), Whole::Passed("git".to_owned())]);
        let text = found(&environment(&all, &[], &[]), &wholes());
        let expected =
            "/app.py:1 reads, the boot starts git with the whole environment, but this is withheld from the boot: \
                        DATABASE_URL, OTHER;";
        assert!(text[0].starts_with(expected), "{text:?}");
        assert_eq!(found(&environment(&all, &["*"], &[]), &wholes()), [""; 0]);
        assert_eq!(found(&environment(&all, &["OTHER"], &["*"]), &wholes()), [""; 0]);
    }

    #[test]
    fn what_was_read_is_compared() {
        let made_in = environment(&[("TZ", "UTC"), ("PATH", "/bin")], &[], &["QUIET"]);
        let reads = read(&["TZ", "MISSING", "QUIET"], Vec::new());
        let holds = |entries: &[&[u8]]| holds(&made_in, Language::Python, &reads, entries);
        assert!(holds(&[b"TZ=UTC", b"PATH=/other", b"DATABASE_URL=x", b"QUIET=1"]));
        assert!(!holds(&[b"TZ=CET"]) && !holds(&[]) && !holds(&[b"TZ=UTC", b"MISSING="]));
        let whole = read(&[], vec![Whole::Read("/app.py:1".to_owned())]);
        let made_in = environment(&[("A", "1")], &["*"], &["QUIET"]);
        let holds = |entries: &[&[u8]]| super::tests::holds(&made_in, Language::Python, &whole, entries);
        assert!(holds(&[b"A=1", b"PWD=/", b"TERM=vt"]));
        assert!(!holds(&[b"A=1", b"B=1"]) && !holds(&[b"A=2"]) && !holds(&[]));
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
        let all = [("LANG", "C.UTF-8"), ("LC_ALL", ""), ("RAILS_ENV", "production"), ("HOME", "/h")];
        let made_in = environment(&all, &["EL"], &[]);
        let reads = read(&["RAILS_ENV"], Vec::new());
        let compare = |entries: &[&[u8]]| holds(&made_in, Language::Ruby, &reads, entries);
        assert!(compare(&[b"LANG=C.UTF-8", b"LC_ALL=", b"RAILS_ENV=production", b"HOME=/h", b"TZ=UTC"]));
        assert!(compare(&[b"LC_ALL=C.UTF-8", b"RAILS_ENV=production", b"HOME=/h"]), "the same locale by another name");
        assert!(
            compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production", b"HOME=/h", b"PYTHONPATH=/x"]),
            "the other language's"
        );
        assert!(!compare(&[b"LANG=C", b"RAILS_ENV=production", b"HOME=/h"]), "another locale");
        assert!(!compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=test", b"HOME=/h"]), "another value");
        assert!(!compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production"]), "a variable is gone");
        assert!(
            !compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production", b"HOME=/h", b"RUBYOPT=-w"]),
            "a variable appeared"
        );
        assert!(
            !compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production", b"HOME=/h", b"EL=0"]),
            "a named variable appeared"
        );
    }
}
