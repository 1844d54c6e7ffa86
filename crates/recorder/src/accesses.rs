//! The accesses of a boot: each path that it looked up, what was there at that moment, and what the boot did with it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use inputs::attributes::Attribute;

use crate::calls::Use;
use crate::file_systems::{FileSystems, Owner};

/// What identifies an unchanged file.
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
    /// The identity of a missing file.
    pub const ABSENT: Identity = Identity { size: 0, mtime: 0, ctime: 0 };

    /// Identifies a file; follows links.
    pub fn read(path: &Path) -> io::Result<Self> {
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

/// What is at a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing; a directory on the way may be missing, too.
    Absent,
    /// A regular file.
    File(Identity),
    /// A directory.
    Directory,
    /// A symbolic link with this target.
    Link(PathBuf),
    /// A device, a socket or a named pipe.
    Special,
    /// Unknown: permission denied, or an I/O error.
    #[default]
    Unknown,
}

impl State {
    /// What is at the path itself; does not follow a link.
    pub fn read(path: &Path) -> State {
        match path.symlink_metadata() {
            Ok(metadata) if metadata.is_symlink() => fs::read_link(path).map_or(State::Unknown, State::Link),
            found => State::of_metadata(found),
        }
    }

    /// What is at the path; follows links.
    pub fn read_target(path: &Path) -> State {
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

/// Whether an error means that the path does not exist.
fn is_absence(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR | libc::ENAMETOOLONG))
}

/// All accesses of a boot to one path.
#[derive(Clone, Debug, Default)]
pub struct PathAccess {
    /// What was there at the first access.
    pub state: State,
    /// What a link led to, if it was followed.
    pub behind: Option<State>,
    /// The boot has asked what is there.
    pub looked: bool,
    /// The boot may have read its content, size or times.
    pub looked_closely: bool,
    /// The boot opened it for reading, or executed it.
    pub read: bool,
    /// The boot can tell whether it is a link.
    pub looked_at_link: bool,
    /// How often it was opened as a directory.
    pub opened: usize,
    /// How often it was looked up other than by opening it as a directory.
    pub looked_up: usize,
    /// The names in it at the first listing; None if it was never listed.
    pub listed: Option<BTreeSet<OsString>>,
    /// The boot wrote to it, or opened it for writing.
    pub written: bool,
    /// The boot created or removed it.
    pub made: bool,
    /// How the boot named it.
    pub named: Named,
    /// It was opened by a name relative to the start directory.
    pub opened_from_start: bool,
    /// It was read by code that did not announce a look-up.
    pub read_whole: bool,
    /// The announced look-ups in it: the kind and the text.
    pub lookups: BTreeSet<(u32, Vec<u8>)>,
}

/// How a path was named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Relative to the start directory of the program.
    pub from_start: bool,
    /// Absolutely, or relative to a directory that the program chose.
    pub absolutely: bool,
}

impl Named {
    /// Only by its absolute path.
    pub const ABSOLUTELY: Named = Named { from_start: false, absolutely: true };
    /// Only relative to the start directory.
    pub const FROM_START: Named = Named { from_start: true, absolutely: false };

    fn or(self, other: Named) -> Named {
        Named { from_start: self.from_start || other.from_start, absolutely: self.absolutely || other.absolutely }
    }
}

/// The dynamic loader's cache.
pub const LOADER_CACHE: &str = "/etc/ld.so.cache";

/// All accesses of a boot.
#[derive(Debug, Default)]
pub struct Accesses {
    /// By absolute path.
    pub places: HashMap<PathBuf, PathAccess>,
    /// The files of the kernel (/proc, /sys, devices) that were read, with their content: facts about the system, not
    /// yet inputs.
    pub system: BTreeMap<PathBuf, Option<Vec<u8>>>,
    /// The files of the kernel that only a boot without HOME reads.
    pub system_without_home: BTreeMap<PathBuf, Option<Vec<u8>>>,
    /// A child process of the boot hides its memory, so its accesses are unknown.
    pub hidden: bool,
    /// The attributes of its process that the boot set or tried to set, and cannot report itself.
    /// [`Attribute::Directory`] when it entered a directory whose name starts with that of the start directory, or has
    /// none.
    pub set: BTreeSet<Attribute>,
    /// The boot was ended since it was about to listen for connections, and may not.
    pub listened: bool,
}

