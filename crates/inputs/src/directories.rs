//! Directories as inputs: the answers that look-ups in them gave during the boot, whether they still give them, and the
//! messages about answers that have changed.
//!
//! To add a kind of answer: its number and form in crates/image answers.rs; here, its check in [`gives_answer`], its
//! message and its details; its form outside an image in crates/image-file directory_answers.rs; and its recording in
//! crates/freeze boot_inputs (dependencies.rs; importers.rs for lists).

use core::fmt::{self, Write};

use image::{
    answer_kind, directory_flag, is_known, is_list, is_selected, is_unlisted, may_have_feature, AnswersReader,
    Directory, Input, Listing, RecordedAnswer, Section, Tables, MAX_START,
};

use crate::files::{self, times_match, Role};
use crate::system::{Check, FileKind, Result as SystemResult, Status, System};
use crate::words::{without_nul, Lossy, Words};
use crate::Errno;

/// For fewer absent names than this, looking each up is as fast as listing the directory.
const WORTH_LISTING: usize = 8;

/// Answers of more bytes than this are remembered; fewer are looked up again faster than a file is written.
const WORTH_REMEMBERING: u64 = 1024;

/// A difference in a directory.
#[derive(Clone, Copy, Debug)]
pub enum Difference<'t, 'n> {
    /// The directory cannot be opened.
    Gone {
        /// Its path, which ends with a NUL.
        path: &'t [u8],
        /// The kernel's error.
        errno: Errno,
    },
    /// A look-up gives another answer.
    Answer {
        /// Its path, which ends with a NUL.
        path: &'t [u8],
        /// The recorded answer.
        answer: RecordedAnswer<'n>,
        /// The kernel's error, if the look-up failed.
        errno: Option<Errno>,
    },
}

impl<'t, 'n> Difference<'t, 'n> {
    /// The path of the directory, without a NUL.
    pub fn path(&self) -> &'t [u8] {
        match self {
            Difference::Gone { path, .. } | Difference::Answer { path, .. } => without_nul(path),
        }
    }

    /// The name in the directory that differs; empty for the directory itself, and for a list.
    pub fn name(&self) -> &'n [u8] {
        match self {
            Difference::Answer { answer, .. } if !is_list(answer.kind) => answer.bare_name(),
            _ => b"",
        }
    }

    pub(crate) fn words(&self) -> Words<'t, 'n> {
        const GONE: &str = "stale: this directory is gone";
        const DENIED: &str = "stale: this user may not search this directory";
        let (text, errno) = match *self {
            Difference::Gone { errno, .. } => (if errno == Errno::EACCES { DENIED } else { GONE }, Some(errno)),
            Difference::Answer { answer, errno, .. } if errno == Some(Errno::EACCES) => match is_list(answer.kind) {
                true => (DENIED, errno),
                false => ("stale: this user may not look up this file", errno),
            },
            Difference::Answer { answer, errno, .. } => {
                let text = match answer.kind {
                    answer_kind::ABSENT | answer_kind::BELOW => {
                        "stale: this exists now; the boot looked it up and did not find it"
                    }
                    answer_kind::DIRECTORY => GONE,
                    answer_kind::PLAIN => "stale: this has become a symbolic link, or is gone",
                    answer_kind::UNLINKED => "stale: this has become a symbolic link",
                    answer_kind::LINK => "stale: this symbolic link leads elsewhere now, or is gone",
                    answer_kind::SPECIAL | answer_kind::FILE => "stale: this has become another kind of file, or is gone",
                    answer_kind::DISTRIBUTIONS => {
                        "stale: this directory lists other Python packages, or other versions, among those that the boot looked up"
                    }
                    answer_kind::MATCHING => {
                        "stale: this directory lists other names among those that the boot looked up"
                    }
                    answer_kind::FEATURES => {
                        "stale: this directory lists a new gem with a feature that the boot looked up"
                    }
                    _ => "stale: this directory lists other names",
                };
                (text, errno)
            }
        };
        Words { name: self.name(), errno, ..Words::about(text, self.path()) }
    }

    pub(crate) fn write_details(&self, system: &impl System, out: &mut dyn Write) -> fmt::Result {
        let directory = Lossy(self.path());
        let (path, answer) = match *self {
            Difference::Answer { path, answer, .. } => (path, answer),
            Difference::Gone { errno, .. } if errno.is_absence() => {
                return write!(out, "{directory}: directory -> gone")
            }
            Difference::Gone { errno, .. } => return write!(out, "{directory}: directory -> {errno}"),
        };
        if is_list(answer.kind) {
            write!(out, "{directory}: lists other ")?;
            write_selection(&answer, out)?;
            return out.write_str(" than when the program booted");
        }
        write!(out, "{directory}/{}: ", Lossy(answer.bare_name()))?;
        let is_followed = matches!(answer.kind, answer_kind::DIRECTORY | answer_kind::SPECIAL | answer_kind::FILE);
        match answer.kind {
            answer_kind::ABSENT | answer_kind::BELOW => out.write_str("absent when the boot looked it up")?,
            answer_kind::LINK => write!(out, "symbolic link to {}", Lossy(answer.value))?,
            kind => out.write_str(kind_name(kind))?,
        }
        out.write_str(" -> ")?;
        match system.open_directory(path) {
            Ok(open) => {
                let written = write_state(system, &open, answer.name, is_followed, out);
                system.close(open);
                written
            }
            Err(errno) => write!(out, "{errno}"),
        }
    }
}

