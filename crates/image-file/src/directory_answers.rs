//! What a look-up of a name in a directory finds, for those who write, show and compare it. The launcher has its own
//! half, below any library, in crates/launcher/src/answers.rs.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use failure::Result;
use image::{
    answer_kind, is_known, is_selected, is_unlisted, may_have_feature, specification_key, AnswersReader, Directory,
    Listing, RecordedAnswer, MAX_START,
};
use recorder::State;

/// Answers of a directory, sorted by name.
pub type DirectoryAnswers = BTreeSet<(OsString, DirectoryAnswer)>;

/// One answer; see [`answer_kind`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirectoryAnswer {
    /// Nothing of that name.
    Absent,
    /// Nothing of that name, and something was looked up below it.
    Below,
    /// A directory, also behind links.
    Directory,
    /// Something, and no symbolic link.
    Plain,
    /// A symbolic link with this target.
    Link(PathBuf),
    /// A device, socket or pipe.
    Special,
    /// Nothing, or no symbolic link.
    Unlinked,
    /// The digest of a list, and its kind.
    Listing(u32, Vec<u8>),
}

impl DirectoryAnswer {
    /// Number and value for the image.
    pub fn record(&self) -> (u32, &[u8]) {
        match self {
            DirectoryAnswer::Absent => (answer_kind::ABSENT, b""),
            DirectoryAnswer::Below => (answer_kind::BELOW, b""),
            DirectoryAnswer::Directory => (answer_kind::DIRECTORY, b""),
            DirectoryAnswer::Plain => (answer_kind::PLAIN, b""),
            DirectoryAnswer::Link(target) => (answer_kind::LINK, target.as_os_str().as_bytes()),
            DirectoryAnswer::Special => (answer_kind::SPECIAL, b""),
            DirectoryAnswer::Unlinked => (answer_kind::UNLINKED, b""),
            DirectoryAnswer::Listing(kind, digest) => (*kind, digest),
        }
    }

    fn of(answer: &RecordedAnswer<'_>) -> DirectoryAnswer {
        match answer.kind {
            answer_kind::ABSENT => DirectoryAnswer::Absent,
            answer_kind::BELOW => DirectoryAnswer::Below,
            answer_kind::DIRECTORY => DirectoryAnswer::Directory,
            answer_kind::PLAIN => DirectoryAnswer::Plain,
            answer_kind::LINK => DirectoryAnswer::Link(OsString::from_vec(answer.value.to_vec()).into()),
            answer_kind::SPECIAL => DirectoryAnswer::Special,
            answer_kind::UNLINKED => DirectoryAnswer::Unlinked,
            // The reader lets no other kind through.
            kind => DirectoryAnswer::Listing(kind, answer.value.to_vec()),
        }
    }

    /// Whether `name` in `directory` still gives this answer. `image` is the name of the image file, which no list shows.
    pub fn holds(&self, directory: &Path, name: &OsStr, image: &OsStr) -> bool {
        let path = directory.join(name);
        match self {
            DirectoryAnswer::Absent | DirectoryAnswer::Below => State::read(&path) == State::Absent,
            DirectoryAnswer::Directory => State::read_target(&path) == State::Directory,
            DirectoryAnswer::Plain => !matches!(State::read(&path), State::Absent | State::Link(_)),
            DirectoryAnswer::Link(target) => matches!(State::read(&path), State::Link(now) if now == *target),
            DirectoryAnswer::Special => State::read_target(&path) == State::Special,
            DirectoryAnswer::Unlinked => !matches!(State::read(&path), State::Link(_)),
            DirectoryAnswer::Listing(answer_kind::FEATURES, known) => {
                let has_none = |all: BTreeSet<OsString>| !all.iter().any(|it| is_new_with(directory, known, name, it));
                names(directory, answer_kind::FEATURES).is_ok_and(has_none)
            }
            DirectoryAnswer::Listing(kind, digest) => {
                listing(directory, *kind, name, image).is_ok_and(|now| now == *digest)
            }
        }
    }

    /// What differs, from what to what.
    pub fn difference(&self, directory: &Path, name: &OsStr) -> String {
        let path = directory.join(name);
        let shown = path.display();
        let now = State::read(&path);
        match self {
            DirectoryAnswer::Absent | DirectoryAnswer::Below => {
                format!("{shown}: absent when it was looked for -> {}", words(&now))
            }
            DirectoryAnswer::Directory => format!("{shown}: directory -> {}", words(&State::read_target(&path))),
            DirectoryAnswer::Plain | DirectoryAnswer::Unlinked => {
                format!("{shown}: no symbolic link -> {}", words(&now))
            }
            DirectoryAnswer::Link(target) => {
                format!("{shown}: symbolic link to {} -> {}", target.display(), words(&now))
            }
            DirectoryAnswer::Special => format!("{shown}: special file -> {}", words(&State::read_target(&path))),
            DirectoryAnswer::Listing(kind, _) => {
                let names = selected_names(*kind, name);
                format!("{}: lists other {names} than when the program booted", directory.display())
            }
        }
    }
}

/// The names that count for a list.
fn selected_names(kind: u32, selection: &OsStr) -> String {
    let several = || selection.to_string_lossy().replace('/', ", ");
    match kind {
        answer_kind::DISTRIBUTIONS if selection.is_empty() => "Python packages".to_owned(),
        answer_kind::DISTRIBUTIONS => format!("Python packages (of {})", several()),
        answer_kind::MATCHING => format!("files (of {})", several()),
        answer_kind::FEATURES => {
            format!("gems with one of these features ({})", selection.to_string_lossy().replace('\n', ", "))
        }
        _ if selection.is_empty() => "names".to_owned(),
        _ => format!("*{} files", selection.display()),
    }
}

