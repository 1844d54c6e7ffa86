//! An open archive: opens it with care, and looks entries up in it.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use record::Record;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::batch::root_key;
use crate::build::{Payload, Raw};
use crate::checksum;
use crate::entry::Entry;
use crate::error::Error;
use crate::freshness::{check, Freshness, Policy};
use crate::identity::Identity;
use crate::key::{Key, Scope};
use crate::location::Root;
use crate::map::Mapped;
use crate::pack::Decoder;
use crate::records::{encoding, input_kind, Header};
use crate::segment::{self, read_at, Segment};

/// A mapped archive, as of its opening. Segments that are appended later are not seen.
pub struct Archive {
    /// Up to the end of its last segment: nothing after that is ever read.
    file: Mapped,
    /// Bytes of the file when it was opened.
    size: u64,
    root: Root,
    /// Oldest first.
    segments: Vec<Segment>,
    is_whole: bool,
}

impl Archive {
    /// Drops its pages from this process' memory: later reads load them from the page cache again.
    pub fn release(&self) {
        self.file.release(&self.file);
    }

    /// Opens and maps the archive at `path` for a program whose files lie below `root` (absolute).
    ///
    /// The file must be regular, the user's own or root's, and writable by nobody else; a link at the end of the path is not
    /// followed. It is opened for reading only, whatever its mode allows. A missing file is an [`Error::is_absence`].
    pub fn open(path: &Path, root: &Path) -> Result<Self, Error> {
        let (file, _) = open_checked(path, OFlags::RDONLY)?;
        Self::in_file(&file, path, root)
    }

    /// Maps the archive in an open file, whoever has written it. `path`: that of the file, for errors.
    pub fn in_file(file: &File, path: &Path, root: &Path) -> Result<Self, Error> {
        match Found::in_file(file).map_err(Error::io("read", path))? {
            Found::Archive(end) => Self::read(file, end, root).map_err(Error::io("map", path)),
            Found::Version(found) => Err(Error::Version { path: path.to_owned(), found }),
            Found::Nothing | Found::Damage(_) => Err(Error::Damaged(path.to_owned())),
            Found::SomethingElse => Err(Error::NotAnArchive(path.to_owned())),
        }
    }

    /// Reads the segments of a file, the last of which ends there.
    pub(crate) fn read(file: &File, end: u64, root: &Path) -> io::Result<Self> {
        let size = file.metadata()?.len();
        let file = Mapped::new(file, end)?;
        let segments = segment::segments(&file);
        let is_whole = size == end && segments.iter().all(|segment| segment.is_whole);
        Ok(Archive { file, size, root: Root::new(root), segments, is_whole })
    }

    /// The newest entry of that name; its inputs are not checked. The name is given in parts, so that callers need not join them; see
    /// [`Archive::name`] for paths.
    pub fn find(&self, scope: &Scope, name: &[&[u8]]) -> Option<Entry<'_>> {
        let key_sum = scope.key_sum(name);
        for segment in self.segments.iter().rev().filter(|segment| segment.is_whole) {
            // The damaged entry may have been the newest; an older one could be wrong where inputs are not checked.
            match segment.find(&self.file, key_sum, scope, name).ok()? {
                None => {}
                found => return found,
            }
        }
        None
    }

    /// A decoder for payloads of this archive. Decoded pages no longer count as this process' memory.
    pub fn decoder(&self) -> Decoder<'_> {
        Decoder::releasing(&self.file)
    }

    /// The name of a path in two parts: a name below the application's root starts with `./`, any other stays as it is.
    pub fn name<'p>(&self, path: &'p [u8]) -> [&'p [u8]; 2] {
        self.root.name(path)
    }

    /// Compares the inputs of an entry with their current state. `known`, if given, is the state of the path in the entry's key a moment
    /// ago, which saves a system call.
    ///
    /// Takes one system call for each other file, directory and absent path if times are as recorded, and reads only files and directories
    /// whose times have changed ([`Policy::Check`]).
    pub fn check(&self, entry: &Entry<'_>, policy: Policy, known: Option<&Identity>) -> Freshness {
        // Damage may hide a newer entry, so nothing can be trusted.
        let policy = if policy == Policy::Trust && !self.is_whole { Policy::Check } else { policy };
        check(entry, &self.root, policy, known)
    }

    /// Every entry, oldest first, superseded ones too; `None` for each that is damaged.
    pub fn entries(&self) -> impl Iterator<Item = Option<Entry<'_>>> {
        self.segments.iter().flat_map(|segment| segment.entries(&self.file).map(Result::ok))
    }

    /// The newest whole entry of each key, oldest first.
    pub fn live(&self) -> Vec<Entry<'_>> {
        let mut seen: std::collections::HashSet<Key<'_>> = std::collections::HashSet::new();
        let mut live: Vec<Entry<'_>> = self.entries().flatten().collect();
        live.reverse();
        live.retain(|entry| seen.insert(entry.key()));
        live.reverse();
        live
    }

    /// The files and directories from which its entries have contents, as paths below `root` or absolute ones. Some may be gone.
    pub fn sources(&self, root: &Path) -> BTreeSet<PathBuf> {
        let kinds = [input_kind::FILE, input_kind::DIRECTORY];
        let names = self.live().into_iter().flat_map(|entry| {
            let rows = entry.inputs().filter(|row| kinds.contains(&row.input.kind));
            // Names below the root begin with `./`.
            let path = |name: &[u8]| root.join(OsStr::from_bytes(name)).components().collect::<PathBuf>();
            rows.map(|row| path(entry.name_of(&row))).collect::<Vec<_>>()
        });
        names.collect()
    }

    /// Number of segments with a damaged index: look-ups find nothing in them.
    pub fn damaged_segments(&self) -> usize {
        self.segments.iter().filter(|segment| !segment.is_whole).count()
    }

    /// Bytes at the end of the file that belong to no segment.
    pub fn left_over(&self) -> u64 {
        self.size.saturating_sub(self.file.len() as u64)
    }

    /// When the last entry was stored: seconds since 1970.
    pub fn written(&self) -> Option<i64> {
        self.segments.last().map(|segment| segment.head.written)
    }

    /// Number of segments.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Size of the file when it was opened (bytes).
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether the file consists of whole segments up to its end. Otherwise a writer is at work or was killed, or the file is damaged.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Marks it as damaged, whatever the segments say.
    pub(crate) fn damaged(self) -> Self {
        Archive { is_whole: false, ..self }
    }

    /// Whether this is the newest entry of its key.
    pub(crate) fn has_as_newest<'a>(&'a self, raw: &Raw<'_>, decoder: &mut Decoder<'a>) -> bool {
        let scope = Scope::of_key(&raw.key);
        let found = scope.and_then(|(scope, name)| self.find(&scope, &[name]));
        found.is_some_and(|entry| {
            let is_same = match &raw.payload {
                Payload::Plain(payload) => entry.plain() == Some(payload),
                Payload::Packed { plain_sum, plain_size, .. } => {
                    entry.encoding() == encoding::PACKED
                        && (entry.plain_sum(), entry.plain_size()) == (Some(*plain_sum), *plain_size as usize)
                        && decoder.decode(&entry).is_some()
                }
            };
            is_same && entry.inputs_bytes() == &*raw.inputs_bytes
        })
    }

    /// The application's root when the last entry was stored.
    pub fn noted_root(&self) -> Option<PathBuf> {
        let key = root_key();
        let root = self.entries().flatten().filter(|entry| entry.key_bytes() == key).last()?.plain()?;
        Some(PathBuf::from(OsStr::from_bytes(root)))
    }
}

