//! What the boot looked up by names that start where the program was started: they mean another place in each start that is made elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use image_file::directory_answers::{DirectoryAnswer, DirectoryAnswers};
use recorder::{Accesses, Identity, PathAccess, State};

use super::ignored::Ignored;

/// What an image keeps of relative names. All are named from the directory in which the program was started.
#[derive(Debug, Default)]
pub struct Relative {
    /// Where the program was started.
    start: PathBuf,
    /// Files whose content counts: names, places, and what they were when they were first looked up.
    pub files: BTreeMap<PathBuf, (PathBuf, Identity)>,
    /// Answers by directory; `.` has all but those of lists.
    pub directories: BTreeMap<PathBuf, DirectoryAnswers>,
    /// Directories of which the list counts: name, place, and the names in it at that time.
    pub lists: Vec<(PathBuf, PathBuf, BTreeSet<OsString>)>,
}

/// Whether a place counts as one that was named from the start. The way to `script` does not, unless it was listed: an image is of that
/// very script, wherever it is started.
pub fn is_relative(path: &Path, note: &PathAccess, script: Option<&Path>) -> bool {
    let leads_to_script = script.is_some_and(|script| script.starts_with(path));
    note.named.from_start && (is_listed(note) || !leads_to_script)
}

/// Whether a place was listed by such a name.
fn is_listed(note: &PathAccess) -> bool {
    note.opened_from_start && note.listed.is_some()
}

/// Whether a place counts for itself.
pub fn is_absolute(path: &Path, note: &PathAccess, script: Option<&Path>) -> bool {
    let leads_nowhere = matches!((&note.state, note.found()), (State::Link(_), State::Absent));
    note.named.absolutely || leads_nowhere || !is_relative(path, note, script)
}

/// Whether the boot looked up anything below a directory by its absolute path,
/// but for what is `left_out`.
pub fn looked_up_below(
    directory: &Path,
    notes: &Accesses,
    ignored: &Ignored,
    left_out: impl Fn(&Path) -> bool,
) -> bool {
    notes.places.iter().any(|(path, note)| {
        path != directory
            && path.starts_with(directory)
            && note.named.absolutely
            && !left_out(path)
            // What was looked up in both ways counts where the image is started.
            && !note.named.from_start
            && ignored.reason(path, note, &notes.places).is_none()
    })
}

impl Relative {
    /// All of it that is not to be ignored.
    pub fn of(notes: &Accesses, ignored: &Ignored, script: Option<&Path>, start: &Path) -> Relative {
        let mut relative = Relative { start: start.to_owned(), ..Relative::default() };
        for (path, note) in notes.places.iter().filter(|(path, note)| is_relative(path, note, script)) {
            if ignored.reason(path, note, &notes.places).is_none() {
                relative.add(path, note);
            }
        }
        relative
    }

    fn add(&mut self, path: &Path, note: &PathAccess) {
        let name = name(path, &self.start);
        if name.as_os_str().len() > image::MAX_NAME {
            return;
        }
        if let Some(names) = note.listed.as_ref().filter(|_| is_listed(note)) {
            self.lists.push((name.clone(), path.to_owned(), names.clone()));
        }
        if note.looked_at_link {
            match &note.state {
                State::Link(target) => self.answer(&name, DirectoryAnswer::Link(target.clone())),
                State::File(_) | State::Directory | State::Special => self.answer(&name, DirectoryAnswer::Plain),
                State::Absent => self.answer(&name, DirectoryAnswer::Absent),
                State::Unknown => {}
            }
        }
        if !note.looked {
            return;
        }
        match (note.found(), &note.state) {
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

    /// The place of a directory.
    pub fn place(&self, directory: &Path) -> PathBuf {
        if directory == Path::new(".") {
            self.start.clone()
        } else {
            self.start.join(directory)
        }
    }
}

/// How a place is called from a directory: `.`, `a/b`, `../c`.
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