impl Accesses {
    /// Adds the accesses of another boot to paths that this one has not accessed.
    pub fn add_those_of(&mut self, other: Accesses) {
        for (path, access) in other.places {
            self.places.entry(path).or_insert(access);
        }
        for (path, content) in other.system {
            self.system.entry(path).or_insert(content);
        }
        self.system_without_home.extend(other.system_without_home);
        self.hidden |= other.hidden;
    }

    /// Moves files of the kernel that this boot, which runs without HOME, read and `first` did not to those read only
    /// without HOME.
    pub fn count_system_without_home(&mut self, first: &Accesses) {
        let read = std::mem::take(&mut self.system);
        self.system_without_home.extend(read.into_iter().filter(|(path, _)| !first.system.contains_key(path)));
    }
}

/// Reads what an image may depend on in a file of the kernel, if anything. Called before the boot reads the file.
pub type ReadKernelFile = fn(&Path) -> Option<Vec<u8>>;

/// Collects accesses.
pub(crate) struct Writer {
    pub(crate) accesses: Accesses,
    file_systems: FileSystems,
    /// Links to files of the kernel. Only their targets count.
    links: HashSet<PathBuf>,
    read: ReadKernelFile,
}

impl Writer {
    pub(crate) fn new(read: ReadKernelFile) -> Writer {
        Writer { accesses: Accesses::default(), file_systems: FileSystems::default(), links: HashSet::new(), read }
    }

    /// Adds an access before it happens, so what is at the path now is what the boot will find.
    pub(crate) fn add(&mut self, path: &Path, used: Use, named: Named) {
        if let Some(access) = self.accesses.places.get_mut(path) {
            access.add(if self.links.contains(path) { Use::ReadLink } else { used });
            access.named_by(used, named);
        } else if !self.accesses.system.contains_key(path) {
            let used = match self.file_systems.owner(path) {
                Owner::Nobody => used,
                Owner::Kernel => return self.add_system(path.to_owned()),
                Owner::LinkTo(target) => {
                    self.add_system(target);
                    self.links.insert(path.to_owned());
                    Use::ReadLink
                }
            };
            let mut access = PathAccess::first(path);
            access.add(used);
            access.named_by(used, named);
            self.accesses.places.insert(path.to_owned(), access);
        }
    }

    /// Marks a file as read whole.
    pub(crate) fn read_whole(&mut self, path: &Path) {
        self.entry(path).read_whole = true;
    }

    /// Adds a look-up in a file.
    pub(crate) fn look_up(&mut self, path: &Path, lookup: (u32, Vec<u8>)) {
        self.entry(path).lookups.insert(lookup);
    }

    fn entry(&mut self, path: &Path) -> &mut PathAccess {
        self.accesses.places.entry(path.to_owned()).or_insert_with_key(|path| PathAccess::first(path))
    }

    /// How an open directory was named; absolutely if that is unknown.
    pub(crate) fn how_named(&self, directory: &Path) -> Named {
        self.accesses.places.get(directory).map_or(Named::ABSOLUTELY, |access| access.named)
    }

    fn add_system(&mut self, path: PathBuf) {
        let content = (self.read)(&path);
        self.accesses.system.entry(path).or_insert(content);
    }

    /// Adds the listing of an open directory.
    pub(crate) fn list(&mut self, path: &Path) {
        if self.file_systems.owner(path) == Owner::Kernel {
            return;
        }
        let first = |path: &PathBuf| PathAccess { named: Named::ABSOLUTELY, ..PathAccess::first(path) };
        let access = self.accesses.places.entry(path.to_owned()).or_insert_with_key(first);
        if access.listed.is_none() {
            // The directory is open. If it cannot be listed it is being removed, which the final check finds.
            access.listed = Some(names_in(path).unwrap_or_default());
        }
    }
}

/// The names in a directory.
pub fn names_in(path: &Path) -> io::Result<BTreeSet<OsString>> {
    fs::read_dir(path)?.map(|entry| Ok(entry?.file_name())).collect()
}

impl PathAccess {
    fn first(path: &Path) -> PathAccess {
        let state = State::read(path);
        let behind = matches!(state, State::Link(_)).then(|| State::read_target(path));
        PathAccess { state, behind, ..PathAccess::default() }
    }

    /// What the path led to at the first access.
    pub fn target_state(&self) -> &State {
        self.behind.as_ref().unwrap_or(&self.state)
    }

    fn named_by(&mut self, used: Use, named: Named) {
        self.named = self.named.or(named);
        self.opened_from_start |= named.from_start && matches!(used, Use::Read | Use::OpenDirectory);
    }

