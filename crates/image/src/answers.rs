//! The answers that directories gave when the boot looked names up in them: absent names, links, lists.
//!
//! A boot that searches a path looks up tens of thousands of absent names. The answers lie outside the tables, so a
//! start reads none of them while the times of their directory show that nothing was added or removed. Otherwise a list
//! of the directory shows fastest whether one of these names has appeared. So the answers start with marks of all names
//! that may not appear. The answers themselves follow, sorted by name, and each name omits the prefix that it shares
//! with the name before.

use crate::Error;

/// Longest name of an answer (bytes). The kernel takes no longer path.
pub const MAX_NAME: usize = 4095;

/// Bytes before the name of an answer: its kind, and how many bytes it shares with the name before.
const PREFIX: usize = 2;

/// What a directory answered when the boot looked up a name: see [`crate::AnswersReader`].
pub mod answer_kind {
    /// There is nothing of that name.
    pub const ABSENT: u32 = 1;
    /// It is a directory, or leads to one.
    pub const DIRECTORY: u32 = 2;
    /// It is there, and is no symbolic link.
    pub const PLAIN: u32 = 3;
    /// It is a symbolic link; `value` is its target.
    pub const LINK: u32 = 4;
    /// It is there, and is neither a regular file nor a directory.
    pub const SPECIAL: u32 = 5;
    /// Not one name but all that end in `name`: `value` is the digest of the list.
    pub const LISTING: u32 = 6;
    /// There is nothing of that name, because what its first part names is there and no directory.
    pub const BELOW: u32 = 7;
    /// A list, as [`LISTING`], of what tells of Python's distributions (`*.dist-info` and the like): of those named in
    /// `name`, with `/` between, or of all where it is empty.
    pub const DISTRIBUTIONS: u32 = 8;
    /// A list, as [`LISTING`], of what matches one of the patterns in `name`, with `/` between: each has one `*`.
    pub const MATCHING: u32 = 9;
    /// No other gem has one of the features in `name`, with line feeds between: `value` has the known specifications of
    /// RubyGems' in the directory. See [`crate::is_known`] and [`crate::may_have_feature`].
    pub const FEATURES: u32 = 10;
    /// There is nothing of that name, or what is no symbolic link.
    pub const UNLINKED: u32 = 11;
    /// It is a regular file, or leads to one.
    pub const FILE: u32 = 12;
}

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedAnswer<'a> {
    /// One of [`answer_kind`].
    pub kind: u32,
    /// The name relative to the directory, with its final NUL.
    pub name: &'a [u8],
    /// Target of a link, or digest of a list; otherwise empty.
    pub value: &'a [u8],
}

impl<'a> RecordedAnswer<'a> {
    /// The name without its NUL.
    pub fn bare_name(&self) -> &'a [u8] {
        &self.name[..self.name.len() - 1]
    }
}

/// Size of a mark, and of the number of marks (bytes).
const MARK: usize = 4;

/// The mark of an absent name: a hash of its first component.
pub fn mark(name: &[u8]) -> u32 {
    let first = name.split(|&byte| byte == b'/').next().unwrap_or(name);
    crate::checksum(first) as u32
}

/// Reads the answers of one directory.
pub struct AnswersReader<'a> {
    marks: &'a [[u8; MARK]],
    rest: &'a [u8],
    name: [u8; MAX_NAME + 1],
    length: usize,
}

