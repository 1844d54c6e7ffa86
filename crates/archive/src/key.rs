//! The key of an entry: its kind, the context in which it holds, and its name.

use crc32fast::Hasher;
use sha2::{Digest, Sha256};

/// The kind of an entry's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Compiled code of one source file.
    Code = 1,
    /// The parsed content of one data file.
    Data = 2,
    /// The names in a directory: a [`crate::DirectoryList`].
    Directory = 3,
    /// Anything else that was computed from inputs: features of gems, the size of the heap.
    Memo = 4,
    /// The description of a context.
    Context = 5,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Kind; 5] = [Kind::Code, Kind::Data, Kind::Directory, Kind::Memo, Kind::Context];

    /// The kind's name in messages and in the document.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Code => "code",
            Kind::Data => "data",
            Kind::Directory => "directory",
            Kind::Memo => "memo",
            Kind::Context => "context",
        }
    }

    fn from_number(number: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// What must be equal for an entry to be valid: the runtime, its version, its compiler settings.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Context {
    /// The first bytes of the description's SHA-256, which stand for it in keys.
    pub id: [u8; 8],
    /// The description, for people.
    pub description: String,
}

impl Context {
    /// The context of a description: equal descriptions are one context.
    pub fn new(description: impl Into<String>) -> Self {
        let description = description.into();
        let digest = Sha256::digest(description.as_bytes());
        let mut id = [0; 8];
        id.copy_from_slice(&digest[..8]);
        Context { id, description }
    }

    /// For data that no runtime affects, such as the names in a directory.
    pub fn any() -> Self {
        Context::new("any")
    }
}

/// Bytes of a key before its name.
pub(crate) const KEY_PREFIX: usize = 9;

/// A key, split into its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'a> {
    /// The kind of the entry's payload.
    pub kind: Kind,
    /// The context's id.
    pub context: [u8; 8],
    /// Mostly a path; below the application's root it starts with `./`.
    pub name: &'a [u8],
}

impl<'a> Key<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (prefix, name) = bytes.split_first_chunk::<KEY_PREFIX>()?;
        let (kind, context) = prefix.split_first()?;
        Some(Key { kind: Kind::from_number(*kind)?, context: context.try_into().ok()?, name })
    }
}

/// Kind and context, prepared for look-ups: the part of a key that many of them share.
#[derive(Clone, Debug)]
pub struct Scope {
    prefix: [u8; KEY_PREFIX],
    sum: Hasher,
}

impl Scope {
    /// Prepares the look-ups of a kind in a context.
    pub fn new(kind: Kind, context: &Context) -> Self {
        let mut prefix = [kind as u8; KEY_PREFIX];
        prefix[1..].copy_from_slice(&context.id);
        Self::of_prefix(prefix)
    }

    /// Splits a key into the scope and the name.
    pub(crate) fn of_key(key: &[u8]) -> Option<(Self, &[u8])> {
        key.split_first_chunk().map(|(prefix, name)| (Self::of_prefix(*prefix), name))
    }

    fn of_prefix(prefix: [u8; KEY_PREFIX]) -> Self {
        let mut sum = Hasher::new();
        sum.update(&prefix);
        Scope { prefix, sum }
    }

    /// The checksum of the key whose name is made of these parts.
    pub(crate) fn key_sum(&self, name: &[&[u8]]) -> u32 {
        let mut sum = self.sum.clone();
        name.iter().for_each(|part| sum.update(part));
        sum.finalize()
    }

    /// Whether a key has the name made of these parts.
    pub(crate) fn is_key(&self, key: &[u8], name: &[&[u8]]) -> bool {
        key.strip_prefix(&self.prefix).is_some_and(|rest| is_joined(rest, name))
    }

    /// The whole key of a name.
    pub(crate) fn key(&self, name: &[u8]) -> Vec<u8> {
        [&self.prefix, name].concat()
    }
}

/// Whether `whole` is the concatenation of `parts`.
pub(crate) fn is_joined(mut whole: &[u8], parts: &[&[u8]]) -> bool {
    for part in parts {
        match whole.strip_prefix(*part) {
            Some(rest) => whole = rest,
            None => return false,
        }
    }
    whole.is_empty()
}
