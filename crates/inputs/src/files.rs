//! Files as inputs: what is recorded of each, whether it is unchanged, and the messages about changed ones.
//!
//! A file is unchanged if its size and times are; if only its times differ, its content decides. Copying a tree,
//! `touch`, a hard link and a container layer change nothing but times. Of a file that the whole machine shares, only
//! the answers count that the boot got from it ([`crate::lookups`]).

use core::fmt::{self, Write};

use image::{policy, FileLookup, Input, MappedFile, Section, Tables};

use crate::system::{Check, Result as SystemResult, Status, System};
use crate::words::{without_nul, Lossy, Words};
use crate::{lookups, Errno};

/// The record of a file.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// Bytes.
    pub size: u64,
    /// ns since 1970.
    pub mtime: i64,
    /// ns since 1970.
    pub ctime: i64,
    /// Digest of the content.
    pub digest: [u8; 16],
}

impl From<Input> for Recorded {
    fn from(row: Input) -> Self {
        let Input { size, mtime, ctime, digest, .. } = row;
        Recorded { size, mtime, ctime, digest }
    }
}

impl From<MappedFile> for Recorded {
    fn from(row: MappedFile) -> Self {
        let MappedFile { size, mtime, ctime, digest, .. } = row;
        Recorded { size, mtime, ctime, digest }
    }
}

/// Why an image depends on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The boot read it.
    Input,
    /// The boot read it by a path relative to the start directory: each directory has its own.
    Here,
    /// It is mapped into the process.
    Library,
}

/// A difference in a file.
#[derive(Clone, Copy, Debug)]
pub enum Difference<'t> {
    /// The file cannot be found.
    Gone {
        /// Its path, which ends with a NUL.
        path: &'t [u8],
        /// Why the image depends on it.
        role: Role,
        /// The kernel's error.
        errno: Errno,
    },
    /// The content counts but cannot be read.
    Unreadable {
        /// Its path, which ends with a NUL.
        path: &'t [u8],
        /// Why the image depends on it.
        role: Role,
        /// The kernel's error.
        errno: Errno,
    },
    /// The content has changed.
    Changed {
        /// Its path, which ends with a NUL.
        path: &'t [u8],
        /// Why the image depends on it.
        role: Role,
        /// The recorded state.
        recorded: Recorded,
        /// The present state.
        now: Status,
    },
    /// A look-up in the file gives another answer.
    Answer {
        /// Its path, which ends with a NUL.
        path: &'t [u8],
        /// What was looked up.
        lookup: &'t [u8],
        /// One of [`image::lookup_kind`].
        kind: u32,
    },
}

impl<'t> Difference<'t> {
    /// The path of the file, without a NUL.
    pub fn path(&self) -> &'t [u8] {
        match self {
            Difference::Gone { path, .. }
            | Difference::Unreadable { path, .. }
            | Difference::Changed { path, .. }
            | Difference::Answer { path, .. } => without_nul(path),
        }
    }

    pub(crate) fn words<'n>(&self) -> Words<'t, 'n> {
        let path = self.path();
        match *self {
            Difference::Gone { role, errno, .. } | Difference::Unreadable { role, errno, .. } => {
                let is_gone = matches!(self, Difference::Gone { .. });
                let text = match (role, errno) {
                    (Role::Library, Errno::EACCES) => "stale: this user may not read this library",
                    (Role::Library, _) => "stale: this library can no longer be opened",
                    (_, Errno::EACCES) => "stale: this user may not look up this file",
                    _ if is_gone || errno.is_absence() => "stale: this file is gone",
                    _ => "stale: this file cannot be read",
                };
                Words { errno: Some(errno), ..Words::about(text, path) }
            }
            Difference::Changed { role, .. } => {
                let text = match role {
                    Role::Input => "stale: this file has changed",
                    Role::Here => "stale: the image was made in another directory, where this file differs",
                    Role::Library => "stale: this library has changed",
                };
                Words::about(text, path)
            }
            Difference::Answer { lookup, kind, .. } => Words::about(lookups::change_message(kind), lookup),
        }
    }

    pub(crate) fn write_details(
        &self,
        time: fn(i64, &mut dyn Write) -> fmt::Result,
        out: &mut dyn Write,
    ) -> fmt::Result {
        write!(out, "{}: ", Lossy(self.path()))?;
        match self {
            Difference::Gone { errno: Errno::ENOENT, .. } => out.write_str("there -> gone"),
            Difference::Gone { errno, .. } => write!(out, "there -> {errno}"),
            Difference::Unreadable { errno, .. } => write!(out, "readable -> {errno}"),
            Difference::Changed { recorded, now, .. } => {
                match recorded.size == now.size {
                    true => out.write_str("another content of the same size")?,
                    false => write!(out, "{} -> {} bytes", recorded.size, now.size)?,
                }
                out.write_str(", modified ")?;
                time(recorded.mtime, out)?;
                out.write_str(" -> ")?;
                time(now.mtime, out)
            }
            Difference::Answer { lookup, .. } => write!(out, "gives another answer for {}", Lossy(lookup)),
        }
    }
}

/// Whether a file is unchanged, judging by size and times under this policy; None if its content decides.
pub fn unchanged_by_metadata(policy: u32, now: &Status, recorded: &Recorded) -> Option<bool> {
    if now.size != recorded.size {
        return Some(false);
    }
    (policy == policy::TRUST || times_match(policy, now, recorded.mtime, recorded.ctime)).then_some(true)
}

