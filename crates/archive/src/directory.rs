//! The names in a directory, in a form that is read in place and finds a name, or its absence, without a scan.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use record::Record;
use sha2::{Digest, Sha256};

use crate::index::{self, Index};
use crate::key::is_joined;
use crate::records::{name_kind, DirectoryHead, Slot};

/// The payload of an entry of kind [`crate::Kind::Directory`]: every name in the directory except `.` and `..`.
#[derive(Clone, Copy, Debug)]
pub struct DirectoryList<'a> {
    bytes: &'a [u8],
    index: Index<'a>,
    names: u32,
}

/// The type of a file in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link. Its target can change without the directory, so it is not recorded.
    Link,
    /// A socket, a pipe, a device.
    Other,
}

impl<'a> DirectoryList<'a> {
    /// Parses a payload with a correct checksum. `None` if it cannot be a list.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let head = DirectoryHead::decode(bytes.get(..DirectoryHead::SIZE)?);
        let index = Index::parse(&bytes[DirectoryHead::SIZE..], head.slots)?;
        Some(DirectoryList { bytes, index, names: head.names })
    }

    /// The type of the file of that name, which is given in parts (`[feature, b".rb"]`). `None` if there is none.
    pub fn find(&self, name: &[&[u8]]) -> Option<FileKind> {
        let mut sum = crc32fast::Hasher::new();
        name.iter().for_each(|part| sum.update(part));
        let mut places = self.index.places(sum.finalize());
        places.find_map(|place| self.name_at(place).filter(|(_, found)| is_joined(found, name))).map(|(kind, _)| kind)
    }

    /// All names with their types, in the order of the bytes of the names.
    pub fn names(&self) -> impl Iterator<Item = (&'a [u8], FileKind)> {
        let mut places: Vec<u32> = self.index.all().collect();
        places.sort_unstable();
        let list = *self;
        places.into_iter().filter_map(move |place| list.name_at(place)).map(|(kind, name)| (name, kind))
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.names as usize
    }

    /// Whether the directory is empty.
    pub fn is_empty(&self) -> bool {
        self.names == 0
    }

    fn name_at(&self, place: u32) -> Option<(FileKind, &'a [u8])> {
        let [kind, size, rest @ ..] = self.bytes.get(place as usize..)? else { return None };
        Some((FileKind::from_number(*kind)?, rest.get(..usize::from(*size))?))
    }
}

impl FileKind {
    fn from_number(number: u8) -> Option<Self> {
        match number {
            name_kind::FILE => Some(FileKind::File),
            name_kind::DIRECTORY => Some(FileKind::Directory),
            name_kind::LINK => Some(FileKind::Link),
            name_kind::OTHER => Some(FileKind::Other),
            _ => None,
        }
    }
}

/// Lists a directory now, as the payload of an entry.
pub fn list_directory(path: &Path) -> io::Result<Vec<u8>> {
    let names = read(path)?;
    let slots = index::slots_for(names.len());
    let mut place = DirectoryHead::SIZE + slots * Slot::SIZE;
    let (mut things, mut texts) = (Vec::with_capacity(names.len()), Vec::new());
    for Name { kind, name } in &names {
        let too_long = |_| io::Error::other("a directory with names of more than 4 GB");
        things.push((crate::checksum(name), u32::try_from(place).map_err(too_long)?));
        let size = u8::try_from(name.len()).map_err(|_| io::Error::other("a name of more than 255 bytes"))?;
        texts.extend_from_slice(&[*kind, size]);
        texts.extend_from_slice(name);
        place += 2 + name.len();
    }
    let mut bytes = vec![0; DirectoryHead::SIZE];
    DirectoryHead { slots: slots as u32, names: names.len() as u32 }.encode(&mut bytes);
    bytes.extend_from_slice(&index::build(&things));
    bytes.extend_from_slice(&texts);
    Ok(bytes)
}

/// SHA-256 of a directory's listing: for each name, in the order of its bytes, the number of its kind, the name and a NUL; after a link
/// also its target and a NUL.
pub(crate) fn digest(path: &Path) -> io::Result<[u8; 32]> {
    let mut digest = Sha256::new();
    for Name { kind, name } in read(path)? {
        digest.update([kind]);
        digest.update(&name);
        digest.update([0]);
        if kind == name_kind::LINK {
            digest.update(fs::read_link(path.join(OsStr::from_bytes(&name)))?.as_os_str().as_bytes());
            digest.update([0]);
        }
    }
    Ok(digest.finalize().into())
}

struct Name {
    kind: u8,
    name: Vec<u8>,
}

fn read(path: &Path) -> io::Result<Vec<Name>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let file_type = entry.file_type()?;
        let kind = if file_type.is_file() {
            name_kind::FILE
        } else if file_type.is_dir() {
            name_kind::DIRECTORY
        } else if file_type.is_symlink() {
            name_kind::LINK
        } else {
            name_kind::OTHER
        };
        names.push(Name { kind, name: entry.file_name().into_encoded_bytes() });
    }
    names.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(names)
}