fn words(state: &State) -> String {
    match state {
        State::Absent => "absent".to_owned(),
        State::File(_) => "new file".to_owned(),
        State::Directory => "directory".to_owned(),
        State::Link(target) => format!("symbolic link to {}", target.display()),
        State::Special => "special file".to_owned(),
        State::Unknown => "cannot be looked at".to_owned(),
    }
}

/// Whether a list of this kind is of certain names, and as good as empty where its directory is not there.
pub fn is_of_some(kind: u32) -> bool {
    matches!(kind, answer_kind::DISTRIBUTIONS | answer_kind::MATCHING | answer_kind::FEATURES)
}

/// The names in a directory, for a list of this kind.
pub fn names(directory: &Path, kind: u32) -> io::Result<BTreeSet<OsString>> {
    match recorder::names_in(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_of_some(kind) => Ok(BTreeSet::new()),
        names => names,
    }
}

/// The digest of the names in a directory that count for a list of this kind; of specifications all that are known.
pub fn listing(directory: &Path, kind: u32, selection: &OsStr, image: &OsStr) -> io::Result<Vec<u8>> {
    if kind == answer_kind::FEATURES {
        let mut all: Vec<_> = names(directory, kind)?.iter().map(|name| specification_key(name.as_bytes())).collect();
        all.sort_unstable();
        return Ok(all.concat());
    }
    let mut listing = Listing::default();
    for name in names(directory, kind)? {
        let name = name.as_bytes();
        if is_selected(kind, selection.as_bytes(), name) && !is_unlisted(name, image.as_bytes()) {
            listing.add(name);
        }
    }
    Ok(listing.finish().to_vec())
}

/// Whether this specification was not known, and its gem may have one of these features.
fn is_new_with(directory: &Path, known: &[u8], features: &OsStr, file: &OsStr) -> bool {
    let (features, name) = (features.as_bytes(), file.as_bytes());
    if !is_selected(answer_kind::FEATURES, features, name) || is_known(known, name) {
        return false;
    }
    let mut start = Vec::new();
    let read = trust::look::open(&directory.join(file));
    let read = read.and_then(|file| file.take(MAX_START as u64).read_to_end(&mut start));
    let is_file = |path: &[u8]| directory.join(OsStr::from_bytes(&path[..path.len() - 1])).is_file();
    read.is_err() || may_have_feature(features, name, &start, is_file)
}

/// The answers that an image has of a directory: names, and what was answered.
pub fn recorded(all: &[u8], row: &Directory) -> Result<Vec<(OsString, DirectoryAnswer)>> {
    if row.answers_size == 0 {
        return Ok(Vec::new());
    }
    // The rows of an image that could be opened lie inside.
    let part = &all[row.answers_offset as usize..][..row.answers_size as usize];
    let mut answers = AnswersReader::parse(part, row.answers_sum)?;
    let mut found = Vec::new();
    while let Some(answer) = answers.next()? {
        found.push((OsString::from_vec(answer.bare_name().to_vec()), DirectoryAnswer::of(&answer)));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn each_kind_of_answer_is_told_from_every_other() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("file"), "").unwrap();
        fs::create_dir(top.path().join("directory")).unwrap();
        symlink("file", top.path().join("link")).unwrap();
        symlink("nowhere", top.path().join("dangling")).unwrap();
        let socket = std::os::unix::net::UnixListener::bind(top.path().join("socket")).unwrap();
        let names = ["none", "none/below", "file", "file/below", "directory", "link", "dangling", "socket"];
        let holds = |fact: DirectoryAnswer| -> Vec<&str> {
            names.into_iter().filter(|name| fact.holds(top.path(), OsStr::new(name), OsStr::new(""))).collect()
        };
        assert_eq!(holds(DirectoryAnswer::Absent), ["none", "none/below", "file/below"]);
        assert_eq!(holds(DirectoryAnswer::Directory), ["directory"]);
        assert_eq!(holds(DirectoryAnswer::Plain), ["file", "directory", "socket"]);
        assert_eq!(holds(DirectoryAnswer::Link("file".into())), ["link"]);
        assert_eq!(holds(DirectoryAnswer::Special), ["socket"]);
        drop(socket);
    }

    #[test]
    fn a_list_leaves_out_what_snapboot_and_python_write() {
        let top = tempfile::tempdir().unwrap();
        let digest = |ending: &str| {
            listing(top.path(), answer_kind::LISTING, OsStr::new(ending), OsStr::new("app.img")).unwrap()
        };
        fs::write(top.path().join("a.pth"), "").unwrap();
        let (all, some) = (digest(""), digest(".pth"));
        for own in ["app.img", "app.img.seen", "app.img.seen~", ".app.img.freezing-12", "__pycache__"] {
            fs::write(top.path().join(own), "").unwrap();
            assert_eq!(digest(""), all, "{own}");
        }
        fs::write(top.path().join("b.py"), "").unwrap();
        assert!(digest("") != all && digest(".pth") == some);
        fs::write(top.path().join("app.img.txt"), "").unwrap();
        fs::write(top.path().join("b.pth"), "").unwrap();
        assert!(digest(".pth") != some);
    }
}
