//! The contents of directories, from their listings in the archive: whether a name exists without a system call for each, and real paths
//! without following each component.
//!
//! A listing is valid for a while: its directory's times are compared once in each *round*. A new round begins when a name was not found,
//! when the runtime asks for it ([`Directories::begin_round`]), and after so much time that the checks take at most a given share of the
//! elapsed time.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FileType;

use super::Session;
use crate::batch::NewInput;
use crate::directory::{list_directory, DirectoryList, FileKind};
use crate::freshness::Policy;
use crate::identity::Identity;
use crate::key::Kind;

/// A directory that was looked up, by the number of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectoryId(u32);

/// The result of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookUp<T> {
    /// It exists.
    Found(T),
    /// It does not exist.
    NotFound,
    /// A directory cannot be listed: only the kernel knows.
    Unknown,
}

/// A real path cannot be determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRealPath;

/// The estimated time of one check: a stat call.
const LOOK: Duration = Duration::from_micros(2);

/// How often listings are compared in any case: checks take at most one part in this many of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Nothing reports that the program itself has changed a directory.
    Unheard = 200,
    /// The runtime reports that, and itself searches for names that were not found: only a file that others put before the found one may be
    /// missed.
    Heard = 20_000,
}

/// The number of missing directories that are checked at every look-up. They have no times that would show a change.
const FEW: u32 = 8;

struct Directory {
    path: Box<[u8]>,
    /// The round in which its times were compared. 0: never, or they were too recent to show the next change.
    round: u32,
    identity: Option<Identity>,
    list: List,
    real: Real,
}

/// The list of a directory.
enum List {
    Unknown,
    Absent,
    Mapped(&'static [u8]),
    Own(Box<[u8]>),
}

/// A directory's real path.
#[derive(Clone)]
enum Real {
    Unknown,
    Same,
    Other(Box<[u8]>),
}

/// All directories that were looked up.
pub struct Directories {
    all: Vec<Directory>,
    /// From the hash of a path.
    by_path: HashMap<u64, DirectoryId>,
    scope: usize,
    share: Share,
    round: u32,
    /// The feature that was not found in this round. It may be looked up once more.
    missing: Option<Box<[u8]>>,
    /// Directories compared in this round, and the start of the round.
    looks: u32,
    began: Instant,
}

impl Directories {
    /// Starts without any.
    pub fn new(session: &mut Session, share: Share) -> Self {
        Directories {
            all: Vec::new(),
            by_path: HashMap::new(),
            scope: session.scope(Kind::Directory, "any"),
            share,
            round: 1,
            missing: None,
            looks: 0,
            began: Instant::now(),
        }
    }

    /// Records that a feature was not found, in a round that has only just begun.
    pub fn note_missing(&mut self, feature: &[u8]) {
        self.missing = Some(feature.into());
    }

    /// Whether [`Directories::note_missing`] was just called for this feature: true once.
    pub fn was_missing(&mut self, feature: &[u8]) -> bool {
        self.missing.take().as_deref() == Some(feature)
    }

    /// Begins a new round: every listing is checked again before its next use.
    pub fn begin_round(&mut self) {
        self.missing = None;
        self.round += 1;
        self.looks = 0;
        self.began = Instant::now();
    }

    /// The number of this round, from 1 on.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Begins a new round if the last one was long enough ago.
    pub fn pass_time(&mut self) {
        if self.looks > 0 && self.began.elapsed() > LOOK * self.share as u32 * self.looks {
            self.begin_round();
        }
    }

    /// The directory of that path: absolute, without a slash at its end.
    pub fn id(&mut self, path: &[u8]) -> DirectoryId {
        let hash = hash(path);
        if let Some(id) = self.by_path.get(&hash) {
            if *self.all[id.0 as usize].path == *path {
                return *id;
            }
        }
        let id = DirectoryId(self.all.len() as u32);
        self.all.push(Directory {
            path: path.into(),
            round: 0,
            identity: None,
            list: List::Unknown,
            real: Real::Unknown,
        });
        self.by_path.insert(hash, id);
        id
    }

    /// The path of a directory.
    pub fn path(&self, id: DirectoryId) -> &[u8] {
        &self.all[id.0 as usize].path
    }

