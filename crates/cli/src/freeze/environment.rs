//! Which environment variables the boot sees, and which of them the image compares later: one table for both.
//!
//! What is not in the table is withheld from the boot and is whatever it is when the image runs. PWD, OLDPWD, SHLVL, `_`,
//! TERM, SSH_* and the like are different in every session and are never inputs. Values that a program may keep from its
//! boot on are compared; those that it reads again, or that the front ends renew after a thaw, are not.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use image::{Item, Section, TablesWriter, Variable};

use crate::runtime::Language;

/// What the table says about a variable that the boot sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// The image compares its value when it runs, and whether it is set at all.
    Compared,
    /// Images of Python programs compare it.
    Python,
    /// Images of Ruby programs compare it.
    Ruby,
    /// The boot needs it, but nothing is decided by it for good.
    Seen,
}

/// Name patterns (a final `*` stands for anything), the rule, and who reads them.
const TABLE: &[(&str, Rule)] = {
    use Rule::{Compared, Python, Ruby, Seen};
    &[
        // The user's session.
        ("HOME", Compared),
        ("PATH", Seen),
        ("USER", Seen),
        ("LOGNAME", Seen),
        // The three names that Python's tempfile and Ruby's Dir.tmpdir keep.
        ("TMPDIR", Compared),
        ("TEMP", Compared),
        ("TMP", Compared),
        // Locale and time zone. LC_CTYPE is compared as the first of LC_ALL, LC_CTYPE and LANG that is not empty.
        ("LANG", Seen),
        ("LC_*", Seen),
        ("LANGUAGE", Seen),
        ("TZ", Seen),
        ("TZDIR", Compared),
        ("XDG_CACHE_HOME", Compared),
        ("XDG_CONFIG_DIRS", Compared),
        ("XDG_CONFIG_HOME", Compared),
        ("XDG_DATA_DIRS", Compared),
        ("XDG_DATA_HOME", Compared),
        ("XDG_STATE_HOME", Compared),
        // The loader and the C library.
        ("LD_*", Compared),
        ("GLIBC_TUNABLES", Compared),
        ("LOCPATH", Compared),
        ("GCONV_PATH", Compared),
        // Allocators: glibc's, jemalloc's, mimalloc's, tcmalloc's.
        ("MALLOC_*", Compared),
        ("MIMALLOC_*", Compared),
        ("TCMALLOC_*", Compared),
        // OpenSSL.
        ("OPENSSL_*", Compared),
        ("SSL_CERT_*", Compared),
        // Python. Which virtual environment it is follows from the interpreter, not from what was activated.
        ("PYTHON*", Python),
        ("VIRTUAL_ENV", Seen),
        ("CONDA_PREFIX", Seen),
        ("CONDA_DEFAULT_ENV", Seen),
        ("DJANGO_*", Python),
        ("FLASK_APP", Python),
        ("FLASK_DEBUG", Python),
        ("FLASK_ENV", Python),
        ("FLASK_SKIP_DOTENV", Python),
        ("FLASK_*", Seen),
        ("MPLBACKEND", Python),
        ("MPLCONFIGDIR", Python),
        // Numerical libraries read theirs when they are loaded.
        ("BLIS_*", Compared),
        ("GOMP_*", Compared),
        ("GOTO_NUM_THREADS", Compared),
        ("KMP_*", Compared),
        ("MKL_*", Compared),
        ("NPY_*", Compared),
        ("NUMEXPR_*", Compared),
        ("OMP_*", Compared),
        ("OPENBLAS_*", Compared),
        // Ruby.
        ("RUBY*", Ruby),
        ("GEM_*", Ruby),
        ("BUNDLE_*", Ruby),
        ("BUNDLER_*", Ruby),
        ("BOOTSNAP_*", Ruby),
        ("RACK_ENV", Ruby),
        ("RAILS_*", Ruby),
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
         Compared when the image runs (with another value, COMMAND runs in the ordinary way): {}, and the locale of text: the \
         first of LC_ALL, LC_CTYPE and LANG that is not empty.\n  \
         Compared by images of Python programs: {}.\n  \
         Compared by images of Ruby programs: {}.\n  \
         Seen, but not compared: {}.\n  \
         All others are withheld, unless --env names them; when the image runs, the program sees its whole environment.",
        names(Rule::Compared),
        names(Rule::Python),
        names(Rule::Ruby),
        names(Rule::Seen)
    )
}

