//! Keys of a recipe that contradict each other.

use std::fmt;

/// How keys of a recipe contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Contradiction {
    /// What is there is for one language, and none is named.
    NoLanguage,
    /// What is for Ruby, in a recipe for Python.
    HereForPython,
    /// There is no fact of this name.
    NoFact(String),
    /// A read is of no kind, or of several.
    NotOneKind,
    /// `unless_unset` without a fact.
    UnsetWithoutFact,
    /// A freeze point of no program, or without a function.
    NoPlace,
    /// `guards` without `at_start`.
    GuardsWithoutStart,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Contradiction::NoLanguage => {
                "missing field `language`: expected \"python\" or \"ruby\" beside application, freeze_points, reads or restarted_threads"
            }
            Contradiction::HereForPython => {
                "application.here is for Ruby: Python's front end does not look at the arguments of a start"
            }
            Contradiction::NoFact(word) => {
                return write!(f, "there is no fact {word:?}; expected one such as \"cwd\" or \"terminal\"");
            }
            Contradiction::NotOneKind => "expected one of `variable`, `environment`, `fact` and `at_start`",
            Contradiction::UnsetWithoutFact => "`unless_unset` belongs to `fact`",
            Contradiction::NoPlace => "expected `script` or `module` in freeze_points, and a function in `at`",
            Contradiction::GuardsWithoutStart => "`guards` belongs to `at_start`",
        })
    }
}
