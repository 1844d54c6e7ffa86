//! Repeats the look-ups that the boot made in a directory: where its times have changed, and where times mean nothing.

use image::{
    answer_kind, is_known, is_list, is_selected, is_unlisted, may_have_feature, reserved, AnswersReader, Directory,
    Listing, RecordedAnswer, MAX_START, PAGE,
};
use linux_raw_sys::errno::{EACCES, ENAMETOOLONG, ENOENT, ENOTDIR};
use linux_raw_sys::general::{O_CLOEXEC, O_DIRECTORY, O_PATH, O_RDONLY, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};

use crate::frozen::Frozen;
use crate::reason::{Reason, Thing};
use crate::sidecar::SidecarPath;
use crate::start::without_nul;
use crate::sys::{self, Errno, Fd, FilePart, Memory};

/// With fewer absent names than this, looking each up takes no longer than a list.
const WORTH_LISTING: usize = 8;

/// The answers of the image, mapped when the first directory is looked at again.
pub struct Known {
    image: Fd,
    offset: u64,
    size: u64,
    part: Option<FilePart>,
}

impl Known {
    /// For an image whose head and tables were checked.
    pub fn of(frozen: &Frozen) -> Known {
        Known { image: frozen.file, offset: frozen.head.answers_offset, size: frozen.head.answers_size, part: None }
    }

    /// Repeats all recorded look-ups in a directory. `open` is the directory if it is open; `path` is where it is.
    pub fn ask(&mut self, row: &Directory, path: &'static [u8], open: Option<Fd>) -> Result<(), Reason> {
        let image = self.image;
        let (start, size) = (row.answers_offset as usize, row.answers_size as usize);
        let bytes = self.bytes()?.get(start..start + size).unwrap_or(b"");
        let mut answers = AnswersReader::parse(bytes, row.answers_sum).map_err(Reason::image)?;
        let directory = match open {
            Some(directory) => directory,
            None => sys::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)
                .map_err(|errno| Reason::gone(Thing::Directory, path, errno))?,
        };
        let mut result = Ok(());
        // Nothing in the directory has a name that was absent: then all of these still are.
        let is_clean = answers.absent() >= WORTH_LISTING && !has_one_of(directory, &answers);
        while let Some(answer) = answers.next().map_err(Reason::image)? {
            let is_known = is_clean && answer.kind == answer_kind::ABSENT;
            let holds = if is_known { Ok(true) } else { holds(directory, &answer, image) };
            if holds != Ok(true) {
                result = Err(changed(&answer, path, holds.err()));
                break;
            }
        }
        if open.is_none() {
            sys::close(directory);
        }
        result
    }

    fn bytes(&mut self) -> Result<&[u8], Reason> {
        if self.part.is_none() {
            let part = FilePart::map(reserved::ANSWERS, self.size, self.image, self.offset);
            self.part = Some(part.map_err(|errno| Reason::new("cannot map the answers of directories").errno(errno))?);
        }
        Ok(self.part.as_ref().map_or(b"", FilePart::bytes))
    }
}

/// Whether a directory gives this answer. Fails where it gives none at all.
fn holds(directory: Fd, answer: &RecordedAnswer<'_>, image: Fd) -> sys::Result<bool> {
    let is_kind = |mode: u32, kind| mode & S_IFMT == kind;
    match answer.kind {
        answer_kind::ABSENT | answer_kind::BELOW => match sys::stat_link(directory, answer.name) {
            Err(Errno(ENOENT | ENOTDIR | ENAMETOOLONG)) => Ok(true),
            other => other.map(|_| false),
        },
        answer_kind::UNLINKED => match sys::stat_link(directory, answer.name) {
            Err(Errno(ENOENT | ENOTDIR | ENAMETOOLONG)) => Ok(true),
            other => other.map(|status| !is_kind(status.mode, S_IFLNK)),
        },
        answer_kind::DIRECTORY => sys::stat(Some(directory), answer.name).map(|status| is_kind(status.mode, S_IFDIR)),
        answer_kind::SPECIAL => sys::stat(Some(directory), answer.name)
            .map(|status| !is_kind(status.mode, S_IFDIR) && !is_kind(status.mode, S_IFREG)),
        answer_kind::PLAIN => sys::stat_link(directory, answer.name).map(|status| !is_kind(status.mode, S_IFLNK)),
        answer_kind::LINK => {
            let mut target = [0; 4096];
            sys::read_link_at(directory, answer.name, &mut target).map(|size| target[..size] == *answer.value)
        }
        answer_kind::FEATURES => {
            let mut has_none = true;
            list(directory, |name| has_none &= !is_new_with_feature(directory, answer, name))?;
            Ok(has_none)
        }
        _ => lists(directory, answer, image),
    }
}

/// Whether a directory has a name that may be one of those that were absent; also when it cannot be listed.
fn has_one_of(directory: Fd, answers: &AnswersReader<'_>) -> bool {
    let mut found = false;
    let listed = list(directory, |name| found |= answers.may_be_absent(name));
    found || listed.is_err()
}

