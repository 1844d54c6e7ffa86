//! The keys of a recipe.toml, and their checks. docs/reference.md documents them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use inputs::cpu::Level;
use runtime::Language;
use serde::Deserialize;

use crate::contradiction::Contradiction;
use crate::freeze_point::FreezePoint;
use crate::pattern::Pattern;

/// A recipe.
pub struct Recipe {
    /// The name of its folder.
    pub folder: String,
    /// The path of its folder, for messages.
    pub place: PathBuf,
    /// The content of its recipe.toml.
    pub rules: Rules,
    /// Its code for the front end of its language.
    pub code: Option<String>,
}

/// The content of a recipe.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// The usual name of the library.
    pub name: String,
    /// The language of the programs that use it; none for a C library that programs of any language may load.
    #[serde(default, deserialize_with = "language")]
    pub language: Option<Language>,
    /// An application that a framework's own script starts.
    pub application: Option<Application>,
    /// Where programs are frozen whose boot their arguments decide.
    #[serde(default)]
    pub freeze_points: Vec<FreezePoint>,
    /// Rules about reads that do not count, or count only in part.
    #[serde(default)]
    pub reads: Vec<Read>,
    /// Programs that read only the named variables of their environment.
    #[serde(default)]
    pub programs: Vec<Program>,
    /// Variables that the boot sees from its start.
    #[serde(default)]
    pub variables: Variables,
    /// Threads that are restarted when they are needed: for Python the top-level package whose code runs in them, for
    /// Ruby the end of the path of the file that starts them.
    #[serde(default)]
    pub restarted_threads: Vec<String>,
    /// Remedies for findings that name the library.
    #[serde(default)]
    pub remedies: Vec<Remedy>,
    /// Variables that limit the library to the instructions of a CPU level.
    #[serde(default)]
    pub cpu: Vec<Cpu>,
    /// Plugins that must not be loaded early.
    pub late_plugins: Option<LatePlugins>,
}

/// What to load of an application that a framework's own script starts. `preload` and `environment` may contain
/// `{folder}` for the script's folder, and `{NAME}` for a group of `text`.
///
/// It applies to a script of a certain name and text, and loads nothing early that the script decides by its arguments:
/// an image is for all arguments, and guards name those that need an ordinary start.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// The end of the script's path.
    pub script: String,
    /// A file that must exist, relative to the script's folder.
    pub beside: Option<String>,
    /// A regular expression that matches the script's text.
    pub text: Pattern,
    /// The preloads, as in `--preload`.
    pub preload: Vec<String>,
    /// Training runs if the user names none: the arguments of each, with which the program changes nothing.
    #[serde(default)]
    pub train: Vec<String>,
    /// What these runs do only once: names in `warm_ups` of the recipe's python.py.
    #[serde(default)]
    pub warm_up: Vec<String>,
    /// Variables to set during the boot, unless they are set.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Arguments that need an ordinary start.
    #[serde(default)]
    pub guards: Vec<String>,
    /// A file that the script looks up in the current directory.
    pub here: Option<Here>,
}

/// A file of the current directory that determines what is loaded first of the application. Only a command without
/// arguments is certain to read it.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Here {
    /// Its name.
    pub file: String,
    /// Features that are loaded before, so that the file may require them ahead of the application's own.
    #[serde(default)]
    pub loaded: Vec<String>,
    /// Files that must not exist, neither at the freeze nor at a start, since they may lead to another application.
    #[serde(default)]
    pub without: Vec<String>,
    /// Variables with which a start may have another application or another environment.
    #[serde(default)]
    pub unset: Vec<String>,
    /// The only arguments of a start that do not affect the application: `-q` and `--quiet` alone, `-p:` and `--port:`
    /// with a value, attached (`-p9292`, `--port=9292`) or in the next argument.
    #[serde(default)]
    pub options: Vec<String>,
}

/// A read of a file during the boot on which an image need not depend, or only in part.
#[derive(Debug, Deserialize)]
#[serde(try_from = "ReadKeys")]
pub struct Read {
    /// The end of the reader's path; empty for C code, whose callers are unknown.
    pub reader: String,
    /// What it reads.
    pub of: ReadOf,
    /// Whether this only means that the reader may be part of training. Another start shows what an image depends on.
    pub only_in_trials: bool,
}

/// What a reader reads.
#[derive(Debug, PartialEq, Eq)]
pub enum ReadOf {
    /// A variable. The reader keeps nothing of its value that the front end does not renew.
    Variable(String),
    /// The whole environment. Only variables that match these patterns count.
    Environment(Vec<String>),
    /// A fact about the machine, the user or the process.
    Fact {
        /// Its name in the front ends, such as `cwd`.
        word: String,
        /// One of `inputs::facts::fact_kind`.
        kind: u32,
        /// The rule holds unless the reader found this variable unset.
        unless_unset: Option<String>,
    },
    /// Something that belongs to a start and to which no image can be bound, by its name in the front ends (`sys.argv`,
    /// `ARGV`).
    AtStart {
        /// Its name.
        what: String,
        /// Patterns of arguments of which the reader would have kept something: starts with one of these are ordinary.
        guards: Vec<String>,
    },
}