impl<'a> AnswersReader<'a> {
    /// `bytes` are the answers of one directory. Fails if `sum` is not their checksum.
    pub fn parse(bytes: &'a [u8], sum: u64) -> Result<AnswersReader<'a>, Error> {
        if crate::checksum(bytes) != sum {
            return Err(Error::Damaged { what: "answers" });
        }
        let Some((count, rest)) = bytes.split_first_chunk().filter(|_| !bytes.is_empty()) else {
            return Err(damaged(bytes.len()));
        };
        let count = u32::from_le_bytes(*count) as usize;
        let size = count.checked_mul(MARK).ok_or(damaged(count))?;
        let (marks, rest) = rest.split_at_checked(size).ok_or(damaged(count))?;
        Ok(AnswersReader { marks: marks.as_chunks().0, rest, name: [0; MAX_NAME + 1], length: 0 })
    }

    /// The number of absent names with different first components.
    pub fn absent(&self) -> usize {
        self.marks.len()
    }

    /// Whether a name may have been absent, or may be the first component of one that was. False is certain.
    pub fn may_be_absent(&self, name: &[u8]) -> bool {
        let wanted = mark(name);
        self.marks.binary_search_by(|mark| u32::from_le_bytes(*mark).cmp(&wanted)).is_ok()
    }

    /// The next answer; None at the end. Fails on bytes that no writer writes.
    #[allow(clippy::should_implement_trait)] // The name is borrowed from the reader.
    pub fn next(&mut self) -> Result<Option<RecordedAnswer<'_>>, Error> {
        let Some((prefix, rest)) = self.rest.split_first_chunk::<PREFIX>() else {
            return if self.rest.is_empty() { Ok(None) } else { Err(damaged(self.rest.len())) };
        };
        let (kind, shared) = (u32::from(prefix[0]), usize::from(prefix[1]));
        let (own, rest) = string(rest)?;
        let place = self.name.get_mut(shared..shared + own.len()).filter(|_| shared <= self.length);
        place.ok_or(damaged(shared))?.copy_from_slice(own);
        self.length = shared + own.len();
        *self.name.get_mut(self.length).ok_or(damaged(self.length))? = 0;
        let (value, rest) = match kind {
            kind if has_value(kind) => string(rest)?,
            answer_kind::ABSENT
            | answer_kind::DIRECTORY
            | answer_kind::PLAIN
            | answer_kind::SPECIAL
            | answer_kind::BELOW
            | answer_kind::UNLINKED
            | answer_kind::FILE => (&rest[..0], rest),
            kind => return Err(Error::OutOfRange { what: "the kind of an answer", value: kind.into() }),
        };
        self.rest = rest;
        Ok(Some(RecordedAnswer { kind, name: &self.name[..=self.length], value }))
    }
}

/// Whether an answer of this kind is a list.
pub fn is_list(kind: u32) -> bool {
    use answer_kind::{DISTRIBUTIONS, FEATURES, LISTING, MATCHING};
    matches!(kind, LISTING | DISTRIBUTIONS | MATCHING | FEATURES)
}

/// Whether an answer of this kind has a value.
pub fn has_value(kind: u32) -> bool {
    kind == answer_kind::LINK || is_list(kind)
}

/// Splits off a string and its NUL.
fn string(bytes: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let end = bytes.iter().position(|&byte| byte == 0).ok_or(damaged(bytes.len()))?;
    Ok((&bytes[..end], &bytes[end + 1..]))
}

fn damaged(value: usize) -> Error {
    Error::OutOfRange { what: "the length of an answer", value: value as u64 }
}

/// The digest of a set of names. Their order does not matter, since directories have none.
#[derive(Clone, Copy, Default)]
pub struct Listing {
    sum: u128,
    count: u64,
}

impl Listing {
    /// Adds a name.
    pub fn add(&mut self, name: &[u8]) {
        self.sum = self.sum.wrapping_add(u128::from_le_bytes(crate::digest(name)));
        self.count += 1;
    }

    /// The digest in hexadecimal: the sum of the names' digests, and the number of names.
    pub fn finish(&self) -> [u8; 48] {
        let mut text = [0; 48];
        let bytes = self.sum.to_be_bytes().into_iter().chain(self.count.to_be_bytes());
        for (place, byte) in text.chunks_exact_mut(2).zip(bytes) {
            place[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
            place[1] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
        text
    }
}

/// Whether lists leave a name out: files that freezes, thaws and imports themselves put beside others. `image` is the
/// name of the image in this directory, or empty if it is elsewhere.
pub fn is_unlisted(name: &[u8], image: &[u8]) -> bool {
    if matches!(name, b"." | b".." | b"__pycache__") {
        return true;
    }
    if image.is_empty() {
        return false;
    }
    let rest =
        |name: &[u8]| name.strip_prefix(image).map(|rest| matches!(rest, b"" | b".seen" | b".seen~" | b".thaws"));
    let hidden = name.strip_prefix(b".").and_then(|name| name.strip_prefix(image));
    rest(name) == Some(true) || hidden.is_some_and(|rest| rest.starts_with(b".freezing-"))
}
