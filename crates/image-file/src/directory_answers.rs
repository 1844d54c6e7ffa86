//! The answers of look-ups in directories, for code that records and shows them. crates/inputs directories.rs compares
//! them.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use failure::Result;
use image::{answer_kind, specification_key, AnswersReader, Directory, Listing, RecordedAnswer};
use inputs::directories::{self, is_listed};
use inputs::system::System;

use crate::machine::{Machine, Seen};

/// Answers of a directory, sorted by name.
pub type DirectoryAnswers = BTreeSet<(OsString, DirectoryAnswer)>;

/// An answer; see [`answer_kind`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirectoryAnswer {
    /// Nothing has that name.
    Absent,
    /// Nothing has that name, and something was looked up below it.
    Below,
    /// A directory, or a link to one.
    Directory,
    /// Anything but a symbolic link.
    Plain,
    /// A symbolic link with this target.
    Link(PathBuf),
    /// A device, socket or pipe.
    Special,
    /// Nothing, or anything but a symbolic link.
    Unlinked,
    /// A regular file, or a link to one.
    File,
    /// A list: its kind and its digest.
    Listing(u32, Vec<u8>),
}

impl DirectoryAnswer {
    /// The number and the value in an image.
    pub fn record(&self) -> (u32, &[u8]) {
        match self {
            DirectoryAnswer::Absent => (answer_kind::ABSENT, b""),
            DirectoryAnswer::Below => (answer_kind::BELOW, b""),
            DirectoryAnswer::Directory => (answer_kind::DIRECTORY, b""),
            DirectoryAnswer::Plain => (answer_kind::PLAIN, b""),
            DirectoryAnswer::Link(target) => (answer_kind::LINK, target.as_os_str().as_bytes()),
            DirectoryAnswer::Special => (answer_kind::SPECIAL, b""),
            DirectoryAnswer::Unlinked => (answer_kind::UNLINKED, b""),
            DirectoryAnswer::File => (answer_kind::FILE, b""),
            DirectoryAnswer::Listing(kind, digest) => (*kind, digest),
        }
    }

    fn from_record(answer: &RecordedAnswer<'_>) -> DirectoryAnswer {
        match answer.kind {
            answer_kind::ABSENT => DirectoryAnswer::Absent,
            answer_kind::BELOW => DirectoryAnswer::Below,
            answer_kind::DIRECTORY => DirectoryAnswer::Directory,
            answer_kind::PLAIN => DirectoryAnswer::Plain,
            answer_kind::LINK => DirectoryAnswer::Link(OsString::from_vec(answer.value.to_vec()).into()),
            answer_kind::SPECIAL => DirectoryAnswer::Special,
            answer_kind::UNLINKED => DirectoryAnswer::Unlinked,
            answer_kind::FILE => DirectoryAnswer::File,
            // The reader accepts no other kind.
            kind => DirectoryAnswer::Listing(kind, answer.value.to_vec()),
        }
    }

    /// Whether `name` in `directory` still gives this answer. `image` is the name of the image file, which lists leave
    /// out.
    pub fn is_still_given(&self, directory: &Path, name: &OsStr, image: &OsStr) -> bool {
        let (seen, bytes) = (Seen::default(), directory.as_os_str().as_bytes());
        let machine = Machine { seen: &seen, answers: &[], image };
        let (kind, value) = self.record();
        let name = [name.as_bytes(), b"\0"].concat();
        let answer = RecordedAnswer { kind, name: &name, value };
        match machine.open_directory(bytes) {
            Ok(open) => directories::gives_answer(&machine, &open, &answer).unwrap_or(false),
            Err(errno) => errno.is_absence() && directories::missing_gives_answer(&answer),
        }
    }
}

/// Whether a list of this kind selects names, so that a missing directory counts as an empty one.
pub fn selects_names(kind: u32) -> bool {
    matches!(kind, answer_kind::DISTRIBUTIONS | answer_kind::MATCHING | answer_kind::FEATURES)
}