/// A kind of answer in a few words.
pub fn kind_name(kind: u32) -> &'static str {
    match kind {
        answer_kind::ABSENT | answer_kind::BELOW => "absent",
        answer_kind::DIRECTORY => "directory",
        answer_kind::PLAIN | answer_kind::UNLINKED => "not a symbolic link",
        answer_kind::LINK => "symbolic link",
        answer_kind::SPECIAL => "special file",
        answer_kind::FILE => "file",
        _ => "list of names",
    }
}

/// Writes the names that count for a list.
fn write_selection(answer: &RecordedAnswer<'_>, out: &mut dyn Write) -> fmt::Result {
    let selection = answer.bare_name();
    let several = |between: u8, out: &mut dyn Write| {
        let mut parts = selection.split(|&byte| byte == between);
        write!(out, " ({}", Lossy(parts.next().unwrap_or_default()))?;
        parts.try_for_each(|part| write!(out, ", {}", Lossy(part)))?;
        out.write_str(")")
    };
    match answer.kind {
        answer_kind::DISTRIBUTIONS if selection.is_empty() => out.write_str("Python packages"),
        answer_kind::DISTRIBUTIONS => out.write_str("Python packages").and_then(|()| several(b'/', out)),
        answer_kind::MATCHING => out.write_str("files").and_then(|()| several(b'/', out)),
        answer_kind::FEATURES => out.write_str("gems with one of these features").and_then(|()| several(b'\n', out)),
        _ if selection.is_empty() => out.write_str("names"),
        _ => write!(out, "*{} files", Lossy(selection)),
    }
}

/// Writes what a name leads to now.
fn write_state<S: System>(
    system: &S,
    directory: &S::Directory,
    name: &[u8],
    is_followed: bool,
    out: &mut dyn Write,
) -> fmt::Result {
    let status = if is_followed { system.stat(Some(directory), name) } else { system.stat_link(directory, name) };
    out.write_str(match status.map(|status| status.kind()) {
        Ok(FileKind::Regular) => "new file",
        Ok(FileKind::Directory) => "directory",
        Ok(FileKind::Special) => "special file",
        Ok(FileKind::Link) => {
            let mut target = [0; 4096];
            let size = system.read_link(directory, name, &mut target).unwrap_or(0);
            return write!(out, "symbolic link to {}", Lossy(&target[..size]));
        }
        Err(errno) if errno.is_absence() => "absent",
        Err(_) => "cannot be looked up",
    })
}

/// Compares every directory and the files in it, directory by directory.
pub(crate) fn compare_all<'t, S, C>(tables: &Tables<'t>, policy: u32, system: &S, check: &mut C) -> Result<(), C::Stop>
where
    S: System<Stop = C::Stop>,
    C: Check<'t>,
{
    if policy == image::policy::TRUST {
        return Ok(());
    }
    let mut inputs = tables.rows::<Input>(Section::Inputs)?.enumerate();
    for (directory, row) in tables.rows::<Directory>(Section::Directories)?.enumerate() {
        let path = tables.text_with_nul(row.path)?;
        let may_be_absent = row.flags & directory_flag::MAY_BE_ABSENT != 0;
        let place = if may_be_absent && matches!(system.stat(None, path), Err(Errno::ENOENT | Errno::ENOTDIR)) {
            Place { path, open: None }
        } else {
            let place = Place::find(path, &row, system);
            place.compare_answers(&row, policy, system, check)?;
            place
        };
        for (number, input) in inputs.by_ref().take(row.inputs as usize) {
            let path = tables.text_with_nul(input.path)?;
            let role = if place.is_relative() { Role::Here } else { Role::Input };
            let now = place.stat(path, system);
            files::compare(tables, (number, input), (policy, role), now, (system, check))?;
        }
        place.close(system);
        check.has_done(directory);
    }
    Ok(())
}