/// The environment of a freeze.
pub struct Environment {
    /// Name and value of what the boot sees.
    seen: Vec<(OsString, OsString)>,
    /// Names from `--env`.
    named: Vec<String>,
    /// What is set for the boot, in place of what is seen, and is no input.
    boot_only: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Picks what the boot sees from `all`, with the names given by `--env`.
    pub fn pick(all: impl Iterator<Item = (OsString, OsString)>, named: &[String]) -> Self {
        let is_named = |name: &OsStr| named.iter().any(|wanted| name == wanted.as_str());
        let mut seen: Vec<_> = all.filter(|(name, _)| is_named(name) || rule(name).is_some()).collect();
        seen.sort();
        Environment { seen, named: named.to_vec(), boot_only: Vec::new() }
    }

    /// Sets these variables for the boot alone.
    pub fn with_boot_only(self, boot_only: Vec<(OsString, OsString)>) -> Self {
        Environment { boot_only, ..self }
    }

    /// Names of the variables that are set for the boot alone.
    pub fn boot_only_names(&self) -> impl Iterator<Item = &OsStr> {
        self.boot_only.iter().map(|(name, _)| name.as_os_str())
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
    pub fn compared_names(&self, language: Language) -> impl Iterator<Item = &OsStr> {
        self.seen.iter().map(|(name, _)| name.as_os_str()).filter(move |name| self.compares(language, name))
    }

    /// Writes what is compared: a digest of each value that is set, the locale, and the patterns.
    pub fn write(&self, language: Language, tables: &mut TablesWriter) {
        for (name, value) in self.seen.iter().filter(|(name, _)| self.compares(language, name)) {
            variable(tables, name.as_bytes(), Some(value.as_bytes()));
        }
        let locale = LC_CTYPE.split(':').find_map(|name| self.value(name).filter(|value| !value.is_empty()));
        variable(tables, LC_CTYPE.as_bytes(), locale.map(OsStr::as_bytes));
        let table = TABLE.iter().filter(|(_, rule)| rule.compares(language)).map(|(pattern, _)| *pattern);
        for pattern in table.chain(self.named.iter().map(String::as_str)) {
            let text = tables.text(pattern.as_bytes());
            tables.push(Section::Patterns, &Item { text });
        }
    }

    fn compares(&self, language: Language, name: &OsStr) -> bool {
        self.named.iter().any(|named| name == named.as_str()) || rule(name).is_some_and(|rule| rule.compares(language))
    }
}

impl Rule {
    fn compares(self, language: Language) -> bool {
        match self {
            Rule::Compared => true,
            Rule::Python => language == Language::Python,
            Rule::Ruby => language == Language::Ruby,
            Rule::Seen => false,
        }
    }
}

fn variable(tables: &mut TablesWriter, name: &[u8], value: Option<&[u8]>) {
    let name = tables.text(name);
    let present = u32::from(value.is_some());
    tables.push(
        Section::Variables,
        &Variable { name, value: value.map_or([0; 16], image::digest), present, reserved: 0 },
    );
}

/// What the table says about a name: its first matching row.
fn rule(name: &OsStr) -> Option<Rule> {
    let row = TABLE.iter().find(|(pattern, _)| inputs::environment::matches(pattern.as_bytes(), name.as_bytes()));
    row.map(|(_, rule)| *rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(all: &[(&str, &str)], named: &[&str]) -> Environment {
        let all = all.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Environment::pick(all, &named.iter().map(|name| name.to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn only_the_table_and_named_variables_are_seen() {
        let all = [("HOME", "/h"), ("PYTHONPATH", "/p"), ("SECRET", "x"), ("PWD", "/"), ("TERM", "vt"), ("EL", "1")];
        let picked = environment(&all, &["EL"]);
        let names: Vec<_> = picked.seen().iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, ["EL", "HOME", "PYTHONPATH"]);
        assert_eq!(picked.compared_names(Language::Python).collect::<Vec<_>>(), ["EL", "HOME", "PYTHONPATH"]);
        assert_eq!(picked.compared_names(Language::Ruby).collect::<Vec<_>>(), ["EL", "HOME"]);
    }

    #[test]
    fn what_is_read_again_is_seen_but_not_compared() {
        for name in ["PATH", "TZ", "LANG", "LC_TIME", "FLASK_RUN_PORT", "USER", "VIRTUAL_ENV"] {
            assert_eq!(rule(OsStr::new(name)), Some(Rule::Seen), "{name}");
        }
        for name in ["RAILS_ENV", "RUBYOPT", "GEM_HOME"] {
            assert_eq!(rule(OsStr::new(name)), Some(Rule::Ruby), "{name}");
        }
        for name in ["LD_LIBRARY_PATH", "HOME", "OMP_NUM_THREADS"] {
            assert_eq!(rule(OsStr::new(name)), Some(Rule::Compared), "{name}");
        }
        for name in ["SNAPBOOT_FREEZE_DIR", "SSH_TTY", "_", "SHLVL", "VIRTUAL_ENV_PROMPT", "AWS_SECRET_ACCESS_KEY"] {
            assert_eq!(rule(OsStr::new(name)), None, "{name}");
        }
    }

    #[test]
    fn the_freezer_comes_before_the_users_preloaded_libraries() {
        let picked = environment(&[("LD_PRELOAD", "/lib/jemalloc.so")], &[]);
        let all = picked.for_boot(OsStr::new("/f.so"), OsStr::new("/dir"));
        let preload = all.iter().filter(|(name, _)| name == "LD_PRELOAD").map(|(_, value)| value).collect::<Vec<_>>();
        assert_eq!(preload, ["/f.so:/lib/jemalloc.so"]);
    }

    #[test]
    fn an_image_compares_equal_in_the_environment_it_was_made_in() {
        let all = [("LANG", "C.UTF-8"), ("LC_ALL", ""), ("RAILS_ENV", "production"), ("TZ", "UTC")];
        let mut writer = TablesWriter::new();
        environment(&all, &["EL"]).write(Language::Ruby, &mut writer);
        let bytes = writer.finish();
        let tables = image::Tables::parse_unchecked_sum(&bytes).unwrap();
        let compare = |entries: &[&[u8]]| {
            let entries: Vec<&[u8]> = entries.to_vec();
            inputs::environment::compare(&tables, entries.into_iter()).unwrap().is_none()
        };
        assert!(compare(&[b"LANG=C.UTF-8", b"LC_ALL=", b"RAILS_ENV=production", b"TZ=UTC"]));
        assert!(compare(&[b"LC_ALL=C.UTF-8", b"RAILS_ENV=production", b"TERM=x"]), "the same locale by another name");
        assert!(compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production", b"PYTHONPATH=/x"]), "the other language's");
        assert!(!compare(&[b"LANG=C", b"RAILS_ENV=production"]), "another locale");
        assert!(!compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=test"]), "another value");
        assert!(!compare(&[b"LANG=C.UTF-8"]), "a variable is gone");
        assert!(!compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production", b"RUBYOPT=-w"]), "a variable appeared");
        assert!(!compare(&[b"LANG=C.UTF-8", b"RAILS_ENV=production", b"EL=0"]), "a named variable appeared");
    }
}