/// Whether a directory lists the same names, of those that the answer is about.
fn lists(directory: Fd, answer: &RecordedAnswer<'_>, image: Fd) -> sys::Result<bool> {
    let path = SidecarPath::of(image, "");
    let own = path.as_ref().map_or(&b""[..], |name| without_nul(name.bytes()));
    let own = own.rsplit(|&byte| byte == b'/').next().unwrap_or(b"");
    let mut listing = Listing::default();
    list(directory, |name| {
        if is_selected(answer.kind, answer.bare_name(), name) && !is_unlisted(name, own) {
            listing.add(name);
        }
    })?;
    Ok(listing.finish() == *answer.value)
}

/// Whether this specification was not known, and its gem may have one of the features of the answer.
fn is_new_with_feature(directory: Fd, answer: &RecordedAnswer<'_>, name: &[u8]) -> bool {
    if !is_selected(answer.kind, answer.bare_name(), name) || is_known(answer.value, name) {
        return false;
    }
    let mut path = [0; 256];
    let Some(place) = path[..255].get_mut(..name.len()) else { return true };
    place.copy_from_slice(name);
    let Ok(file) = sys::open_at(directory, &path[..=name.len()], O_RDONLY | O_CLOEXEC) else { return true };
    let mut start = [0; MAX_START];
    let size = sys::read_at(file, &mut start, 0).unwrap_or(0);
    sys::close(file);
    may_have_feature(answer.bare_name(), name, &start[..size], |path| {
        sys::stat(Some(directory), path).is_ok_and(|status| status.mode & S_IFMT == S_IFREG)
    })
}

/// Calls `each` with every name in a directory.
fn list(directory: Fd, mut each: impl FnMut(&[u8])) -> sys::Result<()> {
    let open = sys::open_at(directory, b".\0", O_RDONLY | O_DIRECTORY | O_CLOEXEC)?;
    let result = list_open(open, &mut each);
    sys::close(open);
    result
}

/// The same for one that is open for reading.
pub fn list_open(directory: Fd, each: &mut dyn FnMut(&[u8])) -> sys::Result<()> {
    /// Offsets of d_reclen and d_name in `linux_dirent64`.
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let mut entries = [0; 8192];
    loop {
        let mut rest = match sys::list(directory, &mut entries)? {
            0 => return Ok(()),
            size => &entries[..size],
        };
        while rest.len() > NAME {
            let length = usize::from(u16::from_le_bytes([rest[LENGTH], rest[LENGTH + 1]]));
            let Some((entry, next)) = rest.split_at_checked(length.max(NAME)) else { break };
            each(entry[NAME..].split(|&byte| byte == 0).next().unwrap_or(b""));
            rest = next;
        }
    }
}

/// The reason for the fallback, with the whole path of the name, and what the kernel said if it did not answer.
fn changed(answer: &RecordedAnswer<'_>, path: &'static [u8], errno: Option<Errno>) -> Reason {
    let is_list = is_list(answer.kind);
    let subject = joined(without_nul(path), if is_list { b"" } else { answer.bare_name() });
    if let Some(errno @ Errno(EACCES)) = errno {
        return Reason::gone(if is_list { Thing::Directory } else { Thing::File }, subject, errno);
    }
    let what = match answer.kind {
        answer_kind::ABSENT | answer_kind::BELOW => {
            "stale: this was looked up and not found when the image was made, and is there now"
        }
        answer_kind::DIRECTORY => "stale: this directory cannot be found any more",
        answer_kind::PLAIN => "stale: this is a symbolic link now, or gone",
        answer_kind::UNLINKED => "stale: this is a symbolic link now",
        answer_kind::LINK => "stale: this symbolic link leads elsewhere now, or is gone",
        answer_kind::SPECIAL => "stale: this is another kind of file now, or gone",
        answer_kind::DISTRIBUTIONS => {
            "stale: of the Python packages that were looked up, this directory lists others (or other versions) now"
        }
        answer_kind::MATCHING => "stale: this directory lists other names now, of those that were looked up",
        answer_kind::FEATURES => "stale: this directory lists a gem now with a feature that was looked up",
        _ => "stale: this directory lists other names now",
    };
    let reason = Reason::new(what).subject(subject);
    errno.map_or(reason, |errno| reason.errno(errno))
}

/// A path in memory that stays, for the message; only the directory where there is no memory for more.
fn joined(directory: &'static [u8], name: &[u8]) -> &'static [u8] {
    if name.is_empty() {
        return directory;
    }
    let Ok(page) = Memory::map(reserved::CHANGED_PATH, PAGE) else { return directory };
    let page = page.leak();
    let parts = directory.iter().chain(b"/").chain(name);
    let length = page.iter_mut().zip(parts).map(|(place, &byte)| *place = byte).count();
    &page[..length]
}