    /// Whether it is a directory, and can be listed.
    pub fn is_listed(&mut self, id: DirectoryId, session: &mut Session) -> bool {
        matches!(self.list(id, session), LookUp::Found(_))
    }

    /// The type of that name, given in parts, in a directory.
    pub fn find(&mut self, id: DirectoryId, name: &[&[u8]], session: &mut Session) -> LookUp<FileKind> {
        match self.list(id, session) {
            LookUp::Found(list) => list.find(name).map_or(LookUp::NotFound, LookUp::Found),
            LookUp::NotFound => LookUp::NotFound,
            LookUp::Unknown => LookUp::Unknown,
        }
    }

    /// The directory below another. Also found for a link, whose target is not checked.
    pub fn below(&mut self, id: DirectoryId, name: &[u8], session: &mut Session) -> LookUp<DirectoryId> {
        match self.find(id, &[name], session) {
            LookUp::Found(FileKind::Directory | FileKind::Link) => {
                let path = self.path_in(id, name);
                LookUp::Found(self.id(&path))
            }
            LookUp::Found(_) | LookUp::NotFound => LookUp::NotFound,
            LookUp::Unknown => LookUp::Unknown,
        }
    }

    /// The first directory below one of the roots, in the directories of the path `components`, that has a file of that name, given in
    /// parts.
    pub fn search(
        &mut self,
        roots: &[DirectoryId],
        components: &[&[u8]],
        name: &[&[u8]],
        session: &mut Session,
    ) -> LookUp<DirectoryId> {
        for root in roots {
            let mut directory = *root;
            let mut is_there = true;
            for component in components {
                match self.below(directory, component, session) {
                    LookUp::Found(below) => directory = below,
                    LookUp::NotFound => {
                        is_there = false;
                        break;
                    }
                    LookUp::Unknown => return LookUp::Unknown,
                }
            }
            if !is_there {
                continue;
            }
            match self.find(directory, name, session) {
                LookUp::Found(FileKind::File) => return LookUp::Found(directory),
                LookUp::Found(FileKind::Link) => {
                    let stat = rustix::fs::stat(self.path_in(directory, &name.concat()));
                    if stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::Directory) {
                        return LookUp::Found(directory);
                    }
                }
                LookUp::Found(FileKind::Directory) | LookUp::NotFound => {}
                LookUp::Found(FileKind::Other) | LookUp::Unknown => return LookUp::Unknown,
            }
        }
        LookUp::NotFound
    }

    /// The path of a name in a directory.
    pub fn path_in(&self, id: DirectoryId, name: &[u8]) -> Vec<u8> {
        [self.path(id), b"/", name].concat()
    }

    /// The real path of a file in a directory, if it differs.
    pub fn real_path_in(
        &mut self,
        id: DirectoryId,
        name: &[u8],
        session: &mut Session,
    ) -> Result<Option<Vec<u8>>, NoRealPath> {
        // If look-ups are switched off, there are no listings.
        if !session.parts.lookups || self.find(id, &[name], session) != LookUp::Found(FileKind::File) {
            let path = self.path_in(id, name);
            let real = real_path(&path).ok_or(NoRealPath)?;
            return Ok((real != path).then_some(real));
        }
        Ok(self.real(id)?.map(|real| [real, b"/", name].concat()))
    }

