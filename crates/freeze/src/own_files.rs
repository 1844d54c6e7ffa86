//! Which files are the user's own: those under version control, but not what an installer has put among them. They are
//! edited, so an image of a store leaves them to each start.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use runtime::Main;

/// What is at the top of a checkout.
const MARKS: [&str; 4] = [".git", ".hg", ".jj", ".svn"];
/// Folders that installers and tools fill.
const INSTALLED: [&str; 4] = ["site-packages", "dist-packages", "node_modules", ".bundle"];

/// Tells own files from others, and remembers what it has seen of their folders.
#[derive(Clone, Debug, Default)]
pub struct OwnFiles {
    /// The checkout of each folder, if it is the user's own.
    checkouts: HashMap<PathBuf, Option<PathBuf>>,
    /// Files and folders that are nobody's own in any case.
    except: Vec<PathBuf>,
}

impl OwnFiles {
    /// `except`: files and folders that do not count, such as Snapboot's.
    pub fn new(except: Vec<PathBuf>) -> OwnFiles {
        OwnFiles { checkouts: HashMap::new(), except }
    }

    /// Whether there is a regular file that is the user's own.
    pub fn contains(&mut self, file: &Path) -> bool {
        self.checkout(file).is_some() && file.is_file()
    }

    /// Whether a program is the user's own: its script, or its module as it lies in the current directory.
    pub fn contains_program(&mut self, main: &Main) -> bool {
        if let Some(script) = &main.script {
            return self.contains(script);
        }
        let top = main.module().and_then(|name| Some(name.to_str()?.split('.').next()?.to_owned()));
        std::env::current_dir().ok().zip(top).is_some_and(|(here, top)| {
            self.checkout_with(&here).is_some() && (here.join(&top).is_dir() || here.join(top + ".py").is_file())
        })
    }

    /// The top of the checkout that a file would belong to, whether it exists or not.
    pub fn checkout(&mut self, file: &Path) -> Option<PathBuf> {
        let is_other = !file.is_absolute() || self.except.iter().any(|other| file.starts_with(other));
        file.parent().filter(|_| !is_other).and_then(|folder| self.checkout_with(folder))
    }

    /// The top of the checkout that a folder belongs to.
    pub fn checkout_with(&mut self, folder: &Path) -> Option<PathBuf> {
        if let Some(known) = self.checkouts.get(folder) {
            return known.clone();
        }
        let real = folder.canonicalize().ok().filter(|real| real != folder);
        let found = match real {
            Some(real) => self.checkout_with(&real),
            None if is_installed(folder) => None,
            None if MARKS.iter().any(|mark| folder.join(mark).exists()) => Some(folder.to_owned()),
            None => folder.parent().and_then(|above| self.checkout_with(above)),
        };
        self.checkouts.insert(folder.to_owned(), found.clone());
        found
    }
}

/// Whether an installer fills this folder: with packages, gems, or the library of a runtime.
fn is_installed(folder: &Path) -> bool {
    let name = folder.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let above = folder.parent().unwrap_or(folder);
    INSTALLED.contains(&name)
        || MARKS.contains(&name)
        || above.ends_with("lib") && (name == "ruby" || name.starts_with("python3") || name.starts_with("pypy3"))
        || folder.ends_with("vendor/bundle")
        // Checkouts of a Gemfile's `git:`, and a place of gems.
        || above.ends_with("bundler/gems")
        || name == "gems" && above.join("specifications").is_dir()
        || folder.join("pyvenv.cfg").exists()
        // A runtime of a version manager, which is a checkout itself.
        || above.ends_with("versions") && folder.join("bin").is_dir() && folder.join("lib").is_dir()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_installers_put_into_a_checkout_is_not_the_users_own() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let place = |name: &str| {
            let path = top.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            path
        };
        place("app/.git/HEAD");
        place("app/env/pyvenv.cfg");
        place("app/versions/3/bin/python");
        place("app/ruby/specifications/rack.gemspec");
        place("app/vendor/bundle/ruby/3.1.0/bundler/gems/rack-1/.git/HEAD");
        let own = ["app/manage.py", "app/shop/settings.py", "app/gems/engine/lib/engine.rb", "app/lib/tasks/x.rake"];
        let others = [
            "app/env/lib/thing.py",
            "app/versions/3/lib/thing.so",
            "app/lib/python3.11/json.py",
            "app/ruby/gems/rack/rack.rb",
            "app/vendor/bundle/ruby/3.1.0/bundler/gems/rack-1/rack.rb",
            "app/.git/config",
            "elsewhere/manage.py",
            "app/snapboot/boot.py",
        ];
        let mut files = OwnFiles::new(vec![top.join("app/snapboot")]);
        for (names, expected) in [(&own[..], true), (&others[..], false)] {
            names.iter().for_each(|name| assert_eq!(files.contains(&place(name)), expected, "{name}"));
        }
        assert!(!files.contains(&top.join("app/missing.py")) && !files.contains(&top.join("app/shop")));
        assert_eq!(files.checkout(&top.join("app/missing.py")), Some(top.join("app")));
    }

    #[test]
    fn a_link_to_a_checkout_leads_to_own_files() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("app/.hg")).unwrap();
        fs::write(top.path().join("app/tool.rb"), "").unwrap();
        std::os::unix::fs::symlink("app", top.path().join("link")).unwrap();
        assert!(OwnFiles::default().contains(&top.path().join("link/tool.rb")));
    }
}
