//! Recipes: what is loaded of an application by itself, where a framework's own script starts it. Each is a data file in recipes/; what must be
//! renewed after a thaw, the front ends know.
//!
//! A recipe is for a script of a certain name and text, so that nothing is set up early that the script decides by its arguments.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use regex::Regex;
use runtime::{Language, Main};
use serde::Deserialize;

/// The data files.
const FILES: &[&str] = &[include_str!("../../../recipes/django.toml"), include_str!("../../../recipes/rails.toml")];

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
    /// Variables that are set while the program boots, where they are not set.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// Arguments that need an ordinary start.
    #[serde(default)]
    guards: Vec<String>,
}

/// What a recipe says of one program.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The framework.
    pub name: String,
    /// See [`Recipe`].
    pub preloads: Vec<String>,
    pub environment: Vec<(OsString, OsString)>,
    pub guards: Vec<OsString>,
}

/// The recipe for a program, if there is one.
pub fn of(language: Language, main: &Main) -> Option<Applied> {
    let script = main.script.as_deref()?;
    let text = fs::read_to_string(script).ok()?;
    all().into_iter().find_map(|recipe| recipe.applied(language, script, &text))
}

fn all() -> Vec<Recipe> {
    FILES.iter().map(|text| toml::from_str(text).expect("a test reads each recipe")).collect()
}

impl Recipe {
    fn applied(&self, language: Language, script: &Path, text: &str) -> Option<Applied> {
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
        Some(Applied {
            name: self.name.clone(),
            preloads: self.preload.iter().map(|name| filled(name)).collect::<Option<_>>()?,
            environment: (self.environment.iter())
                .map(|(name, value)| Some((name.into(), filled(value)?.into())))
                .collect::<Option<_>>()?,
            guards: self.guards.iter().map(OsString::from).collect(),
        })
    }
}

fn word(language: Language) -> &'static str {
    match language {
        Language::Python => "python",
        Language::Ruby => "ruby",
    }
}

#[cfg(test)]
mod tests {
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
        all().iter().find_map(|recipe| recipe.applied(Language::Python, Path::new("/app/manage.py"), text))
    }

    #[test]
    fn a_project_of_django_is_set_up() {
        for text in [MANAGE, OLD] {
            let applied = django(text).unwrap();
            assert_eq!((applied.name.as_str(), applied.preloads), ("Django", vec!["django:setup".to_owned()]));
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
        let found = || all().iter().find_map(|recipe| recipe.applied(Language::Ruby, &script, text));
        assert_eq!(found(), None, "there is no application");
        fs::create_dir_all(top.path().join("config")).unwrap();
        fs::write(top.path().join("config/environment.rb"), "").unwrap();
        let expected = format!("{}/bin/../config/environment", top.path().display());
        assert_eq!(found().unwrap().preloads, [expected]);
    }
}
