//! The notes of a boot: each path that it looked up, what was there then, and what it did there.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use inputs::attributes::Attribute;

use crate::calls::Use;
use crate::file_systems::{FileSystems, Owner};

/// What of a file tells that it is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Size in bytes.
    pub size: u64,
    /// Last change of the content (ns since 1970).
    pub mtime: i64,
    /// Last change of the inode (ns since 1970).
    pub ctime: i64,
}

impl Identity {
    /// Of what is not there.
    pub const ABSENT: Identity = Identity { size: 0, mtime: 0, ctime: 0 };

    /// Looks at a file, links followed.
    pub fn of(path: &Path) -> io::Result<Self> {
        path.metadata().map(|metadata| Identity::from(&metadata))
    }
}

impl From<&Metadata> for Identity {
    fn from(metadata: &Metadata) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Identity {
            size: metadata.len(),
            mtime: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            ctime: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// What is at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing, also for want of a directory on the way.
    Absent,
    /// A regular file.
    File(Identity),
    /// A directory.
    Directory,
    /// A symbolic link with this target.
    Link(PathBuf),
    /// A device, a socket or a named pipe.
    Special,
    /// What it is cannot be found out: no permission, or an error of the disk.
    #[default]
    Unknown,
}

impl State {
    /// What is at a place itself, which may be a link.
    pub fn of(path: &Path) -> State {
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => fs::read_link(path).map_or(State::Unknown, State::Link),
            found => State::of_metadata(found),
        }
    }

    /// What a place leads to.
    pub fn behind(path: &Path) -> State {
        State::of_metadata(path.metadata())
    }

    fn of_metadata(found: io::Result<Metadata>) -> State {
        match found {
            Ok(metadata) if metadata.is_dir() => State::Directory,
            Ok(metadata) if metadata.is_file() => State::File(Identity::from(&metadata)),
            Ok(_) => State::Special,
            Err(error) if is_absence(&error) => State::Absent,
            Err(_) => State::Unknown,
        }
    }
}

/// Whether an error says that there is nothing of that name.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG))
}

/// One place.
#[derive(Clone, Debug, Default)]
pub struct PathAccess {
    /// What was there when it was first looked up.
    pub state: State,
    /// Where that is a link and it was followed: what it led to.
    pub behind: Option<State>,
    /// Its content may have been read, or its size and times have been.
    pub looked: bool,
    /// It was opened for reading, or executed.
    pub read: bool,
    /// The boot saw whether it is a link.
    pub looked_at_link: bool,
    /// How often it was opened as a directory.
    pub opened: usize,
    /// How often it was looked up in another way than by opening it as a directory.
    pub looked_up: usize,
    /// The names in it when they were first listed; None when they never were.
    pub listed: Option<BTreeSet<OsString>>,
    /// The boot wrote to it, or opened it for writing.
    pub written: bool,
    /// The boot made or removed it.
    pub made: bool,
    /// In which ways it was named.
    pub named: Named,
    /// It was opened by a name from the directory in which the program was started.
    pub opened_from_start: bool,
    /// Its content was read by others than those who look a certain thing up in it.
    pub read_whole: bool,
    /// What was looked up in it by those who announced that: kinds of look-ups, and texts.
    pub lookups: BTreeSet<(u32, Vec<u8>)>,
}

/// In which ways a place was named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// From the directory in which the program was started.
    pub from_start: bool,
    /// From the root, or from a directory that was chosen by the program.
    pub absolutely: bool,
}

impl Named {
    /// By its absolute path.
    pub const ABSOLUTELY: Named = Named { from_start: false, absolutely: true };
    /// From where the program was started.
    pub const FROM_START: Named = Named { from_start: true, absolutely: false };

    fn or(self, other: Named) -> Named {
        Named { from_start: self.from_start || other.from_start, absolutely: self.absolutely || other.absolutely }
    }
}

/// The dynamic loader's cache.
pub const LOADER_CACHE: &str = "/etc/ld.so.cache";

/// All notes of a boot.
#[derive(Debug, Default)]
pub struct Accesses {
    /// By absolute path.
    pub places: HashMap<PathBuf, PathAccess>,
    /// Files of the kernel (/proc, /sys, devices) that were read, with what was in them then: facts about the system, and no inputs
    /// yet.
    pub system: BTreeMap<PathBuf, Option<Vec<u8>>>,
    /// The same of those that only a boot without HOME has read.
    pub system_without_home: BTreeMap<PathBuf, Option<Vec<u8>>>,
    /// A process that the boot started keeps its memory from others: what it looked up is not known.
    pub hidden: bool,
    /// Attributes of its process that the boot has set, or tried to, of those that it could not tell itself; [`Attribute::Directory`]
    /// when it went into a directory whose name starts in that of its start, or has none.
    pub set: BTreeSet<Attribute>,
}

