//! Recipes: what is loaded of an application by itself, where a framework's own script starts it. Each is a data file in recipes/; what must be
//! renewed after a thaw, the front ends know.
//!
//! A recipe is for a script of a certain name and text, so that nothing is set up early that the script decides by its arguments: an image is
//! for all of them, and guards name those that need an ordinary start.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use regex::Regex;
use runtime::{Language, Main};
use serde::Deserialize;

/// The data files.
const FILES: &[&str] = &[
    include_str!("../../../recipes/django.toml"),
    include_str!("../../../recipes/puma.toml"),
    include_str!("../../../recipes/rack.toml"),
    include_str!("../../../recipes/rails.toml"),
];

/// A data file. In `preload` and `environment` stand `{folder}` for the script's folder, and `{NAME}` for a group of `text`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recipe {
    /// What people call the framework.
    name: String,
    /// `python` or `ruby`.
    language: String,
    /// How the script's path ends.
    script: String,
    /// A file that must be there, from the script's folder.
    beside: Option<String>,
    /// A regular expression that the script's text matches.
    text: String,
    /// What to preload, as `--preload` takes it.
    preload: Vec<String>,
    /// Training runs that are made where nobody names any: arguments of each, with which the program changes nothing.
    #[serde(default)]
    train: Vec<String>,
    /// What these runs do once, and find done when they do it again: names of `warm_ups.py` in Python's front end.
    #[serde(default)]
    warm_up: Vec<String>,
    /// Variables that are set while the program boots, where they are not set.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// Arguments that need an ordinary start.
    #[serde(default)]
    guards: Vec<String>,
    /// A file that the script looks for where it is started.
    here: Option<Here>,
}

/// A file of the current directory that says what is loaded first of the application. Only a command without arguments surely leads to it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Here {
    file: String,
    /// What must not be there, since it may lead to another application.
    #[serde(default)]
    without: Vec<String>,
}

