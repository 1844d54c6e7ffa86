//! The policy for variables: which of them the boot sees from its start, which always count, and which the user must
//! name.
//!
//! | list | what it decides |
//! | --- | --- |
//! | `TABLE` here, `variables` of recipes | which variables a boot sees from its start, and when they count |
//! | the lists in secret_names.rs | for which variables a boot sees placeholders |
//! | `VOLATILE` in inputs/environment.rs | variables that do not count if a reader takes the whole environment |
//! | `reads` and `programs` of recipes (exceptions.rs) | readers that keep nothing of what they read, or only part of it |
//! | `--env`, `--withhold` (environment.rs) | the user's choice, which overrides all others |
//!
//! No list has variables that never count: a program that reads a variable by name bases a decision on it. Only
//! Snapboot's own variables do not count (`is_own` in inputs/environment.rs).
//!
//! environment_inputs.rs applies these lists and writes the inputs of an image. The boot gets all variables outside the
//! table on demand, so values that it never looks up get into no image.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use inputs::environment::matches;
use runtime::Language;

/// What the table says about a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// An input of every image.
    Always,
    /// An input of every image of a Python program.
    Python,
    /// An input of every image of a Ruby program.
    Ruby,
    /// An input when the boot has read it.
    WhenRead,
}

/// Name patterns (a final `*` matches anything), the rule, and who reads them.
const TABLE: &[(&str, Rule)] = {
    use Rule::{Always, Python, Ruby, WhenRead};
    &[
        // The user's session.
        ("HOME", WhenRead),
        ("PATH", WhenRead),
        ("USER", WhenRead),
        ("LOGNAME", WhenRead),
        // Python's tempfile and Ruby's Dir.tmpdir keep these three.
        ("TMPDIR", WhenRead),
        ("TEMP", WhenRead),
        ("TMP", WhenRead),
        // LC_CTYPE's locale counts whether or not the boot reads it (`LOCALE` in inputs/environment.rs), unless each
        // thaw renews it (renewals.rs). The other categories count if the program calls setlocale (`locale` in the
        // freezer's libc_hooks.rs).
        ("LANG", WhenRead),
        ("LC_*", WhenRead),
        ("LANGUAGE", WhenRead),
        // If only the runtime read it, at its own start, the front ends renew the time zone: `RENEWED_VARIABLES` in
        // exceptions.rs.
        ("TZ", WhenRead),
        ("TZDIR", Always),
        ("XDG_CACHE_HOME", WhenRead),
        ("XDG_CONFIG_DIRS", WhenRead),
        ("XDG_CONFIG_HOME", WhenRead),
        ("XDG_DATA_DIRS", WhenRead),
        ("XDG_DATA_HOME", WhenRead),
        ("XDG_STATE_HOME", WhenRead),
        // The loader and the C library, whose reads are not recorded.
        ("LD_*", Always),
        ("GLIBC_TUNABLES", Always),
        ("LOCPATH", Always),
        ("GCONV_PATH", Always),
        // The allocator of the C library, and others that take over its names.
        ("MALLOC_*", Always),
        // Python. Each thaw may renew some of them (renewals.rs). The virtual environment follows from the interpreter,
        // not from activation.
        ("PYTHON*", Python),
        // Names the interpreter in its place, from 3.11 on (Modules/getpath.py).
        ("__PYVENV_LAUNCHER__", Python),
        ("VIRTUAL_ENV", WhenRead),
        ("CONDA_PREFIX", WhenRead),
        ("CONDA_DEFAULT_ENV", WhenRead),
        // Ruby.
        ("RUBY*", Ruby),
        ("GEM_*", WhenRead),
    ]
};

/// The table, with the rows of recipes.
fn rows() -> impl Iterator<Item = (&'static str, Rule)> {
    let of_recipes = recipes::all().flat_map(|recipe| {
        let always = match recipe.rules.language {
            None => Rule::Always,
            Some(Language::Python) => Rule::Python,
            Some(Language::Ruby) => Rule::Ruby,
        };
        let variables = &recipe.rules.variables;
        let always = variables.always.iter().map(move |pattern| (pattern.as_str(), always));
        always.chain(variables.when_read.iter().map(|pattern| (pattern.as_str(), Rule::WhenRead)))
    });
    TABLE.iter().copied().chain(of_recipes)
}

/// Name patterns of what counts in every image of this language.
pub fn always_compared(language: Language) -> impl Iterator<Item = &'static str> {
    rows().filter(move |(_, rule)| rule.compares(language)).map(|(pattern, _)| pattern)
}

