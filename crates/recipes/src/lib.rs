//! What Snapboot knows of single libraries and frameworks. Each has a folder with `recipe.toml` (the keys are the fields
//! of [`Recipe`]) and, if rules do not suffice, `python.py` or `ruby.rb`, which the front end of that language runs.
//!
//! The folders of recipes/ are compiled into the command. A user adds folders of the same form ([`load_own`]); one with
//! the name of a folder of ours replaces it. The judge gets the rules about reads from here, the freeze what to preload,
//! and the front ends their code.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod contradiction;
mod freeze_point;
mod mistake;
mod own;
mod pattern;
mod rules;

use std::sync::OnceLock;

use runtime::Language;

pub use freeze_point::{freeze_point, FreezePoint};
pub use own::{files as own_files, load as load_own};
pub use pattern::Pattern;
pub use rules::{
    Application, Cpu, CpuWords, Here, LatePlugins, Program, Read, ReadOf, Recipe, Remedy, Rules, Variables,
};

/// A folder's name and its files: `recipe.toml`, `python.py`, `ruby.rb`.
type Files<'a> = (&'a str, Option<&'a str>, Option<&'a str>, Option<&'a str>);

/// The folders of recipes/.
const BUILT_IN: &[Files<'_>] = &include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// The user's recipes.
static OWN: OnceLock<Vec<Recipe>> = OnceLock::new();

/// All recipes by the names of their folders; the user's replace ours.
pub fn all() -> impl Iterator<Item = &'static Recipe> {
    mentioning(&[])
}

/// Those whose rules contain all of these texts, and the user's; of ours only these are parsed.
fn mentioning<'a>(texts: &'a [&'a str]) -> impl Iterator<Item = &'static Recipe> + use<'a> {
    static READ: [OnceLock<Recipe>; BUILT_IN.len()] = [const { OnceLock::new() }; BUILT_IN.len()];
    let own = OWN.get().map(Vec::as_slice).unwrap_or_default();
    let is_ours = move |(folder, rules, ..): &Files<'_>| {
        rules.is_some_and(|rules| texts.iter().all(|text| rules.contains(text)))
            && own.iter().all(|recipe| recipe.folder != *folder)
    };
    let ours = BUILT_IN.iter().zip(&READ).filter(move |(files, _)| is_ours(files));
    ours.map(|(files, read)| read.get_or_init(|| built_in(files))).chain(own)
}

fn built_in(&(folder, rules, python, ruby): &Files<'_>) -> Recipe {
    let rules = Rules::parse_valid(rules.unwrap_or_default()).expect("a test reads each recipe");
    let code = python.or(ruby).map(str::to_owned);
    Recipe { folder: folder.to_owned(), place: format!("recipes/{folder}").into(), rules, code }
}

/// The rules about reads of all recipes for a language.
pub fn reads(language: Language) -> impl Iterator<Item = &'static Read> {
    for_language(language).flat_map(|recipe| &recipe.rules.reads)
}

/// Programs that read only known variables.
pub fn programs() -> impl Iterator<Item = &'static Program> {
    all().flat_map(|recipe| &recipe.rules.programs)
}

/// The remedy for a finding that names a library.
pub fn remedy(fact: &str) -> Option<&'static str> {
    let mut remedies = all().flat_map(|recipe| &recipe.rules.remedies);
    remedies.find(|row| fact.contains(&row.finding)).map(|row| row.remedy.as_str())
}

/// Libraries that query the CPU and honour a variable.
pub fn cpu() -> impl Iterator<Item = &'static Cpu> {
    all().flat_map(|recipe| &recipe.rules.cpu)
}

/// The recipes for programs of a language.
pub fn for_language(language: Language) -> impl Iterator<Item = &'static Recipe> {
    all().filter(move |recipe| recipe.rules.language == Some(language))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_folder_has_rules_that_can_be_read() {
        for (folder, rules, python, ruby) in BUILT_IN {
            let rules = rules.unwrap_or_else(|| panic!("{folder} has no recipe.toml"));
            let rules =
                Rules::read(rules).unwrap_or_else(|mistake| panic!("recipes/{folder}/recipe.toml: {mistake:?}"));
            assert!(python.is_none() || rules.language == Some(Language::Python), "{folder}");
            assert!(ruby.is_none() || rules.language == Some(Language::Ruby), "{folder}");
        }
        assert_eq!(all().count(), BUILT_IN.len());
    }

    #[test]
    fn the_example_of_the_document_can_be_read() {
        let document = include_str!("../../../docs/reference.md");
        let section = document.split("\n## Recipes\n").nth(1).unwrap();
        let example = section.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        assert!(Rules::read(example).unwrap().application.unwrap().text.regex().is_match("from acme.cli import main"));
    }

    #[test]
    fn a_library_that_is_known_has_a_remedy_of_its_own() {
        let lock = "holds a POSIX file lock on /h/.cache/x/.onnxruntime/onnxruntime.db, and a thaw would not hold it";
        assert!(remedy(lock).unwrap().starts_with("set ORT_DISABLE_TELEMETRY=1, for the freeze"));
        assert_eq!(remedy("holds a POSIX file lock on /h/x.db"), None);
    }
}
