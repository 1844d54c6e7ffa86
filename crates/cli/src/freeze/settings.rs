//! The keys of a project's settings, and the words of the command line that they stand for.

use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::path::Path;

use clap::{Arg, ArgAction, CommandFactory, Parser};
use failure::{Failure, Result};
use toml::de::{DeTable, DeValue};
use toml::Spanned;

use super::mistakes::{preloads, training};
use crate::arguments::{Arguments, Subcommand};

/// The only key that is not an option.
const COMMAND: &str = "command";
/// A table that only the user's own settings may have.
const REMOTE: &str = "remote";
/// Options that belong to a call and not to a project.
const OF_A_CALL: [&str; 3] = ["help", "json", "quiet"];
/// The minimum similarity of a mistyped name and the suggested one. clap has the same limit.
const ALIKE: f64 = 0.7;

/// The contents of a file.
#[derive(Debug)]
pub struct Settings {
    pub command: Vec<OsString>,
    /// Long options without their hyphens, and the words of each.
    pub options: Vec<(String, Vec<OsString>)>,
}

/// Reads the settings of a file: those in a table named `path`. None if it has no such table.
pub fn read(file: &Path, text: &str, path: &[&str]) -> Result<Option<Settings>> {
    // A file of other tools is not parsed any further.
    if path.last().is_some_and(|name| !text.contains(name)) {
        return Ok(None);
    }
    let source = Source { file, text };
    let document = DeTable::parse(text).map_err(|error| {
        source.wrong(error.span().unwrap_or_default(), &format!("this is no TOML: {}.", error.message().trim()))
    })?;
    let mut table = document.get_ref();
    for name in path {
        let Some(value) = table.get(*name) else { return Ok(None) };
        table = value.get_ref().as_table().ok_or_else(|| {
            let what = format!("a table [{}] was expected, and {} was there.", path.join("."), kind(value.get_ref()));
            source.wrong(value.span(), &what)
        })?;
    }
    source.settings(table).map(Some)
}

/// The source text, for messages.
struct Source<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    /// The failure for a mistake in it.
    fn wrong(&self, span: Range<usize>, what: &str) -> Failure {
        let before = self.text.get(..span.start).unwrap_or_default();
        Failure::refusal(format!("{}:{}: {what}", self.file.display(), before.matches('\n').count() + 1))
    }

    fn settings(&self, table: &DeTable<'_>) -> Result<Settings> {
        let own = Arguments::command();
        let own = own.find_subcommand("freeze").expect("a subcommand");
        let options: Vec<(&str, &Arg)> = own
            .get_arguments()
            .filter_map(|arg| Some((arg.get_long()?, arg)))
            .filter(|(long, _)| !OF_A_CALL.contains(long))
            .collect();
        let mut settings = Settings { command: Vec::new(), options: Vec::new() };
        // In the order of the file, so that the first mistake is reported.
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let name: &str = key.get_ref();
            if name == COMMAND {
                settings.command = self.command(value)?;
            } else if name == REMOTE {
                let own = Path::new("~/.config").join(store::remote_settings::FILE);
                return Err(self.wrong(
                    key.span(),
                    &format!(
                        "[remote] belongs into your own settings, {}: a project must not say whose images this machine runs.",
                        own.display()
                    ),
                ));
            } else if let Some((_, option)) = options.iter().find(|(long, _)| *long == name) {
                settings.options.push((name.to_owned(), self.option(name, option, value)?));
            } else {
                let names = options.iter().map(|(long, _)| *long).chain([COMMAND]);
                return Err(self.wrong(key.span(), &unknown(name, names)));
            }
        }
        if settings.command.is_empty() {
            return Err(Failure::refusal(format!(
                "{} has no key command, and no COMMAND was given: it is what you would type to start the program, as in command = \
                 \"python app.py\"",
                self.file.display()
            )));
        }
        Ok(settings)
    }

    fn command(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<OsString>> {
        let wrong = |what: &str| {
            let what = format!("command should be what you would type to start the program, as in \"python app.py\", or a list of its words; {what}.");
            self.wrong(value.span(), &what)
        };
        let words = match value.get_ref() {
            DeValue::String(line) => {
                shlex::split(line).ok_or_else(|| wrong("there is an opening quote without its end"))?
            }
            value => strings(value).ok_or_else(|| wrong(&format!("{} was there", kind(value))))?,
        };
        if words.is_empty() {
            return Err(wrong("it is empty"));
        }
        Ok(words.into_iter().map(OsString::from).collect())
    }

    /// The words of an option.
    fn option(&self, name: &str, option: &Arg, value: &Spanned<DeValue<'_>>) -> Result<Vec<OsString>> {
        let wrong = |expected: &str| {
            let what = format!("{name} should be {expected}, and {} was there.", kind(value.get_ref()));
            self.wrong(value.span(), &what)
        };
        let values = match (option.get_action(), value.get_ref()) {
            (ArgAction::SetTrue, DeValue::Boolean(is_set)) => {
                return Ok(is_set.then(|| format!("--{name}").into()).into_iter().collect());
            }
            (ArgAction::SetTrue, _) => return Err(wrong("true or false")),
            (_, DeValue::String(text)) => vec![text.to_string()],
            (ArgAction::Append, value) => strings(value).ok_or_else(|| wrong("a string or a list of strings"))?,
            (_, DeValue::Integer(number)) => vec![number.to_string()],
            _ => return Err(wrong("a string")),
        };
        let words: Vec<OsString> = values.iter().map(|value| format!("--{name}={value}").into()).collect();
        check(&words).map_err(|mistake| self.wrong(value.span(), &mistake.to_string()))?;
        Ok(words)
    }
}

