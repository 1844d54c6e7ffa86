//! The user's own recipes.

use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use runtime::Language;

use crate::{Recipe, Rules, OWN};

/// The files of a recipe's folder; the first makes a folder a recipe.
const RULES: &str = "recipe.toml";
const CODE: [(Language, &str); 2] = [(Language::Python, "python.py"), (Language::Ruby, "ruby.rb")];

/// Reads the user's recipes, once in this process: the folders in `$XDG_CONFIG_HOME/snapboot/recipes` (`~/.config`).
/// Fails if one is invalid, or if others may have put it there: its code is executed.
pub fn load() -> Result<()> {
    if OWN.get().is_none() {
        let own = place().map_or(Ok(Vec::new()), |place| read(&place))?;
        let _ = OWN.set(own);
    }
    Ok(())
}

/// The files of the user's recipes for programs of a language, or of any language.
pub fn files(language: Language) -> impl Iterator<Item = PathBuf> {
    let own = OWN.get().map(Vec::as_slice).unwrap_or_default().iter();
    let own = own.filter(move |recipe| recipe.rules.language.is_none_or(|of| of == language));
    let code = CODE.iter().filter(move |(of, _)| *of == language).map(|(_, name)| *name);
    own.flat_map(move |recipe| {
        let code = code.clone().filter(|_| recipe.code.is_some());
        [RULES].into_iter().chain(code).map(|name| recipe.place.join(name))
    })
}

/// The folder of the user's recipes. Ignores the home of another user, to which `sudo -E` leads.
fn place() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || absolute("HOME").filter(|home| trust::is_home(home)).map(|home| home.join(".config"));
    Some(absolute("XDG_CONFIG_HOME").or_else(home)?.join("snapboot/recipes"))
}

/// The recipes in a folder of folders, sorted by name.
fn read(place: &Path) -> Result<Vec<Recipe>> {
    let mut folders: Vec<PathBuf> = match std::fs::read_dir(place) {
        Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
        Err(_) => return Ok(Vec::new()),
    };
    folders.retain(|folder| folder.is_dir());
    folders.sort();
    folders.into_iter().map(|folder| recipe(&folder)).collect()
}

fn recipe(folder: &Path) -> Result<Recipe> {
    let file = folder.join(RULES);
    let remedy = format!("Correct it, or remove {}.", folder.display());
    let rules = Rules::read(&text(&file)?).map_err(|mistake| {
        Failure::refusal(format!("{}:{}: {}. {remedy}", file.display(), mistake.line, mistake.what))
    })?;
    let mut code = None;
    for (language, name) in CODE {
        let file = folder.join(name);
        if !file.exists() {
            continue;
        }
        if rules.language != Some(language) {
            return Err(Failure::refusal(format!(
                "{}: expected language = \"{}\" in {RULES} beside it. {remedy}",
                file.display(),
                name.split('.').next().unwrap_or_default()
            )));
        }
        code = Some(text(&file)?);
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Recipe { folder: name, place: folder.to_owned(), rules, code })
}

/// The text of a file that is obeyed or executed.
fn text(file: &Path) -> Result<String> {
    let content = trust::read(file).map_err(|refusal| {
        Failure::refusal(format!(
            "a recipe cannot be used: {refusal}. Correct it, remove its directory, or set XDG_CONFIG_HOME to a \
             directory of yours."
        ))
    })?;
    let text = String::from_utf8(content).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| {
        Failure::refusal(format!(
            "{}: expected UTF-8 without NUL. Correct it, or remove its directory.",
            file.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder of the user's alone, whatever the umask is.
    fn folder(top: &Path, name: &str, rules: &str) -> PathBuf {
        fs::set_permissions(top, fs::Permissions::from_mode(0o755)).unwrap();
        let folder = top.join(name);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        write(&folder.join(RULES), rules);
        folder
    }

    fn write(file: &Path, text: &str) {
        fs::write(file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap();
    }

    #[test]
    fn each_folder_is_a_recipe() {
        let top = tempfile::tempdir().unwrap();
        assert_eq!(read(&top.path().join("none")).unwrap().len(), 0);
        let two = folder(top.path(), "two", "name = 'Two'\nlanguage = 'ruby'");
        folder(top.path(), "one", "name = 'One'");
        write(&two.join("ruby.rb"), "1");
        write(&top.path().join("README"), "no folder");
        let recipes = read(top.path()).unwrap();
        let shown: Vec<_> = recipes.iter().map(|it| (&*it.folder, &*it.rules.name, it.code.as_deref())).collect();
        assert_eq!(shown, [("one", "One", None), ("two", "Two", Some("1"))]);
    }

    #[test]
    fn a_broken_one_is_refused_with_its_place_and_a_remedy() {
        let top = tempfile::tempdir().unwrap();
        let one = folder(top.path(), "one", "name = 'One'\nguard = []\n");
        let message = || read(top.path()).err().unwrap().message;
        let said = message();
        let (place, remedy) = (format!("{}:2: unknown field `guard`", one.join(RULES).display()), "or remove ");
        assert!(said.starts_with(&place) && said.contains("expected one of `name`") && said.contains(remedy), "{said}");
        write(&one.join(RULES), "name = 'One'\n");
        write(&one.join("python.py"), "");
        assert!(message().contains("expected language = \"python\""), "{}", message());
        fs::remove_file(one.join("python.py")).unwrap();
        fs::set_permissions(one.join(RULES), fs::Permissions::from_mode(0o666)).unwrap();
        assert!(message().contains("others may write to"), "{}", message());
        fs::remove_file(one.join(RULES)).unwrap();
        assert!(message().contains("cannot open"), "{}", message());
    }
}
