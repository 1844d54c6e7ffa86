//! Where a feature is: found in the lists of directories and $LOAD_PATH. What is loaded, and being loaded, Ruby itself knows.

use std::collections::HashSet;
use std::ffi::{CStr, CString};

use archive::{Found, Identity};
use rustix::fs::{accessat, Access, AtFlags, FileType, CWD};

use crate::code::Code;
use crate::directories::{real_path, Answer, Directories, DirectoryId};
use crate::heap::Heap;
use crate::load_path::LoadPath;
use crate::names::Place;
use crate::store::Store;

/// What this process knows besides the archive.
pub struct Boot {
    pub directories: Directories,
    pub load_path: LoadPath,
    /// `None`: code is not kept.
    pub code: Option<Code>,
    pub heap: Heap,
    /// Paths that Ruby has made strings over.
    pub lasting: HashSet<&'static CStr>,
    /// Whether some file has been loaded by a path that is not its real one. `None`: nobody has looked.
    pub has_links: Option<bool>,
}

/// A file to be loaded.
#[derive(Debug)]
pub struct Script {
    pub path: CString,
    /// Its real path, if that is another one.
    pub real: Option<Vec<u8>>,
    pub identity: Identity,
}

impl Script {
    pub fn real_path(&self) -> &[u8] {
        self.real.as_deref().unwrap_or(self.path.as_bytes())
    }
}

impl Boot {
    /// A path for Ruby to make a string over: it stays as long as the process, once.
    pub fn lasting(&mut self, path: CString) -> &'static CStr {
        if let Some(known) = self.lasting.get(path.as_c_str()) {
            return known;
        }
        let path: &'static CStr = Box::leak(path.into_boxed_c_str());
        self.lasting.insert(path);
        path
    }

    /// The file that `stem` with this ending leads to. `stem` is [plain](names::is_plain) and not relative to the working
    /// directory.
    pub fn find(&mut self, stem: &[u8], ending: &[u8], store: &mut Store) -> Answer<Script> {
        self.directories.pass_time();
        let slash = stem.iter().rposition(|byte| *byte == b'/');
        let (folder, base) = slash.map_or((&b""[..], stem), |slash| (&stem[..slash], &stem[slash + 1..]));
        let found = if Place::of(stem) == Place::Absolute {
            let directory = self.directories.id(folder);
            self.look_in(&[directory], &[], &[base, ending], store)
        } else {
            let Some(roots) = self.load_path.roots() else { return Answer::Unknown };
            let roots = roots.to_vec();
            let components: Vec<&[u8]> =
                if folder.is_empty() { Vec::new() } else { folder.split(|byte| *byte == b'/').collect() };
            self.look_in(&roots, &components, &[base, ending], store)
        };
        match found {
            Answer::There(directory) => {
                let path = self.path(directory, &[base, ending].concat());
                // A file that vanished, or may not be read, is one that Ruby looks behind.
                self.script_at(&path, store).map_or(Answer::Unknown, Answer::There)
            }
            Answer::NotThere => Answer::NotThere,
            Answer::Unknown => Answer::Unknown,
        }
    }

    /// The first directory below one of the roots that has a file of that name.
    fn look_in(
        &mut self,
        roots: &[DirectoryId],
        components: &[&[u8]],
        name: &[&[u8]],
        store: &mut Store,
    ) -> Answer<DirectoryId> {
        for root in roots {
            let mut directory = *root;
            let mut is_there = true;
            for component in components {
                match self.directories.below(directory, component, store) {
                    Answer::There(below) => directory = below,
                    Answer::NotThere => {
                        is_there = false;
                        break;
                    }
                    Answer::Unknown => return Answer::Unknown,
                }
            }
            if !is_there {
                continue;
            }
            match self.directories.find(directory, name, store) {
                Answer::There(Found::File) => return Answer::There(directory),
                Answer::There(Found::Link) => {
                    let stat = rustix::fs::stat(self.path(directory, &name.concat()));
                    if stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::Directory) {
                        return Answer::There(directory);
                    }
                }
                Answer::There(Found::Directory) | Answer::NotThere => {}
                Answer::There(Found::Other) | Answer::Unknown => return Answer::Unknown,
            }
        }
        Answer::NotThere
    }

    fn path(&self, directory: DirectoryId, name: &[u8]) -> Vec<u8> {
        [self.directories.path(directory), b"/", name].concat()
    }

    /// The file at a path. `None`: Ruby has to see to it.
    pub fn script_at(&mut self, path: &[u8], store: &mut Store) -> Option<Script> {
        let slash = path.iter().rposition(|byte| *byte == b'/')?;
        let stat = rustix::fs::stat(path).ok().filter(|_| path.is_ascii())?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || !is_readable(path, stat.st_mode) {
            return None;
        }
        let identity = Identity::from_stat(&stat).ok()?;
        let directory = self.directories.id(&path[..slash]);
        let real = self.real_path(directory, &path[slash + 1..], store).ok()?;
        if real.is_some() {
            self.has_links = Some(true);
        }
        Some(Script { path: CString::new(path).ok()?, real, identity })
    }

    /// The real path of a file, if it is another one than its own.
    fn real_path(&mut self, directory: DirectoryId, name: &[u8], store: &mut Store) -> Result<Option<Vec<u8>>, ()> {
        let path = self.path(directory, name);
        // Without look-ups there is no list.
        if !store.parts.lookups || self.directories.find(directory, &[name], store) != Answer::There(Found::File) {
            let real = real_path(&path).ok_or(())?;
            return Ok((real != path).then_some(real));
        }
        Ok(self.directories.real(directory)?.map(|real| [real, b"/", name].concat()))
    }
}

/// Whether this process may read a file. Who may is mostly everybody, which saves asking.
fn is_readable(path: &[u8], mode: u32) -> bool {
    const EVERYBODY: u32 = 0o444;
    mode & EVERYBODY == EVERYBODY || accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS).is_ok()
}
