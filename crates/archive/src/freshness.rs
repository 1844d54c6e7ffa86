//! Whether the inputs of an entry are unchanged.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::entry::{Entry, Row};
use crate::identity::{Content, Identity};
use crate::location::Root;
use crate::records::input_kind;

/// How inputs are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// By size and times; where only times differ, by content.
    #[default]
    Check,
    /// Always by content.
    Content,
    /// Files and directories are not checked at all; variables are compared.
    Trust,
}

impl Policy {
    /// The policy of that name (`check`, `content`, `trust`).
    pub fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"check" => Some(Policy::Check),
            b"content" => Some(Policy::Content),
            b"trust" => Some(Policy::Trust),
            _ => None,
        }
    }
}

/// The state of the inputs of an entry, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Freshness {
    /// They are as recorded.
    Fresh,
    /// Their times have changed, their content has not: the entry holds, and may be stored again with the new times
    /// ([`crate::Batch::again`]).
    Revalidated,
    /// An input has changed, or cannot be read: the entry does not hold.
    Stale,
}

pub(crate) fn check(entry: &Entry<'_>, root: &Root, policy: Policy, known: Option<&Identity>) -> Freshness {
    let mut all = Freshness::Fresh;
    for row in entry.inputs() {
        let name = entry.name_of(&row);
        let known = known.filter(|_| row.name.is_empty());
        all = all.max(check_row(&row, name, root, policy, known));
        if all == Freshness::Stale {
            break;
        }
    }
    all
}

fn check_row(row: &Row<'_>, name: &[u8], root: &Root, policy: Policy, known: Option<&Identity>) -> Freshness {
    match row.input.kind {
        input_kind::FILE | input_kind::DIRECTORY if policy != Policy::Trust => {
            let identity = match known {
                Some(known) => Some(*known),
                None => root.with_path(name, |path| Identity::stat(path).ok()),
            };
            identity.map_or(Freshness::Stale, |identity| check_file(row, name, root, policy, &identity))
        }
        input_kind::ABSENT if policy != Policy::Trust => {
            let answer = root.with_path(name, |path| rustix::fs::stat(path).map(|_| ()));
            when(matches!(answer, Err(Errno::NOENT | Errno::NOTDIR)))
        }
        input_kind::FILE | input_kind::DIRECTORY | input_kind::ABSENT => Freshness::Fresh,
        input_kind::VARIABLE => when(std::env::var_os(OsStr::from_bytes(name)).is_some_and(|value| {
            let value = value.as_bytes();
            value.len() as u64 == row.input.size && *Sha256::digest(value) == row.input.digest
        })),
        input_kind::UNSET => when(std::env::var_os(OsStr::from_bytes(name)).is_none()),
        _ => Freshness::Stale,
    }
}

fn check_file(row: &Row<'_>, name: &[u8], root: &Root, policy: Policy, identity: &Identity) -> Freshness {
    let input = &row.input;
    if identity.is_directory != (input.kind == input_kind::DIRECTORY) || identity.size != input.size {
        return Freshness::Stale;
    }
    let is_same = (identity.mtime, identity.ctime) == (input.mtime, input.ctime);
    if is_same && policy == Policy::Check {
        return Freshness::Fresh;
    }
    let path = root.join(name);
    match Content::read(Path::new(OsStr::from_bytes(&path))) {
        Ok(content) if content.digest == input.digest && content.identity.is_directory == identity.is_directory => {
            if is_same {
                Freshness::Fresh
            } else {
                Freshness::Revalidated
            }
        }
        _ => Freshness::Stale,
    }
}

fn when(is_fresh: bool) -> Freshness {
    if is_fresh {
        Freshness::Fresh
    } else {
        Freshness::Stale
    }
}