/// A directory of inputs. With hundreds of inputs most of the time goes into walking down deep paths, which look-ups
/// from an open directory avoid.
struct Place<'t, S: System> {
    path: &'t [u8],
    open: Option<SystemResult<S::Directory>>,
}

impl<'t, S: System> Place<'t, S> {
    fn find(path: &'t [u8], row: &Directory, system: &S) -> Self {
        let is_worth_it = path.starts_with(b"/") && row.inputs >= S::WORTH_OPENING;
        Place { path, open: is_worth_it.then(|| system.open_directory(path)) }
    }

    /// Whether its path, and that of its inputs, is relative to the start directory.
    fn is_relative(&self) -> bool {
        !self.path.starts_with(b"/")
    }

    /// The status of the directory itself.
    fn status(&self, system: &S) -> SystemResult<Status> {
        match &self.open {
            Some(Ok(open)) => system.status(open),
            Some(Err(errno)) => Err(*errno),
            None => system.stat(None, self.path),
        }
    }

    /// The status of a file in it, by its path.
    fn stat(&self, path: &[u8], system: &S) -> SystemResult<Status> {
        let Some(Ok(directory)) = &self.open else { return system.stat(None, path) };
        let name = path.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
        system.stat(Some(directory), &path[name..])
    }

    fn close(self, system: &S) {
        if let Some(Ok(directory)) = self.open {
            system.close(directory);
        }
    }

    /// Compares the directory: whether it exists and, unless its times are unchanged, its answers.
    fn compare_answers<C: Check<'t, Stop = S::Stop>>(
        &self,
        row: &Directory,
        policy: u32,
        system: &S,
        check: &mut C,
    ) -> Result<(), C::Stop> {
        if row.answers_size == 0 {
            return match self.open {
                Some(Err(errno)) => check.differs(self.gone(errno)),
                _ => Ok(()),
            };
        }
        if self.is_relative() {
            return self.repeat_lookups(row, system, check).map(|_| ());
        }
        let now = match self.status(system) {
            Ok(now) => now,
            Err(errno) => return check.differs(self.gone(errno)),
        };
        if times_match(policy, &now, row.mtime, row.ctime) {
            return Ok(());
        }
        let is_quick = row.answers_size < WORTH_REMEMBERING || row.flags & directory_flag::DEEP != 0;
        // Remembering the times of the image's own directory would change them.
        if is_quick || system.is_home(&now) {
            return self.repeat_lookups(row, system, check).map(|_| ());
        }
        let bare = without_nul(self.path);
        let is_known = check.knows(bare, &now);
        if is_known || self.repeat_lookups(row, system, check)? {
            check.remember(bare, &now, !is_known);
        }
        Ok(())
    }

    /// Repeats all recorded look-ups. Returns whether all answers are the same.
    fn repeat_lookups<C: Check<'t, Stop = S::Stop>>(
        &self,
        row: &Directory,
        system: &S,
        check: &mut C,
    ) -> Result<bool, C::Stop> {
        if let Some(Ok(directory)) = &self.open {
            return self.repeat_lookups_in(directory, row, system, check);
        }
        let directory = match system.open_directory(self.path) {
            Ok(directory) => directory,
            Err(errno) => return check.differs(self.gone(errno)).map(|()| false),
        };
        let result = self.repeat_lookups_in(&directory, row, system, check);
        system.close(directory);
        result
    }

    /// Not inlined, since its code would be there twice.
    #[inline(never)]
    fn repeat_lookups_in<C: Check<'t, Stop = S::Stop>>(
        &self,
        directory: &S::Directory,
        row: &Directory,
        system: &S,
        check: &mut C,
    ) -> Result<bool, C::Stop> {
        let mut answers = AnswersReader::parse(system.answers(row)?, row.answers_sum)?;
        // The directory contains none of the absent names, so all of these are still absent.
        let is_clean = answers.absent() >= WORTH_LISTING && !may_have_absent_name(system, directory, &answers);
        let mut all_hold = true;
        while let Some(answer) = answers.next()? {
            let is_known = is_clean && answer.kind == answer_kind::ABSENT;
            let holds = if is_known { Ok(true) } else { gives_answer(system, directory, &answer) };
            if holds != Ok(true) {
                all_hold = false;
                let (path, errno) = (self.path, holds.err());
                check.differs(crate::Difference::Directory(Difference::Answer { path, answer, errno }))?;
            }
        }
        Ok(all_hold)
    }

    fn gone(&self, errno: Errno) -> crate::Difference<'t, 'static> {
        crate::Difference::Directory(Difference::Gone { path: self.path, errno })
    }
}