/// Whether the times equal the recorded ones and the policy trusts times.
pub(crate) fn times_match(policy: u32, now: &Status, mtime: i64, ctime: i64) -> bool {
    policy == policy::CHECK && now.mtime == mtime && now.ctime == ctime
}

/// Compares a file by its content, which decides if the times do not. Skips files that an earlier comparison found
/// unchanged.
pub fn compare_content<'t>(
    path: &'t [u8],
    role: Role,
    now: &Status,
    recorded: &Recorded,
    digest: impl FnOnce() -> SystemResult<([u8; 16], u64)>,
    check: &mut impl Check<'t>,
) -> Option<Difference<'t>> {
    let bare = without_nul(path);
    let is_known = role != Role::Here && check.knows(bare, now);
    if !is_known {
        match digest() {
            Ok(content) if content == (recorded.digest, recorded.size) => {}
            // For example, it is a directory now.
            Err(errno) if errno == Errno::EACCES || errno.is_absence() => {
                return Some(Difference::Unreadable { path, role, errno })
            }
            _ => return Some(Difference::Changed { path, role, recorded: *recorded, now: *now }),
        }
    }
    if role != Role::Here {
        check.remember(bare, now, !is_known);
    }
    None
}

/// Compares the input of this number; `now` is its present status.
pub(crate) fn compare<'t, S, C>(
    tables: &Tables<'t>,
    (number, row): (usize, Input),
    (policy, role): (u32, Role),
    now: SystemResult<Status>,
    (system, check): (&S, &mut C),
) -> Result<(), C::Stop>
where
    S: System<Stop = C::Stop>,
    C: Check<'t>,
{
    let path = tables.text_with_nul(row.path)?;
    let recorded = Recorded::from(row);
    let difference = match now {
        Ok(now) => {
            let unchanged = match role {
                // Files of two directories may have the same times by chance, so times prove nothing here.
                Role::Here => (now.size != recorded.size).then_some(false),
                _ => unchanged_by_metadata(policy, &now, &recorded),
            };
            match unchanged {
                Some(true) => None,
                Some(false) => Some(Difference::Changed { path, role, recorded, now }),
                None => compare_content(path, role, &now, &recorded, || system.digest(path), check),
            }
        }
        Err(errno) => Some(Difference::Gone { path, role, errno }),
    };
    let Some(difference) = difference else { return Ok(()) };
    let lookups = lookups_in(tables, number)?;
    match (&difference, lookups.clone().next()) {
        (Difference::Changed { now, .. }, Some(_)) if role != Role::Here => {
            let bare = without_nul(path);
            let is_known = check.knows(bare, now);
            if !is_known {
                let mut all_hold = Ok(true);
                let read = system.with_content(path, &mut |content| {
                    all_hold = compare_answers(tables, path, lookups.clone(), content, check);
                });
                if let Err(errno) = read {
                    return check.differs(crate::Difference::File(Difference::Unreadable { path, role, errno }));
                }
                if !all_hold? {
                    return Ok(());
                }
            }
            check.remember(bare, now, !is_known);
            Ok(())
        }
        // A missing file gives the answers of an empty one.
        (Difference::Gone { errno: Errno::ENOENT, .. }, Some(_)) => {
            compare_answers(tables, path, lookups, b"", check).map(|_| ())
        }
        _ => check.differs(crate::Difference::File(difference)),
    }
}

/// The recorded look-ups in an input. If there are none, its whole content counts.
fn lookups_in<'t>(
    tables: &Tables<'t>,
    input: usize,
) -> Result<impl Iterator<Item = FileLookup> + Clone + use<'t>, image::Error> {
    let input = input as u32;
    let rows = tables.rows::<FileLookup>(Section::Lookups)?;
    Ok(rows.skip_while(move |row| row.input < input).take_while(move |row| row.input == input))
}

/// Repeats look-ups in a content. Returns whether all answers are the same.
fn compare_answers<'t, C: Check<'t>>(
    tables: &Tables<'t>,
    path: &'t [u8],
    lookups: impl Iterator<Item = FileLookup>,
    content: &[u8],
    check: &mut C,
) -> Result<bool, C::Stop> {
    let mut all_hold = true;
    for FileLookup { kind, text, answer, .. } in lookups {
        let lookup = tables.text(text)?;
        if lookups::answer(kind, lookup, content) != Some(answer) {
            all_hold = false;
            check.differs(crate::Difference::File(Difference::Answer { path, lookup, kind }))?;
        }
    }
    Ok(all_hold)
}

/// Compares all mapped files.
pub(crate) fn compare_libraries<'t, S, C>(
    tables: &Tables<'t>,
    policy: u32,
    system: &S,
    check: &mut C,
) -> Result<(), C::Stop>
where
    S: System<Stop = C::Stop>,
    C: Check<'t>,
{
    for row in tables.rows::<MappedFile>(Section::Files)? {
        let (path, role) = (tables.text_with_nul(row.path)?, Role::Library);
        let recorded = Recorded::from(row);
        let difference = match system.stat_readable(path) {
            Err(errno) => Some(Difference::Gone { path, role, errno }),
            Ok(now) => match unchanged_by_metadata(policy, &now, &recorded) {
                Some(true) => None,
                Some(false) => Some(Difference::Changed { path, role, recorded, now }),
                None => compare_content(path, role, &now, &recorded, || system.digest(path), check),
            },
        };
        difference.map_or(Ok(()), |difference| check.differs(crate::Difference::File(difference)))?;
    }
    Ok(())
}