impl Accesses {
    /// Takes over what another boot has looked up and this one has not.
    pub fn add_those_of(&mut self, other: Accesses) {
        for (path, note) in other.places {
            self.places.entry(path).or_insert(note);
        }
        for (path, content) in other.system {
            self.system.entry(path).or_insert(content);
        }
        self.system_without_home.extend(other.system_without_home);
        self.hidden |= other.hidden;
    }

    /// Has the files of the kernel that this boot, one without HOME, has read and `first` has not count in starts without HOME alone.
    pub fn count_system_without_home(&mut self, first: &Accesses) {
        let read = std::mem::take(&mut self.system);
        self.system_without_home.extend(read.into_iter().filter(|(path, _)| !first.system.contains_key(path)));
    }
}

/// Reads what of a file of the kernel's an image may depend on, if there is something. It is called before the boot reads the file itself.
pub type ReadKernelFile = fn(&Path) -> Option<Vec<u8>>;

/// Takes notes.
pub(crate) struct Writer {
    pub(crate) notes: Accesses,
    file_systems: FileSystems,
    /// Links to files of the kernel's: of these only where they lead counts.
    links: HashSet<PathBuf>,
    read: ReadKernelFile,
}

impl Writer {
    pub(crate) fn new(read: ReadKernelFile) -> Writer {
        Writer { notes: Accesses::default(), file_systems: FileSystems::default(), links: HashSet::new(), read }
    }

    /// Notes a use of a place. It has not happened yet, so what is there now is what will be found.
    pub(crate) fn add(&mut self, path: &Path, used: Use, named: Named) {
        if let Some(note) = self.notes.places.get_mut(path) {
            note.add(if self.links.contains(path) { Use::ReadLink } else { used });
            note.named_by(used, named);
        } else if !self.notes.system.contains_key(path) {
            let used = match self.file_systems.owner(path) {
                Owner::Nobody => used,
                Owner::Kernel => return self.add_system(path.to_owned()),
                Owner::LinkTo(target) => {
                    self.add_system(target);
                    self.links.insert(path.to_owned());
                    Use::ReadLink
                }
            };
            let mut note = PathAccess::first(path);
            note.add(used);
            note.named_by(used, named);
            self.notes.places.insert(path.to_owned(), note);
        }
    }

    /// Notes that all of a file is read.
    pub(crate) fn read_whole(&mut self, path: &Path) {
        self.note(path).read_whole = true;
    }

    /// Notes that something is looked up in a file.
    pub(crate) fn look_up(&mut self, path: &Path, lookup: (u32, Vec<u8>)) {
        self.note(path).lookups.insert(lookup);
    }

    fn note(&mut self, path: &Path) -> &mut PathAccess {
        self.notes.places.entry(path.to_owned()).or_insert_with_key(|path| PathAccess::first(path))
    }

    /// How a directory was named that is open; by its absolute path where nobody knows.
    pub(crate) fn named(&self, directory: &Path) -> Named {
        self.notes.places.get(directory).map_or(Named::ABSOLUTELY, |note| note.named)
    }

    fn add_system(&mut self, path: PathBuf) {
        let content = (self.read)(&path);
        self.notes.system.entry(path).or_insert(content);
    }

    /// Notes that an open directory is being listed.
    pub(crate) fn list(&mut self, path: &Path) {
        if self.file_systems.owner(path) == Owner::Kernel {
            return;
        }
        let first = |path: &PathBuf| PathAccess { named: Named::ABSOLUTELY, ..PathAccess::first(path) };
        let note = self.notes.places.entry(path.to_owned()).or_insert_with_key(first);
        if note.listed.is_none() {
            // It is open: if it cannot be listed, it goes away right now, and that is found in the end.
            note.listed = Some(names_in(path).unwrap_or_default());
        }
    }
}

/// The names in a directory.
pub fn names_in(path: &Path) -> io::Result<BTreeSet<OsString>> {
    fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect()
}

impl PathAccess {
    fn first(path: &Path) -> PathAccess {
        let state = State::of(path);
        let behind = matches!(state, State::Link(_)).then(|| State::behind(path));
        PathAccess { state, behind, ..PathAccess::default() }
    }

