//! Where a program is frozen that does the most of its boot after it has read its arguments, as servers do.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use runtime::{Language, Main, MainKind};
use serde::Deserialize;

use crate::pattern::Pattern;
use crate::Recipe;

/// A freeze point: what `--at` and `--preload` would say for a program. The program runs up to there, with its arguments, so each
/// condition has to make sure that it gets there before it does anything that nobody has asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreezePoint {
    /// The end of the script's path.
    pub script: Option<String>,
    /// A regular expression that matches the script's text.
    pub(crate) text: Option<Pattern>,
    /// The module of `python -m` that does the same.
    pub module: Option<String>,
    /// A regular expression that matches the arguments, with a space after each.
    pub(crate) arguments: Option<Pattern>,
    /// Arguments with which there is no such point; a final `*` stands for anything.
    #[serde(default)]
    pub without: Vec<String>,
    /// The functions, as `--at` names them: the program is frozen at the one that it calls first.
    pub at: Vec<String>,
    /// The preloads, as in `--preload`.
    #[serde(default)]
    pub preload: Vec<String>,
}

impl FreezePoint {
    /// The regular expressions.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        self.text.iter().chain(&self.arguments)
    }

    /// Whether a program has this freeze point.
    fn is_of(&self, main: &Main) -> bool {
        let is_named = match main.kind {
            MainKind::Script => self.script.as_ref().is_some_and(|end| {
                main.script.as_ref().is_some_and(|script| {
                    script.ends_with(end)
                        && self.text.as_ref().is_none_or(|text| {
                            trust::look::read_to_string(script).is_ok_and(|content| text.regex().is_match(&content))
                        })
                })
            }),
            MainKind::Module => {
                let module = self.module.as_ref().map(|name| OsString::from(format!("{name}.py")));
                module.is_some() && main.module() == module
            }
            MainKind::Bare | MainKind::Code => false,
        };
        is_named && main.arguments().is_some_and(|arguments| self.has(arguments))
    }

    /// Whether the arguments are as they have to be.
    fn has(&self, arguments: &[OsString]) -> bool {
        let joined: Vec<u8> = arguments.iter().flat_map(|word| [word.as_bytes(), b" "].concat()).collect();
        let Ok(joined) = OsString::from_vec(joined).into_string() else { return false };
        let is_excluded = |word: &OsString| {
            self.without.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => word.as_bytes().starts_with(start.as_bytes()),
                None => word == pattern.as_str(),
            })
        };
        self.arguments.as_ref().is_none_or(|pattern| pattern.regex().is_match(&joined))
            && !arguments.iter().any(is_excluded)
    }
}

/// The freeze point of a program, if a recipe names one.
pub fn freeze_point(language: Language, main: &Main) -> Option<(&'static Recipe, &'static FreezePoint)> {
    // Nearly all starts are of programs that no recipe names: then none is parsed.
    let name = match main.kind {
        MainKind::Script => main.script.as_ref()?.file_name()?.to_str()?.to_owned(),
        MainKind::Module => main.module()?.to_str()?.strip_suffix(".py")?.to_owned(),
        MainKind::Bare | MainKind::Code => return None,
    };
    let words = ["freeze_points", &name];
    let recipes = crate::mentioning(&words).filter(|recipe| recipe.rules.language == Some(language));
    let mut points = recipes.flat_map(|recipe| recipe.rules.freeze_points.iter().map(move |point| (recipe, point)));
    points.find(|(_, point)| point.is_of(main))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rules;

    fn point(text: &str) -> FreezePoint {
        let text = format!("name = 'Acme'\nlanguage = 'python'\n[[freeze_points]]\nat = ['acme:serve']\n{text}");
        Rules::read(&text).unwrap().freeze_points.remove(0)
    }

    fn main(words: &[&str]) -> Main {
        let argv = ["python"].iter().chain(words).map(OsString::from).collect();
        Main::split(Language::Python, argv, "/bin".as_ref()).unwrap()
    }

    #[test]
    fn a_script_is_known_by_its_name_and_its_text() {
        let top = tempfile::tempdir().unwrap();
        let (script, other) = (top.path().join("acme"), top.path().join("other"));
        [&script, &other].iter().for_each(|path| std::fs::write(path, "from acme.cli import main\n").unwrap());
        let (script, other) = (script.to_str().unwrap(), other.to_str().unwrap());
        let by_text = point("script = 'acme'\ntext = 'from acme\\.cli import'");
        assert!(by_text.is_of(&main(&[script, "-w", "4"])) && !by_text.is_of(&main(&[other])));
        assert!(!point("script = 'acme'\ntext = 'from other import'").is_of(&main(&[script])));
        assert!(!by_text.is_of(&main(&["-m", "acme"])) && !by_text.is_of(&main(&["-c", "acme"])));
    }

    #[test]
    fn a_module_is_known_by_its_name() {
        let by_module = point("module = 'acme'\narguments = '^serve '\nwithout = ['--daemon*', '-D']");
        for (words, expected) in [
            (&["-m", "acme", "serve"][..], true),
            (&["-macme", "serve", "now"], true),
            (&["-m", "acme"], false),
            (&["-m", "acme", "server"], false),
            (&["-m", "acme", "status", "serve"], false),
            (&["-m", "acme", "serve", "-D"], false),
            (&["-m", "acme", "serve", "--daemonize"], false),
            (&["-m", "acme.more", "serve"], false),
        ] {
            assert_eq!(by_module.is_of(&main(words)), expected, "{words:?}");
        }
    }
}