/// A read as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadKeys {
    reader: String,
    variable: Option<String>,
    environment: Option<Vec<String>>,
    fact: Option<String>,
    unless_unset: Option<String>,
    at_start: Option<String>,
    guards: Option<Vec<String>>,
    #[serde(default)]
    only_in_trials: bool,
}

/// A program that another one executes during its boot.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Its file name.
    pub program: String,
    /// Patterns of the variables that it reads.
    pub environment: Vec<String>,
}

/// Variables that a boot sees from its start, as patterns (a final `*` matches anything); it gets all others on demand.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variables {
    /// Variables that C code reads without being observed: inputs of every image (of programs of the recipe's
    /// language).
    #[serde(default)]
    pub always: Vec<String>,
    /// Inputs if the boot reads them.
    #[serde(default)]
    pub when_read: Vec<String>,
}

/// A remedy that replaces the general one of a finding. It changes the text of a refusal, not what is refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// A part of the finding that identifies the library.
    pub finding: String,
    /// The remedy.
    pub remedy: String,
}

/// A variable that limits CPU features. It is set for the boot only.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Its name.
    pub variable: String,
    /// Prefixes of the names of the libraries that query the CPU and honour it.
    pub libraries: Vec<String>,
    /// Its value for x86-64-v2.
    pub v2: String,
    /// Its value for x86-64-v3.
    pub v3: String,
    /// Its value for x86-64-v4.
    pub v4: String,
    /// Whether the library picks instructions only once, when it is loaded, and computes for long with what it picked: an
    /// image for a lower level then has a second process for the level of this CPU.
    #[serde(default)]
    pub once: bool,
    /// The words in which the library keeps the CPU's features. A thaw renews them.
    pub words: Option<CpuWords>,
}

/// Words of 32 bits in which a library keeps the CPU's features, and from which it picks instructions at each use.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuWords {
    /// How the code of the library's function begins that fills the words. It gets their address, stores the third and
    /// all that follow, and returns the first two; it uses nothing but the CPU.
    #[serde(deserialize_with = "code")]
    pub function: Vec<u8>,
    /// The number of words that the function may write.
    pub count: u32,
    /// Bits that the library adds to the first two words.
    pub always: u64,
    /// The first four words with the variable's value for x86-64-v2.
    pub v2: [u32; 4],
    /// The same for x86-64-v3.
    pub v3: [u32; 4],
    /// The same for x86-64-v4.
    pub v4: [u32; 4],
}

/// Plugins that a program must load itself; it complains at each start if they were loaded before.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatePlugins {
    /// The end of the path of a file that identifies the loaded program.
    pub loaded: String,
    /// The group of entry points with the plugins.
    pub group: String,
    /// A text in plugins that may be loaded early.
    pub unless: String,
    /// The warning, with `{plugins}` for their names.
    pub warning: String,
}

/// A mistake in a recipe.toml.
#[derive(Debug)]
pub struct Mistake {
    /// Its line, from 1.
    pub line: usize,
    /// What was expected, and what was found.
    pub what: String,
}

impl Rules {
    /// Parses a recipe.toml that a test has validated.
    pub(crate) fn parse_valid(text: &str) -> Result<Rules, Mistake> {
        toml::from_str(text).map_err(|error| {
            let what = error.message().trim().replace('\n', " ");
            Mistake { line: line(text, error.span().unwrap_or_default().start), what }
        })
    }

    /// Parses and validates a recipe.toml.
    pub fn read(text: &str) -> Result<Rules, Mistake> {
        let rules = Rules::parse_valid(text)?;
        if let Some(what) = rules.contradiction() {
            return Err(Mistake { line: 1, what: what.to_string() });
        }
        let of_points = rules.freeze_points.iter().flat_map(FreezePoint::patterns);
        rules.application.iter().map(|of| &of.text).chain(of_points).try_for_each(|pattern| pattern.check(text))?;
        Ok(rules)
    }

    /// A contradiction between its keys.
    fn contradiction(&self) -> Option<Contradiction> {
        let needs_language = self.application.is_some()
            || !self.freeze_points.is_empty()
            || !self.reads.is_empty()
            || !self.restarted_threads.is_empty();
        if needs_language && self.language.is_none() {
            return Some(Contradiction::NoLanguage);
        }
        if self
            .freeze_points
            .iter()
            .any(|point| point.at.is_empty() || point.script.is_none() && point.module.is_none())
        {
            return Some(Contradiction::NoPlace);
        }
        let has_here = self.application.as_ref().is_some_and(|application| application.here.is_some());
        (has_here && self.language == Some(Language::Python)).then_some(Contradiction::HereForPython)
    }

    /// The warm-ups of its application.
    pub fn warm_ups(&self) -> &[String] {
        self.application.as_ref().map(|application| application.warm_up.as_slice()).unwrap_or_default()
    }
}

