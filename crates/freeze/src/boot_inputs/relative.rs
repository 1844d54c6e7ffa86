//! Look-ups by names relative to the start directory: in a start from another directory they mean other paths.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use image_file::directory_answers::{DirectoryAnswer, DirectoryAnswers};
use recorder::{Accesses, Identity, PathAccess, State};

use super::ignored::Ignored;

/// What an image stores of relative names. All are relative to the start directory.
#[derive(Debug, Default)]
pub struct Relative {
    /// The start directory.
    start: PathBuf,
    /// Files whose content counts: names, with paths and identities at the first access.
    pub files: BTreeMap<PathBuf, (PathBuf, Identity)>,
    /// Answers by directory; `.` has all but those of lists.
    pub directories: BTreeMap<PathBuf, DirectoryAnswers>,
    /// Directories whose list counts: name, path, and the names in it at that time.
    pub lists: Vec<(PathBuf, PathBuf, BTreeSet<OsString>)>,
}

/// Whether a path counts as named from the start directory. Those on the way to `script` do not, unless they were
/// listed: an image is for that very script, wherever it is started.
pub fn is_relative(path: &Path, access: &PathAccess, script: Option<&Path>) -> bool {
    let leads_to_script = script.is_some_and(|script| script.starts_with(path));
    access.named.from_start && (is_listed(access) || !leads_to_script)
}

/// Whether a path was listed by such a name.
fn is_listed(access: &PathAccess) -> bool {
    access.opened_from_start && access.listed.is_some()
}

/// Whether a path counts as an absolute one.
pub fn is_absolute(path: &Path, access: &PathAccess, script: Option<&Path>) -> bool {
    let leads_nowhere = matches!((&access.state, access.target_state()), (State::Link(_), State::Absent));
    access.named.absolutely || leads_nowhere || !is_relative(path, access, script)
}

/// Whether the boot looked up anything below a directory by its absolute path, except what is `left_out`.
pub fn looked_up_below(
    directory: &Path,
    accesses: &Accesses,
    ignored: &Ignored,
    left_out: impl Fn(&Path) -> bool,
) -> bool {
    accesses.places.iter().any(|(path, access)| {
        path != directory
            && path.starts_with(directory)
            && access.named.absolutely
            && !left_out(path)
            // A path that was named in both ways counts relative to the start directory.
            && !access.named.from_start
            && ignored.reason(path, access, &accesses.places).is_none()
    })
}

impl Relative {
    /// Collects the relative accesses that are not ignored.
    pub fn collect(accesses: &Accesses, ignored: &Ignored, script: Option<&Path>, start: &Path) -> Relative {
        let mut relative = Relative { start: start.to_owned(), ..Relative::default() };
        for (path, access) in accesses.places.iter().filter(|(path, access)| is_relative(path, access, script)) {
            if ignored.reason(path, access, &accesses.places).is_none() {
                relative.add(path, access);
            }
        }
        relative
    }

    fn add(&mut self, path: &Path, access: &PathAccess) {
        let name = name(path, &self.start);
        if name.as_os_str().len() > image::MAX_NAME {
            return;
        }
        if let Some(names) = access.listed.as_ref().filter(|_| is_listed(access)) {
            self.lists.push((name.clone(), path.to_owned(), names.clone()));
        }
        if access.looked_at_link {
            match &access.state {
                State::Link(target) => self.answer(&name, DirectoryAnswer::Link(target.clone())),
                State::File(_) | State::Directory | State::Special => self.answer(&name, DirectoryAnswer::Plain),
                State::Absent => self.answer(&name, DirectoryAnswer::Absent),
                State::Unknown => {}
            }
        }
        if !access.looked {
            return;
        }
        match (access.target_state(), &access.state) {
            (State::File(_), _) if !access.looked_closely => self.answer(&name, DirectoryAnswer::File),
            (State::File(identity), _) => drop(self.files.insert(name, (path.to_owned(), *identity))),
            (State::Directory, _) => self.answer(&name, DirectoryAnswer::Directory),
            (State::Special, _) => self.answer(&name, DirectoryAnswer::Special),
            (State::Absent, State::Link(target)) => self.answer(&name, DirectoryAnswer::Link(target.clone())),
            (State::Absent, _) => self.answer(&name, DirectoryAnswer::Absent),
            (State::Link(_) | State::Unknown, _) => {}
        }
    }

    fn answer(&mut self, name: &Path, fact: DirectoryAnswer) {
        if name != Path::new(".") {
            self.directories.entry(".".into()).or_default().insert((name.as_os_str().to_owned(), fact));
        }
    }

    /// The path of a directory.
    pub fn place(&self, directory: &Path) -> PathBuf {
        if directory == Path::new(".") {
            self.start.clone()
        } else {
            self.start.join(directory)
        }
    }
}

/// The name of a path relative to a directory: `.`, `a/b`, `../c`.
fn name(path: &Path, from: &Path) -> PathBuf {
    let shared = path.components().zip(from.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(shared).map(|_| Component::ParentDir);
    let down = path.components().skip(shared);
    let name: PathBuf = up.chain(down).map(|part| part.as_os_str()).collect::<Vec<&OsStr>>().iter().collect();
    if name.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_named_from_the_start() {
        let name = |path| name(Path::new(path), Path::new("/srv/app"));
        for (path, expected) in [
            ("/srv/app", "."),
            ("/srv/app/a/b", "a/b"),
            ("/srv/app/a/../b", "a/../b"),
            ("/srv/other/x", "../other/x"),
            ("/x", "../../x"),
            ("/", "../.."),
        ] {
            assert_eq!(name(path), Path::new(expected), "{path}");
        }
    }
}