/// The names in a directory, for a list of this kind.
pub fn names_in(directory: &Path, kind: u32) -> io::Result<BTreeSet<OsString>> {
    match recorder::names_in(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && selects_names(kind) => Ok(BTreeSet::new()),
        names => names,
    }
}

/// The value of a list: the digest of the selected names in a directory, or the keys of all its specifications.
pub fn list_value(directory: &Path, kind: u32, selection: &OsStr, image: &OsStr) -> io::Result<Vec<u8>> {
    if kind == answer_kind::FEATURES {
        let mut all: Vec<_> =
            names_in(directory, kind)?.iter().map(|name| specification_key(name.as_bytes())).collect();
        all.sort_unstable();
        return Ok(all.concat());
    }
    let mut listing = Listing::default();
    for name in names_in(directory, kind)? {
        if is_listed(kind, selection.as_bytes(), name.as_bytes(), image.as_bytes()) {
            listing.add(name.as_bytes());
        }
    }
    Ok(listing.finish().to_vec())
}

/// The recorded answers of a directory, with their names.
pub fn read_answers(all: &[u8], row: &Directory) -> Result<Vec<(OsString, DirectoryAnswer)>> {
    if row.answers_size == 0 {
        return Ok(Vec::new());
    }
    // Opening the image has checked that the rows lie inside.
    let part = &all[row.answers_offset as usize..][..row.answers_size as usize];
    let mut answers = AnswersReader::parse(part, row.answers_sum)?;
    let mut found = Vec::new();
    while let Some(answer) = answers.next()? {
        found.push((OsString::from_vec(answer.bare_name().to_vec()), DirectoryAnswer::from_record(&answer)));
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
            names.into_iter().filter(|name| fact.is_still_given(top.path(), OsStr::new(name), OsStr::new(""))).collect()
        };
        assert_eq!(holds(DirectoryAnswer::Absent), ["none", "none/below", "file/below"]);
        assert_eq!(holds(DirectoryAnswer::Below), ["none", "none/below", "file/below"]);
        assert_eq!(holds(DirectoryAnswer::Directory), ["directory"]);
        assert_eq!(holds(DirectoryAnswer::Plain), ["file", "directory", "socket"]);
        assert_eq!(holds(DirectoryAnswer::Link("file".into())), ["link"]);
        assert_eq!(holds(DirectoryAnswer::Special), ["socket"]);
        let unlinked = ["none", "none/below", "file", "file/below", "directory", "socket"];
        assert_eq!(holds(DirectoryAnswer::Unlinked), unlinked);
        assert_eq!(holds(DirectoryAnswer::File), ["file", "link"]);
        drop(socket);
    }

    #[test]
    fn a_directory_that_is_not_there_has_no_names() {
        let top = tempfile::tempdir().unwrap();
        let gone = top.path().join("gone");
        let holds = |fact: DirectoryAnswer| fact.is_still_given(&gone, OsStr::new("a"), OsStr::new(""));
        assert!(holds(DirectoryAnswer::Absent) && holds(DirectoryAnswer::Unlinked));
        assert!(!holds(DirectoryAnswer::Plain) && !holds(DirectoryAnswer::Directory));
        let list = |directory: &Path, kind| {
            DirectoryAnswer::Listing(kind, list_value(directory, kind, OsStr::new("a"), OsStr::new("")).unwrap())
        };
        assert!(holds(list(&gone, answer_kind::MATCHING)) && holds(list(&gone, answer_kind::FEATURES)));
        fs::write(top.path().join("a"), "").unwrap();
        let here = list(top.path(), answer_kind::LISTING);
        assert!(here.is_still_given(top.path(), OsStr::new("a"), OsStr::new("")));
        assert!(!holds(list(top.path(), answer_kind::MATCHING)));
        assert!(!holds(list(top.path(), answer_kind::LISTING)));
    }

    #[test]
    fn a_list_leaves_out_what_snapboot_and_python_write() {
        let top = tempfile::tempdir().unwrap();
        let digest = |ending: &str| {
            list_value(top.path(), answer_kind::LISTING, OsStr::new(ending), OsStr::new("app.img")).unwrap()
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