/// Whether a directory may contain one of the absent names; true if it cannot be listed.
fn may_have_absent_name<S: System>(system: &S, directory: &S::Directory, answers: &AnswersReader<'_>) -> bool {
    let mut found = false;
    let listed = system.list(directory, &mut |name| found |= answers.may_be_absent(name));
    found || listed.is_err()
}

/// Whether a look-up in a directory gives the recorded answer. Fails if the look-up fails.
pub fn gives_answer<S: System>(
    system: &S,
    directory: &S::Directory,
    answer: &RecordedAnswer<'_>,
) -> SystemResult<bool> {
    let itself = || system.stat_link(directory, answer.name).map(|status| status.kind());
    let behind = || system.stat(Some(directory), answer.name).map(|status| status.kind());
    let unless_absent = |found: SystemResult<FileKind>, then: fn(FileKind) -> bool| match found {
        Err(errno) if errno.is_absence() => Ok(true),
        found => found.map(then),
    };
    match answer.kind {
        answer_kind::ABSENT | answer_kind::BELOW => unless_absent(itself(), |_| false),
        answer_kind::UNLINKED => unless_absent(itself(), |kind| kind != FileKind::Link),
        answer_kind::PLAIN => itself().map(|kind| kind != FileKind::Link),
        answer_kind::DIRECTORY => behind().map(|kind| kind == FileKind::Directory),
        answer_kind::SPECIAL => behind().map(|kind| kind == FileKind::Special),
        answer_kind::FILE => behind().map(|kind| kind == FileKind::Regular),
        answer_kind::LINK => {
            let mut target = [0; 4096];
            system.read_link(directory, answer.name, &mut target).map(|size| target[..size] == *answer.value)
        }
        answer_kind::FEATURES => {
            let mut has_none = true;
            system.list(directory, &mut |name| has_none &= !is_new_with_feature(system, directory, answer, name))?;
            Ok(has_none)
        }
        _ => lists_same_names(system, directory, answer),
    }
}

/// Whether the recorded answer is the one that a missing directory gives.
pub fn missing_gives_answer(answer: &RecordedAnswer<'_>) -> bool {
    match answer.kind {
        answer_kind::ABSENT | answer_kind::BELOW | answer_kind::UNLINKED | answer_kind::FEATURES => true,
        answer_kind::DISTRIBUTIONS | answer_kind::MATCHING => *answer.value == Listing::default().finish(),
        _ => false,
    }
}

/// Whether a name counts for a list of this kind. `image` is the name of the image if it lies in that directory.
pub fn is_listed(kind: u32, selection: &[u8], name: &[u8], image: &[u8]) -> bool {
    is_selected(kind, selection, name) && !is_unlisted(name, image)
}

/// Whether a directory lists the same names, among those that the answer is about.
fn lists_same_names<S: System>(
    system: &S,
    directory: &S::Directory,
    answer: &RecordedAnswer<'_>,
) -> SystemResult<bool> {
    let (mut listing, mut listed) = (Listing::default(), Ok(()));
    system.with_image_name(&mut |own| {
        listed = system.list(directory, &mut |name| {
            if is_listed(answer.kind, answer.bare_name(), name, own) {
                listing.add(name);
            }
        });
    });
    listed.map(|()| listing.finish() == *answer.value)
}

/// Whether this is a new specification whose gem may have one of the answer's features.
fn is_new_with_feature<S: System>(
    system: &S,
    directory: &S::Directory,
    answer: &RecordedAnswer<'_>,
    name: &[u8],
) -> bool {
    if !is_selected(answer.kind, answer.bare_name(), name) || is_known(answer.value, name) {
        return false;
    }
    let mut path = [0; 256];
    let Some(place) = path[..255].get_mut(..name.len()) else { return true };
    place.copy_from_slice(name);
    let mut start = [0; MAX_START];
    let Ok(size) = system.read_start(directory, &path[..=name.len()], &mut start) else { return true };
    may_have_feature(answer.bare_name(), name, &start[..size], |path| {
        system.stat(Some(directory), path).is_ok_and(|status| status.kind() == FileKind::Regular)
    })
}
