//! What a recipe says of a program: its freeze point, or the application that a framework's own script starts.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use judge::entries::Entries;
use recipes::{Application, Here, Recipe};
use regex::Regex;
use runtime::{Language, Main};

/// A line at the start of a file that names an application. `own` is preloaded, a path relative to the file's folder;
/// features in `loaded` are there already. `#\` begins options of the command that reads the file.
const LEADING: &str = r#"(?x) \A \s* (?:
    \# (?: [^\\] .* )?
    | require \s* \(? \s* ["'] (?<loaded>[\w/-]+) ["'] \s* \)? \s* (?: \# .* )?
    | require (?: _relative \s* \(? \s* ["'] | \s* \(? \s* ["']\./ ) (?<own>[\w./-]+) ["'] \s* \)? \s* (?: \# .* )?
)? \z"#;

/// The result of applying a recipe to a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The framework.
    pub name: String,
    /// The functions at which the program is frozen; right before its main part if there are none.
    pub at: Vec<String>,
    /// See [`Application`].
    pub preloads: Vec<String>,
    pub libraries: Vec<String>,
    pub training: Vec<Vec<OsString>>,
    pub warm_up: Vec<String>,
    pub environment: Vec<(OsString, OsString)>,
    pub guards: Vec<OsString>,
    /// The file of the current directory that it depends on: in another directory it may differ.
    pub file: Option<PathBuf>,
    /// The conditions under which a start reads the same file.
    pub here: Option<&'static Here>,
}

impl Applied {
    /// What is left of it where the application's own files are left to each start: its libraries, and the training runs,
    /// which tell what else it loads. A script that decides by itself which libraries there are is in the image.
    pub fn fitted(self, leaves_script: &mut bool) -> Applied {
        if !std::mem::replace(leaves_script, *leaves_script && self.libraries.is_empty()) {
            return self;
        }
        Applied { preloads: self.libraries, training: self.training, ..Applied::default() }
    }

    /// Whether an application of the user's own is booted by a script of others: up to a place in it, or as a file of the
    /// current directory says.
    pub fn boots_application(&self) -> bool {
        !self.at.is_empty() || self.file.is_some()
    }

    /// Adds the recipe's requests to the front end, and the code of this and of libraries' recipes.
    pub fn add_to(&self, request: &mut Entries, language: Language) {
        if let Some(here) = self.here {
            request.push("here", &here.file);
            here.without.iter().for_each(|file| request.push("here_without", file));
            here.unset.iter().for_each(|name| request.push("here_unset", name));
            here.options.iter().for_each(|option| request.push("here_option", option));
        }
        for recipe in recipes::for_language(language) {
            recipe.rules.restarted_threads.iter().for_each(|place| request.push("restarted_thread", place));
            if let Some(code) = &recipe.code {
                let fields = [OsStr::new(&recipe.folder), recipe.place.as_os_str(), OsStr::new(code)];
                request.push_record("recipe_code", &fields);
            }
        }
    }
}

/// The recipe for a program, if there is one. `may_run`: whether the program may be frozen at a function that it calls.
pub fn for_program(language: Language, main: &Main, may_run: bool) -> Option<Applied> {
    if let Some((recipe, point)) = recipes::freeze_point(language, main).filter(|_| may_run) {
        let (at, preloads) = (point.at.clone(), point.preload.clone());
        return Some(Applied { name: recipe.rules.name.clone(), at, preloads, ..Applied::default() });
    }
    let script = main.script.as_deref()?;
    let text = trust::look::read_to_string(script).ok()?;
    let is_alone = main.argv.len() == main.index + 1;
    let here = std::env::current_dir().ok().filter(|_| is_alone);
    recipes::for_language(language).find_map(|recipe| applied(recipe, script, &text, here.as_deref()))
}

/// `here` is the current directory, if the script has no arguments.
fn applied(recipe: &'static Recipe, script: &Path, text: &str, here: Option<&Path>) -> Option<Applied> {
    let of: &Application = recipe.rules.application.as_ref()?;
    let folder = script.parent()?;
    if !script.ends_with(&of.script) || of.beside.as_ref().is_some_and(|beside| !folder.join(beside).is_file()) {
        return None;
    }
    let found = of.text.regex().captures(text)?;
    let filled = |template: &str| -> Option<String> {
        let mut filled = template.replace("{folder}", folder.to_str()?);
        for name in of.text.regex().capture_names().flatten() {
            filled = filled.replace(&format!("{{{name}}}"), found.name(name).map_or("", |group| group.as_str()));
        }
        Some(filled)
    };
    let mut preloads: Vec<String> = of.preload.iter().map(|name| filled(name)).collect::<Option<_>>()?;
    let mut file = None;
    if let Some(of) = &of.here {
        let (found, own) = own(of, here?)?;
        file = Some(found);
        preloads.extend(own);
    }
    Some(Applied {
        name: recipe.rules.name.clone(),
        at: Vec::new(),
        preloads,
        libraries: of.libraries.iter().map(|name| filled(name)).collect::<Option<_>>()?,
        training: of.train.iter().map(|run| run.split(' ').map(OsString::from).collect()).collect(),
        warm_up: of.warm_up.clone(),
        environment: (of.environment.iter())
            .map(|(name, value)| Some((name.into(), filled(value)?.into())))
            .collect::<Option<_>>()?,
        guards: of.guards.iter().map(OsString::from).collect(),
        file,
        here: of.here.as_ref(),
    })
}

/// The file in a directory, and the paths that it names; None if there are none.
fn own(of: &Here, here: &Path) -> Option<(PathBuf, Vec<String>)> {
    let file = here.join(&of.file);
    if of.without.iter().any(|name| here.join(name).exists()) {
        return None;
    }
    let own = leading(&trust::look::read_to_string(&file).ok()?, &of.loaded);
    let paths = own.iter().map(|name| Some(here.join(name).to_str()?.to_owned())).collect::<Option<Vec<_>>>()?;
    (!paths.is_empty()).then_some((file, paths))
}

/// The paths that the first lines of a file require.
fn leading(text: &str, loaded: &[String]) -> Vec<String> {
    let pattern = Regex::new(LEADING).expect("a test compiles it");
    let found = text.lines().map_while(|line| pattern.captures(line));
    let found =
        found.take_while(|line| line.name("loaded").is_none_or(|name| loaded.iter().any(|it| it == name.as_str())));
    found.filter_map(|found| Some(found.name("own")?.as_str().to_owned())).collect()
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
        recipes::for_language(Language::Python)
            .find_map(|recipe| applied(recipe, Path::new("/app/manage.py"), text, None))
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
        let found = || recipes::for_language(Language::Ruby).find_map(|recipe| applied(recipe, &script, text, None));
        assert_eq!(found(), None, "there is no application");
        fs::create_dir_all(top.path().join("config")).unwrap();
        fs::write(top.path().join("config/environment.rb"), "").unwrap();
        let expected = format!("{}/bin/../config/environment", top.path().display());
        assert_eq!(found().unwrap().preloads, [expected]);
    }

    #[test]
    fn of_an_application_of_rack_is_loaded_what_its_file_requires_first() {
        let named = |name| recipes::all().find(|recipe| recipe.rules.name == name).unwrap();
        let loaded = ["rack".to_owned()];
        let text = "# frozen_string_literal: true\n\nrequire 'rack'\nrequire_relative \"app\" # ours\nrequire('./lib/more-of.it')\n\
                    run App\nrequire_relative 'late'\n";
        assert_eq!(leading(text, &loaded), ["app", "lib/more-of.it"]);
        for other in [
            "ENV['X'] = '1'\n",
            "require 'bundler/setup'\n",
            "#\\ -E production\n",
            "require_relative \"#{x}\"\n",
            "x; ",
        ] {
            assert!(leading(&format!("{other}require_relative 'app'\n"), &loaded).is_empty(), "{other}");
        }
        let binstub = "load Gem.activate_bin_path('rack', 'rackup', version)\n";
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("config.ru"), text).unwrap();
        let rack = |here| applied(named("Rack"), Path::new("/usr/bin/rackup"), binstub, here);
        let found = rack(Some(top.path())).unwrap();
        assert_eq!(found.preloads[..2], ["rack".to_owned(), top.path().join("app").to_str().unwrap().to_owned()]);
        assert_eq!(found.file, Some(top.path().join("config.ru")));
        assert_eq!(rack(None), None, "it has arguments");
        let rules = "name = 'Acme'\nlanguage = 'ruby'\n[application]\nscript = 'acme'\ntext = 'acme'\npreload = ['acme', 'rack']\n\
                     [application.here]\nfile = 'config.ru'\nloaded = ['rack']\nwithout = ['config/acme']\n";
        let rules = recipes::Rules::read(rules).unwrap();
        let acme: &Recipe =
            Box::leak(Box::new(Recipe { folder: "acme".to_owned(), place: "acme".into(), rules, code: None }));
        let started = || applied(acme, Path::new("/usr/bin/acme"), "acme", Some(top.path()));
        assert_eq!(started().unwrap().preloads[..2], ["acme", "rack"]);
        fs::create_dir_all(top.path().join("config/acme")).unwrap();
        assert_eq!(started(), None, "there is a configuration");
        fs::write(top.path().join("config.ru"), "run App").unwrap();
        assert_eq!(rack(Some(top.path())), None);
    }
}