/// Whether a new archive may replace the file: the path is free, or holds an empty file or an archive of any version, even a damaged one,
/// whoever owns it. An error names what is there instead.
pub fn is_replaceable(path: &Path) -> Result<(), Error> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(Error::io("open", path)(error.into())),
    };
    if !file.metadata().map_err(Error::io("look at", path))?.is_file() {
        return Err(Error::NotAFile(path.to_owned()));
    }
    match Found::in_file(&file).map_err(Error::io("read", path))? {
        Found::SomethingElse => Err(Error::NotAnArchive(path.to_owned())),
        _ => Ok(()),
    }
}

/// The contents of a file.
pub(crate) enum Found {
    /// An archive of this version, and where its last segment ends (bytes).
    Archive(u64),
    /// The header of an archive of another version.
    Version(u32),
    /// An empty file.
    Nothing,
    /// A damaged header before whole segments, and where the last one ends (bytes).
    Damage(u64),
    /// No archive.
    SomethingElse,
}

impl Found {
    /// Reads the header and the heads of the segments. They are read, not mapped: if another process truncated the file
    /// meanwhile, a mapping would end this process (SIGBUS).
    pub fn in_file(file: &File) -> io::Result<Self> {
        if file.metadata()?.len() == 0 {
            return Ok(Found::Nothing);
        }
        let mut fields = [0; Header::SIZE];
        if !read_at(file, 0, &mut fields)? {
            return Ok(Found::SomethingElse);
        }
        let end = segment::end_of_segments(file)?;
        let header = Header::decode(&fields);
        if header.magic == Header::MAGIC && header.header_sum == checksum(&fields[..12]) {
            return Ok(if header.version == crate::VERSION {
                Found::Archive(end)
            } else {
                Found::Version(header.version)
            });
        }
        if end > crate::FIRST_SEGMENT || header.magic == Header::MAGIC {
            return Ok(Found::Damage(end));
        }
        Ok(Found::SomethingElse)
    }
}

/// Opens a file that holds, or will hold, an archive, and checks its owner. Also returns its device and inode.
pub(crate) fn open_checked(path: &Path, flags: OFlags) -> Result<(File, (u64, u64)), Error> {
    // O_NONBLOCK: opening a pipe at this path does not block.
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
    let file = File::from(file.map_err(|error| Error::io("open", path)(error.into()))?);
    let metadata = file.metadata().map_err(Error::io("look at", path))?;
    if !metadata.is_file() {
        return Err(Error::NotAFile(path.to_owned()));
    }
    let owner = metadata.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(Error::Owner { path: path.to_owned(), owner });
    }
    let mode = metadata.mode();
    if mode & 0o022 != 0 {
        return Err(Error::Mode { path: path.to_owned(), mode: mode & 0o7777 });
    }
    Ok((file, (metadata.dev(), metadata.ino())))
}