/// The first lines of such a file, up to one that does anything else. `own` is preloaded, a path from the file's folder. In config.ru `#\` begins
/// options, and Rack itself is there.
const LEADING: &str = r#"(?x) \A \s* (?:
    \# (?: [^\\] .* )?
    | require \s* \(? \s* ["']rack["'] \s* \)? \s* (?: \# .* )?
    | require (?: _relative \s* \(? \s* ["'] | \s* \(? \s* ["']\./ ) (?<own>[\w./-]+) ["'] \s* \)? \s* (?: \# .* )?
)? \z"#;

/// What a recipe says of one program.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The framework.
    pub name: String,
    /// See [`Recipe`].
    pub preloads: Vec<String>,
    pub training: Vec<Vec<OsString>>,
    pub warm_up: Vec<String>,
    pub environment: Vec<(OsString, OsString)>,
    pub guards: Vec<OsString>,
    /// The file of the current directory that it is about: in another directory there may be another one.
    pub file: Option<PathBuf>,
}

/// The recipe for a program, if there is one.
pub fn of(language: Language, main: &Main) -> Option<Applied> {
    let script = main.script.as_deref()?;
    let text = trust::look::read_to_string(script).ok()?;
    let is_alone = main.argv.len() == main.index + 1;
    let here = std::env::current_dir().ok().filter(|_| is_alone);
    all().into_iter().find_map(|recipe| recipe.applied(language, script, &text, here.as_deref()))
}

fn all() -> Vec<Recipe> {
    FILES.iter().map(|text| toml::from_str(text).expect("a test reads each recipe")).collect()
}

impl Recipe {
    /// `here`: the current directory, where the script has no arguments.
    fn applied(&self, language: Language, script: &Path, text: &str, here: Option<&Path>) -> Option<Applied> {
        let folder = script.parent()?;
        let is_it = self.language == word(language)
            && script.ends_with(&self.script)
            && self.beside.as_ref().is_none_or(|beside| folder.join(beside).is_file());
        if !is_it {
            return None;
        }
        let pattern = Regex::new(&self.text).expect("a test compiles each pattern");
        let found = pattern.captures(text)?;
        let filled = |template: &str| -> Option<String> {
            let mut filled = template.replace("{folder}", folder.to_str()?);
            for name in pattern.capture_names().flatten() {
                filled = filled.replace(&format!("{{{name}}}"), found.name(name).map_or("", |group| group.as_str()));
            }
            Some(filled)
        };
        let mut preloads: Vec<String> = self.preload.iter().map(|name| filled(name)).collect::<Option<_>>()?;
        let mut file = None;
        if let Some(of) = &self.here {
            let (found, own) = of.own(here?)?;
            file = Some(found);
            preloads.extend(own);
        }
        Some(Applied {
            name: self.name.clone(),
            preloads,
            training: self.train.iter().map(|run| run.split(' ').map(OsString::from).collect()).collect(),
            warm_up: self.warm_up.clone(),
            environment: (self.environment.iter())
                .map(|(name, value)| Some((name.into(), filled(value)?.into())))
                .collect::<Option<_>>()?,
            guards: self.guards.iter().map(OsString::from).collect(),
            file,
        })
    }
}

impl Here {
    /// The file, and what it names; None where that is nothing.
    fn own(&self, here: &Path) -> Option<(PathBuf, Vec<String>)> {
        let file = here.join(&self.file);
        if self.without.iter().any(|name| here.join(name).exists()) {
            return None;
        }
        let own = leading(&trust::look::read_to_string(&file).ok()?);
        let paths = own.iter().map(|name| Some(here.join(name).to_str()?.to_owned())).collect::<Option<Vec<_>>>()?;
        (!paths.is_empty()).then_some((file, paths))
    }
}

/// What the first lines of a file require by path.
fn leading(text: &str) -> Vec<String> {
    let pattern = Regex::new(LEADING).expect("a test compiles it");
    let found = text.lines().map_while(|line| pattern.captures(line));
    found.filter_map(|found| Some(found.name("own")?.as_str().to_owned())).collect()
}

fn word(language: Language) -> &'static str {
    match language {
        Language::Python => "python",
        Language::Ruby => "ruby",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MANAGE: &str = r#"#!/usr/bin/env python
"""Django's command-line utility for administrative tasks."""
import os
import sys


def main():
    """Run administrative tasks."""
    os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'shop.settings')
    try:
        from django.core.management import execute_from_command_line
    except ImportError as exc:
        raise ImportError(
            "Couldn't import Django. Are you sure it's installed and "
            "forget to activate a virtual environment?"
        ) from exc
    execute_from_command_line(sys.argv)


if __name__ == '__main__':
    main()
"#;
    /// As Django 1.4 to 1.9 wrote it.
    const OLD: &str = r#"#!/usr/bin/env python
import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "shop.settings")

    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
"#;

    fn django(text: &str) -> Option<Applied> {
        all().iter().find_map(|recipe| recipe.applied(Language::Python, Path::new("/app/manage.py"), text, None))
    }

    #[test]
    fn a_project_of_django_is_set_up() {
        for text in [MANAGE, OLD] {
            let applied = django(text).unwrap();
            assert_eq!((applied.name.as_str(), applied.preloads[0].as_str()), ("Django", "django:setup"));
            assert_eq!(applied.environment, [("DJANGO_SETTINGS_MODULE".into(), "shop.settings".into())]);
        }
    }

    #[test]
    fn a_script_that_may_choose_other_settings_is_none_of_them() {
        let line = "    os.environ.setdefault(";
        for more in ["    dotenv.load_dotenv()\n", "    if 'test' in sys.argv:\n        os.environ['X'] = '1'\n"] {
            let changed = MANAGE.replacen(line, &format!("{more}{line}"), 1);
            assert_eq!(django(&changed), None, "{changed}");
            let changed = MANAGE.replacen("    try:", &format!("{more}    try:"), 1);
            assert_eq!(django(&changed), None, "{changed}");
        }
        assert_eq!(django(&MANAGE.replace("import sys\n", "import sys\nimport settings\n")), None);
        assert_eq!(django(&(MANAGE.to_owned() + "    more()\n")), None);
    }

    #[test]
    fn an_application_of_rails_is_booted() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("bin")).unwrap();
        let script = top.path().join("bin/rails");
        let text = "#!/usr/bin/env ruby\nAPP_PATH = File.expand_path(\"../config/application\", __dir__)\n\
                    require_relative \"../config/boot\"\nrequire \"rails/commands\"\n";
        let found = || all().iter().find_map(|recipe| recipe.applied(Language::Ruby, &script, text, None));
        assert_eq!(found(), None, "there is no application");
        fs::create_dir_all(top.path().join("config")).unwrap();
        fs::write(top.path().join("config/environment.rb"), "").unwrap();
        let expected = format!("{}/bin/../config/environment", top.path().display());
        assert_eq!(found().unwrap().preloads, [expected]);
    }

    #[test]
    fn of_an_application_of_rack_is_loaded_what_its_file_requires_first() {
        let recipe = all().into_iter().find(|recipe| recipe.name == "Rack").unwrap();
        let text = "# frozen_string_literal: true\n\nrequire 'rack'\nrequire_relative \"app\" # ours\nrequire('./lib/more-of.it')\n\
                    run App\nrequire_relative 'late'\n";
        assert_eq!(leading(text), ["app", "lib/more-of.it"]);
        for other in [
            "ENV['X'] = '1'\n",
            "require 'bundler/setup'\n",
            "#\\ -E production\n",
            "require_relative \"#{x}\"\n",
            "x; ",
        ] {
            assert!(leading(&format!("{other}require_relative 'app'\n")).is_empty(), "{other}");
        }
        let binstub = "load Gem.activate_bin_path('rack', 'rackup', version)\n";
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("config.ru"), text).unwrap();
        let applied = |here| recipe.applied(Language::Ruby, Path::new("/usr/bin/rackup"), binstub, here);
        let found = applied(Some(top.path())).unwrap();
        assert_eq!(found.preloads[..2], ["rack".to_owned(), top.path().join("app").to_str().unwrap().to_owned()]);
        assert_eq!(found.file, Some(top.path().join("config.ru")));
        assert_eq!(applied(None), None, "it has arguments");
        let puma = all().into_iter().find(|recipe| recipe.name == "Puma").unwrap();
        let binstub = "load Gem.activate_bin_path('puma', 'puma', version)\n";
        let started = || puma.applied(Language::Ruby, Path::new("/usr/bin/puma"), binstub, Some(top.path()));
        assert_eq!(started().unwrap().preloads[..2], ["puma", "rack"]);
        fs::create_dir_all(top.path().join("config/puma")).unwrap();
        assert_eq!(started(), None, "there is a configuration");
        fs::write(top.path().join("config.ru"), "run App").unwrap();
        assert_eq!(applied(Some(top.path())), None);
    }
}