impl Cpu {
    /// The value for a level.
    pub fn value(&self, level: Level) -> &str {
        match level {
            Level::V2 => &self.v2,
            Level::V3 => &self.v3,
            Level::V4 => &self.v4,
        }
    }
}

impl CpuWords {
    /// The first four words as they lie in memory after a boot for a level.
    pub fn bytes(&self, level: Level) -> [u8; 16] {
        let words = match level {
            Level::V2 => self.v2,
            Level::V3 => self.v3,
            Level::V4 => self.v4,
        };
        let mut bytes = [0; 16];
        bytes.chunks_exact_mut(4).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
        bytes
    }
}

impl TryFrom<ReadKeys> for Read {
    type Error = Contradiction;

    fn try_from(keys: ReadKeys) -> Result<Read, Contradiction> {
        let of = match (keys.variable, keys.environment, keys.fact, keys.at_start) {
            (Some(name), None, None, None) => ReadOf::Variable(name),
            (None, Some(patterns), None, None) => ReadOf::Environment(patterns),
            (None, None, Some(word), None) => {
                let kind = inputs::facts::kind_from_word(word.as_bytes());
                let Some(kind) = kind else { return Err(Contradiction::NoFact(word)) };
                ReadOf::Fact { word, kind, unless_unset: keys.unless_unset.clone() }
            }
            (None, None, None, Some(what)) => ReadOf::AtStart { what, guards: keys.guards.clone().unwrap_or_default() },
            _ => return Err(Contradiction::NotOneKind),
        };
        if keys.unless_unset.is_some() && !matches!(of, ReadOf::Fact { .. }) {
            return Err(Contradiction::UnsetWithoutFact);
        }
        if keys.guards.is_some() && !matches!(of, ReadOf::AtStart { .. }) {
            return Err(Contradiction::GuardsWithoutStart);
        }
        Ok(Read { reader: keys.reader, of, only_in_trials: keys.only_in_trials })
    }
}

fn language<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Language>, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        "python" => Ok(Some(Language::Python)),
        "ruby" => Ok(Some(Language::Ruby)),
        other => Err(serde::de::Error::custom(format!("unknown language `{other}`, expected `python` or `ruby`"))),
    }
}

/// Bytes of machine code, each as two hexadecimal digits.
fn code<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    /// Fewer bytes may be in a library by chance.
    const LEAST: usize = 16;
    let text = String::deserialize(deserializer)?;
    let bytes = text.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).ok().filter(|_| byte.len() == 2));
    let bytes: Option<Vec<u8>> = bytes.collect();
    bytes.filter(|bytes| bytes.len() >= LEAST).ok_or_else(|| {
        serde::de::Error::custom(format!(
            "expected at least {LEAST} bytes such as `0f a2`, two digits each, found `{text}`"
        ))
    })
}

/// The number of the line that contains a byte of a text, from 1.
pub(crate) fn line(text: &str, byte: usize) -> usize {
    text.get(..byte).unwrap_or_default().matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> String {
        let mistake = Rules::read(text).unwrap_err();
        format!("{}: {}", mistake.line, mistake.what)
    }

    #[test]
    fn a_mistake_is_told_with_its_line_and_what_was_expected() {
        let unknown = mistake("name = 'a'\nlanguage = 'ruby'\nguard = []\n");
        assert!(unknown.starts_with("3: unknown field `guard`, expected one of `name`, `language`"), "{unknown}");
        assert_eq!(mistake("name = 'a'\nlanguage = 'perl'"), "2: unknown language `perl`, expected `python` or `ruby`");
        assert!(mistake("name = 1").starts_with("1: invalid type: integer `1`, expected a string"));
        assert!(mistake("language = 'ruby'").contains("missing field `name`"));
        let read = |keys: &str| mistake(&format!("name = 'a'\nlanguage = 'ruby'\n[[reads]]\nreader = '/a.rb'\n{keys}"));
        assert!(read("").contains("expected one of `variable`, `environment`, `fact` and `at_start`"));
        assert!(read("fact = 'weather'").contains("no fact \"weather\""));
        assert!(read("fact = 'cwd'\nguards = ['x']").contains("`guards` belongs to `at_start`"));
        assert!(mistake("name = 'a'\n[[reads]]\nreader = '/a.rb'\nfact = 'cwd'").contains("missing field `language`"));
        let words =
            "[[cpu]]\nvariable = 'a'\nlibraries = []\nv2 = ''\nv3 = ''\nv4 = ''\n[cpu.words]\nfunction = '0f a'";
        assert!(mistake(&format!("name = 'a'\n{words}")).contains("expected at least 16 bytes such as `0f a2`"));
        let application = "[application]\nscript = 'a'\npreload = []\ntext = '('";
        assert!(
            mistake(&format!("name = 'a'\nlanguage = 'ruby'\n{application}")).starts_with("6: this is not a regular")
        );
        let here = "[application]\nscript = 'a'\npreload = []\ntext = ''\n[application.here]\nfile = 'a'";
        assert!(mistake(&format!("name = 'a'\nlanguage = 'python'\n{here}")).contains("application.here is for Ruby"));
    }
}