/// Why an option is not valid.
enum Mistake {
    /// Its form.
    Form(clap::Error),
    /// Its value.
    Value(Failure),
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mistake::Form(error) => {
                let said = error.to_string();
                let said = said.split("\n\nFor more information").next().unwrap_or_default();
                let words: Vec<&str> = said.trim_start_matches("error: ").split_whitespace().collect();
                f.write_str(&words.join(" "))
            }
            Mistake::Value(failure) => failure.fmt(f),
        }
    }
}

/// Checks whether an option is valid.
fn check(option: &[OsString]) -> std::result::Result<(), Mistake> {
    let words = ["snapboot", "freeze"].map(OsString::from).into_iter().chain(option.iter().cloned());
    let parsed = Arguments::try_parse_from(words).map_err(Mistake::Form)?;
    let Subcommand::Freeze(freeze) = parsed.subcommand else { return Ok(()) };
    preloads(&freeze.preload).map_err(Mistake::Value)?;
    training(&freeze.train, freeze.no_train).map(drop).map_err(Mistake::Value)
}

/// The message for an unknown key.
fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    let nearest = names.iter().map(|known| (strsim::jaro(name, known), known)).max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((alike, known)) if alike > ALIKE => format!("unknown key {name}; did you mean {known}?"),
        _ => format!("unknown key {name}; expected one of {}.", names.join(", ")),
    }
}

fn strings(value: &DeValue<'_>) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.get_ref().as_str().map(str::to_owned)).collect()
}

fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date or a time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str) -> String {
        read(Path::new("snapboot.toml"), text, &[]).unwrap_err().message
    }

    #[test]
    fn keys_are_words_of_the_command_line() {
        let text =
            "command = \"python 'my app.py'\"\noutput = 'app.img'\npreload = ['flask,json', 'x']\nno-recipe = true\n\
                    check-pages = false\ntrain = '--version'\nvariants = 2\n";
        let settings = read(Path::new("snapboot.toml"), text, &[]).unwrap().unwrap();
        assert_eq!(settings.command, ["python", "my app.py"]);
        let words: Vec<OsString> = settings.options.into_iter().flat_map(|(_, words)| words).collect();
        let expected = [
            "--output=app.img",
            "--preload=flask,json",
            "--preload=x",
            "--no-recipe",
            "--train=--version",
            "--variants=2",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn a_table_among_those_of_other_tools() {
        let read = |text| read(Path::new("pyproject.toml"), text, &["tool", "snapboot"]);
        assert!(read("[tool.black]\nline-length = 3\n").unwrap().is_none());
        assert!(read("[project]\ndependencies = ['snapboot']\n").unwrap().is_none());
        assert!(read("not = = toml").unwrap().is_none(), "other tools tell of that");
        let settings = read("[tool.snapboot]\ncommand = ['python', 'a b']\n").unwrap().unwrap();
        assert_eq!(settings.command, ["python", "a b"]);
        let said = read("\n[tool]\nsnapboot = 3\n").unwrap_err().message;
        assert_eq!(said, "pyproject.toml:3: a table [tool.snapboot] was expected, and an integer was there.");
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, expected) in [
            ("command = 'x'\npolcy = 'check'", ":2: unknown key polcy; did you mean policy?"),
            ("no_recipe = true", ":1: unknown key no_recipe; did you mean no-recipe?"),
            ("\n\nzzz = 1", ":3: unknown key zzz; expected one of at, check-pages, command, cpu,"),
            ("json = true", ":1: unknown key json; "),
            (
                "policy = 'chek'",
                ":1: invalid value 'chek' for '--policy <POLICY>' [possible values: check, content, trust]",
            ),
            ("policy = true", ":1: policy should be a string, and true or false was there."),
            ("env = [1]", ":1: env should be a string or a list of strings, and a list was there."),
            ("no-recipe = 'yes'", ":1: no-recipe should be true or false, and a string was there."),
            ("variants = 0", ":1: invalid value '0' for '--variants <K>'"),
            ("preload = ['a,,b']", ":1: --preload has an empty name"),
            ("train = [\"'\"]", "has an opening quote without its end"),
            ("command = 1", ":1: command should be what you would type"),
            ("command = \"python '\"", "there is an opening quote without its end"),
            ("command = ''", "it is empty"),
            ("policy = 'check'", "snapboot.toml has no key command"),
            ("command = 'x'\ncommand = 'y'", ":2: this is no TOML: "),
            ("command = ", ":1: this is no TOML: "),
            ("command = 'x'\n[remote]\nurl = 's3://x'", ":2: [remote] belongs into your own settings"),
        ] {
            let said = mistake(text);
            assert!(said.starts_with("snapboot.toml") && said.contains(expected), "{text}: {said}");
        }
    }
}