/// The table as text, for `snapboot freeze --help`.
pub fn help() -> String {
    let names = |wanted| {
        let rows = rows().filter(|(_, rule)| *rule == wanted).map(|(pattern, _)| pattern);
        rows.collect::<Vec<_>>().join(" ")
    };
    format!(
        "Environment of the boot:\n  \
         Seen, and always inputs (with another value, COMMAND runs in the ordinary way): {}, and the locale of text (the first of \
         LC_ALL, LC_CTYPE and LANG that is not empty) as far as a thaw cannot renew it.\n  \
         The same for Python programs: {} (but each thaw obeys PYTHONUNBUFFERED, PYTHONDONTWRITEBYTECODE and PYTHONIOENCODING, unless the boot \
         has read them).\n  \
         The same for Ruby programs: {}.\n  \
         Seen, and inputs when the boot has read them: {}.\n  \
         All others: seen when the boot reads them, and inputs then. A program that reads the whole environment depends on all of it (of Python: \
         on what it picks by name), but for {}.\n  \
         What looks like a secret (*TOKEN*, *PASSWORD*, *SECRET*, *_KEY and the like, an address with a password, a private key, a long \
         random value) gets into no image, unless --env names it: the boot has a made-up value, and each thaw puts the real one in its \
         place; that it is set is an input. A program that computes something of it while it boots cannot be frozen where it is set.\n  \
         When the image runs, the program sees its whole environment.",
        names(Rule::Always),
        names(Rule::Python),
        names(Rule::Ruby),
        names(Rule::WhenRead),
        inputs::environment::VOLATILE.join(" ")
    )
}

/// Why `--env` and `--withhold` cannot have a name.
#[derive(Debug, PartialEq, Eq)]
pub enum Mistake {
    /// `--env` has no name or pattern of a variable.
    NoNameForEnv(String),
    /// `--withhold` has none.
    NoNameToWithhold(String),
    /// Both have the same.
    InBoth(String),
    /// The runtime reads it at its start.
    ActsOnRuntime(String),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mistake::NoNameForEnv(name) => write!(
                f,
                "--env takes the name of a variable, not \"{name}\". Set its value before the command: NAME=VALUE snapboot freeze \
                 --env NAME ..."
            ),
            Mistake::NoNameToWithhold(name) => write!(f, "--withhold takes the name of a variable, not \"{name}\"."),
            Mistake::InBoth(name) => write!(f, "{name} is named by --env and by --withhold; take one of them out."),
            Mistake::ActsOnRuntime(name) => write!(
                f,
                "{name} acts on the runtime when it starts, so --withhold cannot name it. Unset it: env -u {name} snapboot freeze ..."
            ),
        }
    }
}

/// Fails if `--env` and `--withhold` cannot have these names.
pub fn check(named: &[String], withheld: &[String]) -> Result<(), Mistake> {
    let is_pattern =
        |name: &str| !name.is_empty() && !name.strip_suffix('*').unwrap_or(name).contains(['=', '*', ':', '\0']);
    let acts = |name: &str| rule(OsStr::new(name)).is_some_and(Rule::affects_runtime);
    let find = |names: &[String], is: &dyn Fn(&String) -> bool| names.iter().find(|name| is(name)).cloned();
    let mistake = find(named, &|name| !is_pattern(name))
        .map(Mistake::NoNameForEnv)
        .or_else(|| find(withheld, &|name| !is_pattern(name)).map(Mistake::NoNameToWithhold))
        .or_else(|| find(withheld, &|name| named.contains(name)).map(Mistake::InBoth))
        .or_else(|| find(withheld, &|name| acts(name)).map(Mistake::ActsOnRuntime));
    mistake.map_or(Ok(()), Err)
}

impl Rule {
    /// Whether it affects some runtime at its start, read or not.
    pub fn affects_runtime(self) -> bool {
        self != Rule::WhenRead
    }

    /// Whether it makes a variable an input of this language's images, read or not.
    pub fn compares(self, language: Language) -> bool {
        match self {
            Rule::Always => true,
            Rule::Python => language == Language::Python,
            Rule::Ruby => language == Language::Ruby,
            Rule::WhenRead => false,
        }
    }
}

/// The first matching row of the table.
pub fn rule(name: &OsStr) -> Option<Rule> {
    rows().find(|(pattern, _)| matches(pattern.as_bytes(), name.as_bytes())).map(|(_, rule)| rule)
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_that_cannot_be_meant_are_refused() {
        let mistake = |named: &[&str], withheld: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
            super::check(&owned(named), &owned(withheld)).err().map_or(String::new(), |mistake| mistake.to_string())
        };
        assert_eq!(mistake(&["EL", "AWS_*", "*"], &["B", "C_*"]), "");
        assert!(mistake(&["EL=1"], &[]).contains("--env takes the name"));
        assert!(mistake(&["*X"], &[]).contains("--env takes the name"));
        assert!(mistake(&[], &[""]).contains("--withhold takes the name"));
        assert!(mistake(&["A"], &["A"]).contains("by --env and by --withhold"));
        assert!(mistake(&[], &["PYTHONPATH"]).contains("env -u PYTHONPATH"));
        assert_eq!(mistake(&[], &["RAILS_ENV"]), "");
    }
}