    fn list(&mut self, id: DirectoryId, session: &mut Session) -> LookUp<DirectoryList<'_>> {
        let directory = &mut self.all[id.0 as usize];
        if directory.round != self.round {
            self.looks += 1;
            directory.look(self.scope, session);
            // A directory that has just changed may change again within the resolution of its times.
            let is_settled = directory.identity.map_or(self.looks > FEW, |identity| identity.is_settled);
            directory.round = if is_settled { self.round } else { 0 };
        }
        match &directory.list {
            List::Absent => LookUp::NotFound,
            list => list.parse().map_or(LookUp::Unknown, LookUp::Found),
        }
    }

    /// The real path of a directory, if it differs.
    pub fn real(&mut self, id: DirectoryId) -> Result<Option<&[u8]>, NoRealPath> {
        if matches!(self.all[id.0 as usize].real, Real::Unknown) {
            self.all[id.0 as usize].real = self.look_for_real(id).ok_or(NoRealPath)?;
        }
        match &self.all[id.0 as usize].real {
            Real::Other(path) => Ok(Some(path)),
            _ => Ok(None),
        }
    }

    fn look_for_real(&mut self, id: DirectoryId) -> Option<Real> {
        let path = self.all[id.0 as usize].path.clone();
        let slash = path.iter().rposition(|byte| *byte == b'/')?;
        let (parent, name) = (&path[..slash], &path[slash + 1..]);
        if matches!(name, b"" | b"." | b"..") {
            return real_path(&path).map(|real| Real::new(real, &path));
        }
        let mut real = parent.to_vec();
        let mut is_link = None;
        if !parent.is_empty() {
            let parent = self.id(parent);
            if let Some(other) = self.real(parent).ok()? {
                real = other.to_vec();
            }
            let parent = &self.all[parent.0 as usize];
            if let (true, Some(list)) = (parent.round == self.round, parent.list.parse()) {
                is_link = Some(list.find(&[name])? == FileKind::Link);
            }
        }
        let is_link = match is_link {
            Some(is_link) => is_link,
            None => {
                let stat = rustix::fs::lstat(&*path).ok()?;
                FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
            }
        };
        if is_link {
            return real_path(&path).map(|real| Real::new(real, &path));
        }
        real.push(b'/');
        real.extend_from_slice(name);
        Some(Real::new(real, &path))
    }
}

impl Directory {
    /// Compares its times, and makes a new listing if they differ.
    fn look(&mut self, scope: usize, session: &mut Session) {
        let identity = match Identity::stat(&*self.path) {
            Ok(identity) if identity.is_directory => identity,
            Ok(_) => return self.set(None, List::Absent),
            Err(error) => {
                use std::io::ErrorKind::{InvalidInput, NotADirectory, NotFound};
                let is_absent = matches!(error.kind(), NotFound | NotADirectory | InvalidInput);
                return self.set(None, if is_absent { List::Absent } else { List::Unknown });
            }
        };
        let is_known = matches!(self.list, List::Mapped(_) | List::Own(_));
        if is_known && self.identity.is_some_and(|known| known.is_settled && known.is_same(&identity)) {
            return;
        }
        let known = (session.policy() != Policy::Content).then_some(&identity);
        let (_, entry) = session.find(scope, &self.path, known);
        if let Some(bytes) = entry.and_then(|entry| entry.plain()) {
            return self.set(Some(identity), List::Mapped(bytes));
        }
        let path = Path::new(OsStr::from_bytes(&self.path));
        let Ok(bytes) = list_directory(path) else { return self.set(None, List::Unknown) };
        if !Identity::stat(&*self.path).is_ok_and(|now| now.is_same(&identity)) {
            return self.set(None, List::Unknown);
        }
        let input = NewInput::Directory(self.path.to_vec(), identity);
        session.add(scope, self.path.to_vec(), vec![input], bytes.clone(), false);
        self.set(Some(identity), List::Own(bytes.into()));
    }

    fn set(&mut self, identity: Option<Identity>, list: List) {
        if self.identity.is_some() {
            self.real = Real::Unknown;
        }
        self.identity = identity;
        self.list = list;
    }
}

impl List {
    fn parse(&self) -> Option<DirectoryList<'_>> {
        match self {
            List::Absent | List::Unknown => None,
            List::Mapped(bytes) => DirectoryList::parse(bytes),
            List::Own(bytes) => DirectoryList::parse(bytes),
        }
    }
}

impl Real {
    fn new(real: Vec<u8>, path: &[u8]) -> Self {
        if real == path {
            Real::Same
        } else {
            Real::Other(real.into())
        }
    }
}

/// The real path (realpath): a system call for each component.
pub fn real_path(path: &[u8]) -> Option<Vec<u8>> {
    let real = std::fs::canonicalize(Path::new(OsStr::from_bytes(path))).ok()?;
    Some(real.into_os_string().into_encoded_bytes())
}

fn hash(path: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    hasher.finish()
}