    /// What the place led to when it was first looked up.
    pub fn found(&self) -> &State {
        self.behind.as_ref().unwrap_or(&self.state)
    }

    fn named_by(&mut self, used: Use, named: Named) {
        self.named = self.named.or(named);
        self.opened_from_start |= named.from_start && matches!(used, Use::Read | Use::OpenDirectory);
    }

    fn add(&mut self, used: Use) {
        self.looked_up += usize::from(used != Use::OpenDirectory);
        self.read |= used == Use::Read;
        match used {
            Use::Read | Use::Look => self.looked = true,
            Use::OpenDirectory => (self.looked, self.opened) = (true, self.opened + 1),
            Use::LookAtLink => (self.looked, self.looked_at_link) = (true, true),
            Use::ReadLink => self.looked_at_link = true,
            Use::Write | Use::Make | Use::Remove => match self.found() {
                State::Absent if used == Use::Make => self.made = true,
                // It fails, which is an answer.
                State::Absent => self.looked = true,
                _ if used == Use::Remove => self.made = true,
                State::Directory => self.looked = true,
                _ => self.written = true,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A note of a file, a directory, a link or nothing after these uses.
    fn note(name: &str, uses: &[Use]) -> PathAccess {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("file"), "abc").unwrap();
        fs::create_dir(top.path().join("directory")).unwrap();
        std::os::unix::fs::symlink("file", top.path().join("link")).unwrap();
        let mut writer = Writer::new(|_| None);
        uses.iter().for_each(|used| writer.add(&top.path().join(name), *used, Named::ABSOLUTELY));
        writer.notes.places.remove(&top.path().join(name)).unwrap()
    }

    #[test]
    fn a_place_is_what_it_was_when_it_was_first_asked_for() {
        assert!(matches!(note("file", &[Use::Read]).state, State::File(Identity { size: 3, .. })));
        assert_eq!(note("none", &[Use::Look]).state, State::Absent);
        assert_eq!(note("file/none", &[Use::Look]).state, State::Absent);
        assert_eq!(note("directory", &[Use::Look]).state, State::Directory);
        let link = note("link", &[Use::Look]);
        assert_eq!(link.state, State::Link("file".into()));
        assert!(matches!(link.found(), State::File(_)));
    }

    #[test]
    fn writing_is_told_from_asking_in_vain() {
        let is = |note: PathAccess| (note.looked, note.written, note.made);
        assert_eq!(is(note("file", &[Use::Read])), (true, false, false));
        assert_eq!(is(note("file", &[Use::Read, Use::Write])), (true, true, false));
        assert_eq!(is(note("file", &[Use::Make])), (false, true, false));
        assert_eq!(is(note("none", &[Use::Make])), (false, false, true));
        assert_eq!(is(note("none", &[Use::Write])), (true, false, false));
        assert_eq!(is(note("none", &[Use::Remove])), (true, false, false));
        assert_eq!(is(note("file", &[Use::Remove])), (false, false, true));
        assert_eq!(is(note("directory", &[Use::Make])), (true, false, false), "mkdir -p");
    }

    #[test]
    fn files_of_the_kernel_are_kept_apart_with_what_was_in_them() {
        let mut writer = Writer::new(|path| Some(path.as_os_str().len().to_string().into_bytes()));
        writer.add(Path::new("/proc/cpuinfo"), Use::Read, Named::ABSOLUTELY);
        writer.add(Path::new("/process"), Use::Look, Named::ABSOLUTELY);
        assert_eq!(writer.notes.system, BTreeMap::from([("/proc/cpuinfo".into(), Some(b"13".to_vec()))]));
        assert_eq!(writer.notes.places.len(), 1);
    }

    #[test]
    fn of_a_link_to_a_file_of_the_kernel_counts_where_it_leads() {
        let top = tempfile::tempdir().unwrap();
        let link = top.path().join("mtab");
        std::os::unix::fs::symlink("/proc/self/mounts", &link).unwrap();
        let mut writer = Writer::new(|_| None);
        writer.add(&link, Use::Read, Named::ABSOLUTELY);
        writer.add(&link, Use::Read, Named::ABSOLUTELY);
        let note = &writer.notes.places[&link];
        assert!(note.looked_at_link && !note.looked);
        assert!(writer.notes.system.contains_key(Path::new("/proc/self/mounts")));
    }
}
