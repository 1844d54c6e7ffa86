//! Finds the file of a feature, with $LOAD_PATH and the listings of directories. Only Ruby knows which features are loaded.

use std::ffi::CString;

use archive::session::{Directories, LookUp, Session};
use archive::Identity;
use rustix::fs::{accessat, Access, AtFlags, FileType, CWD};

use crate::cell::GvlCell;
use crate::heap::Heap;
use crate::load_path::{self, LoadPath};
use crate::names::Place;
use crate::ruby::{Main, Protected};
use crate::script::Script;
use crate::session::SESSION;

/// The boot of this process.
pub static BOOT: GvlCell<Boot> = GvlCell::empty();

/// The state of this process besides the archive.
pub struct Boot {
    pub directories: Directories,
    pub load_path: LoadPath,
    pub heap: Heap,
    /// Whether a LoadError has the very String that was required.
    pub tells_given_name: bool,
}

/// Queues the record of this boot's heap.
pub fn record_heap(ruby: Main<'_>) {
    BOOT.with(ruby, |boot| SESSION.with(ruby, |session| boot.heap.record(session)));
}

/// Updates the copy of $LOAD_PATH. Returns whether the archive can look features up in it.
pub fn update_load_path(ruby: Main<'_>) -> Protected<bool> {
    let known = BOOT.with(ruby, |boot| (boot.load_path.array(), boot.load_path.is_current(*ruby)));
    let Some((array, is_current)) = known else { return Ok(false) };
    if !is_current? {
        let elements = load_path::elements(*ruby, array)?;
        BOOT.with(ruby, |boot| boot.load_path.set(*ruby, elements, &mut boot.directories)).transpose()?;
    }
    Ok(BOOT.with(ruby, |boot| boot.load_path.roots().is_some()) == Some(true))
}

impl Boot {
    /// The file that `stem` with this ending leads to. `stem` is [plain](names::is_plain) and not relative to the working
    /// directory.
    pub fn find(&mut self, stem: &[u8], ending: &[u8], session: &mut Session) -> LookUp<Script> {
        self.directories.pass_time();
        let slash = stem.iter().rposition(|byte| *byte == b'/');
        let (folder, base) = slash.map_or((&b""[..], stem), |slash| (&stem[..slash], &stem[slash + 1..]));
        let found = if Place::in_feature(stem) == Place::Absolute {
            let directory = self.directories.id(folder);
            self.directories.search(&[directory], &[], &[base, ending], session)
        } else {
            let Some(roots) = self.load_path.roots() else { return LookUp::Unknown };
            let roots = roots.to_vec();
            let components: Vec<&[u8]> =
                if folder.is_empty() { Vec::new() } else { folder.split(|byte| *byte == b'/').collect() };
            self.directories.search(&roots, &components, &[base, ending], session)
        };
        match found {
            LookUp::Found(directory) => {
                let path = self.directories.path_in(directory, &[base, ending].concat());
                // Ruby continues its search after a file that vanished or may not be read.
                self.script_at(&path, session).map_or(LookUp::Unknown, LookUp::Found)
            }
            LookUp::NotFound => LookUp::NotFound,
            LookUp::Unknown => LookUp::Unknown,
        }
    }

    /// The file at a path. `None`: Ruby has to load it without the archive.
    pub fn script_at(&mut self, path: &[u8], session: &mut Session) -> Option<Script> {
        let slash = path.iter().rposition(|byte| *byte == b'/')?;
        let stat = rustix::fs::stat(path).ok().filter(|_| path.is_ascii())?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || !is_readable(path, stat.st_mode) {
            return None;
        }
        let identity = Identity::from_stat(&stat).ok()?;
        let directory = self.directories.id(&path[..slash]);
        let real = self.directories.real_path_in(directory, &path[slash + 1..], session).ok()?;
        Some(Script { path: CString::new(path).ok()?, real, identity })
    }
}

/// Whether this process may read a file. Most files are readable for all, which saves a system call.
fn is_readable(path: &[u8], mode: u32) -> bool {
    const EVERYBODY: u32 = 0o444;
    mode & EVERYBODY == EVERYBODY || accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS).is_ok()
}