    fn add(&mut self, used: Use) {
        self.looked_up += usize::from(used != Use::OpenDirectory);
        self.read |= used == Use::Read;
        self.looked_closely |= !matches!(used, Use::LookAtKind | Use::LookAtKindOfLink | Use::ReadLink);
        match used {
            Use::Read | Use::Look | Use::LookAtKind => self.looked = true,
            Use::OpenDirectory => (self.looked, self.opened) = (true, self.opened + 1),
            Use::LookAtLink | Use::LookAtKindOfLink => (self.looked, self.looked_at_link) = (true, true),
            Use::ReadLink => self.looked_at_link = true,
            Use::Write | Use::Make | Use::Remove => match self.target_state() {
                State::Absent if used == Use::Make => self.made = true,
                // The read will fail, and that is an answer.
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

    /// The accesses to a file, a directory, a link or a missing path after these uses.
    fn access(name: &str, uses: &[Use]) -> PathAccess {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("file"), "abc").unwrap();
        fs::create_dir(top.path().join("directory")).unwrap();
        std::os::unix::fs::symlink("file", top.path().join("link")).unwrap();
        let mut writer = Writer::new(|_| None);
        uses.iter().for_each(|used| writer.add(&top.path().join(name), *used, Named::ABSOLUTELY));
        writer.accesses.places.remove(&top.path().join(name)).unwrap()
    }

    #[test]
    fn a_place_is_what_it_was_when_it_was_first_asked_for() {
        assert!(matches!(access("file", &[Use::Read]).state, State::File(Identity { size: 3, .. })));
        assert_eq!(access("none", &[Use::Look]).state, State::Absent);
        assert_eq!(access("file/none", &[Use::Look]).state, State::Absent);
        assert_eq!(access("directory", &[Use::Look]).state, State::Directory);
        let link = access("link", &[Use::Look]);
        assert_eq!(link.state, State::Link("file".into()));
        assert!(matches!(link.target_state(), State::File(_)));
    }

    #[test]
    fn a_file_may_be_known_by_its_kind_alone() {
        let is = |uses: &[Use]| {
            let access = access("file", uses);
            (access.looked, access.looked_closely)
        };
        assert_eq!(is(&[Use::LookAtKind, Use::LookAtKindOfLink, Use::ReadLink]), (true, false));
        assert_eq!(is(&[Use::LookAtKind, Use::Look]), (true, true));
        assert_eq!(is(&[Use::Read, Use::LookAtKind]), (true, true));
    }

    #[test]
    fn writing_is_told_from_asking_in_vain() {
        let is = |access: PathAccess| (access.looked, access.written, access.made);
        assert_eq!(is(access("file", &[Use::Read])), (true, false, false));
        assert_eq!(is(access("file", &[Use::Read, Use::Write])), (true, true, false));
        assert_eq!(is(access("file", &[Use::Make])), (false, true, false));
        assert_eq!(is(access("none", &[Use::Make])), (false, false, true));
        assert_eq!(is(access("none", &[Use::Write])), (true, false, false));
        assert_eq!(is(access("none", &[Use::Remove])), (true, false, false));
        assert_eq!(is(access("file", &[Use::Remove])), (false, false, true));
        assert_eq!(is(access("directory", &[Use::Make])), (true, false, false), "mkdir -p");
    }

    #[test]
    fn files_of_the_kernel_are_kept_apart_with_what_was_in_them() {
        let mut writer = Writer::new(|path| Some(path.as_os_str().len().to_string().into_bytes()));
        writer.add(Path::new("/proc/cpuinfo"), Use::Read, Named::ABSOLUTELY);
        writer.add(Path::new("/process"), Use::Look, Named::ABSOLUTELY);
        assert_eq!(writer.accesses.system, BTreeMap::from([("/proc/cpuinfo".into(), Some(b"13".to_vec()))]));
        assert_eq!(writer.accesses.places.len(), 1);
    }

    #[test]
    fn of_a_link_to_a_file_of_the_kernel_counts_where_it_leads() {
        let top = tempfile::tempdir().unwrap();
        let link = top.path().join("mtab");
        std::os::unix::fs::symlink("/proc/self/mounts", &link).unwrap();
        let mut writer = Writer::new(|_| None);
        writer.add(&link, Use::Read, Named::ABSOLUTELY);
        writer.add(&link, Use::Read, Named::ABSOLUTELY);
        let access = &writer.accesses.places[&link];
        assert!(access.looked_at_link && !access.looked);
        assert!(writer.accesses.system.contains_key(Path::new("/proc/self/mounts")));
    }
}
