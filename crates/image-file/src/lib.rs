//! An image as a file, seen from outside: its checked head and tables, its description of itself ([`info`]), the counts
//! of its starts ([`starts`]), its limits of age and thaws ([`rotation`]), and its differences from the present state
//! ([`differences`]). The launcher does the same below any library.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod content_digest;
pub mod differences;
pub mod directory_answers;
pub mod info;
pub mod kind;
pub mod machine;
pub mod rotation;
pub mod starts;
pub mod this_process;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use image::{Command, Directory, Head, Section, Settings, Tables, HEAD_AREA, HEAD_OFFSET};
use rustix::fs::{statvfs, StatVfsMountFlags};

pub use content_digest::{content_digest, digest_pages};
use directory_answers::DirectoryAnswer;

/// An image file with checked heads and tables. The data pages are not read.
pub struct ImageFile {
    /// The file.
    pub file: File,
    /// Its path.
    pub path: PathBuf,
    /// Its size in bytes.
    pub size: u64,
    /// The frozen processes that it holds, at least one.
    pub variants: Vec<Variant>,
    area: Vec<u8>,
}

/// One of the frozen processes of an image.
pub struct Variant {
    /// Its head.
    pub head: Head,
    tables: Vec<u8>,
    answers: Vec<u8>,
}

impl Variant {
    fn read(number: u32, area: &[u8], file: &File, size: u64) -> io::Result<std::result::Result<Self, image::Error>> {
        let head = match Head::parse_variant(number, area, size) {
            Ok(head) => head,
            Err(error) => return Ok(Err(error)),
        };
        // The head was checked: the tables lie inside the file.
        let mut tables = vec![0; head.tables_size as usize];
        file.read_exact_at(&mut tables, head.tables_offset)?;
        let checked = Tables::parse(&tables, &head).and_then(|tables| image::validate::rows(&tables, &head));
        let mut answers = vec![0; head.answers_size as usize];
        file.read_exact_at(&mut answers, head.answers_offset)?;
        Ok(checked.map(|()| Variant { head, tables, answers }))
    }

    /// The answers of a directory: names, sorted, and their answers. Fails if they are damaged.
    pub fn answers(&self, directory: &Directory) -> Result<Vec<(OsString, DirectoryAnswer)>> {
        directory_answers::read_answers(&self.answers, directory)
    }

    /// Its tables.
    pub fn tables(&self) -> Tables<'_> {
        // Opening the image has parsed the same bytes.
        Tables::parse(&self.tables, &self.head).expect("tables that were checked before")
    }
}

/// The beginning of an image, for callers that cannot wait for all checks of [`ImageFile`].
pub struct FirstHead {
    /// The file.
    pub file: File,
    /// The bytes of all heads, and of the command.
    pub area: Vec<u8>,
    /// The head of the first variant.
    pub head: Head,
}

impl FirstHead {
    /// Reads and checks the head. Fails if the file cannot be read or is not an image.
    pub fn read(path: &Path) -> io::Result<Self> {
        let file = trust::look::open(path)?;
        let mut area = vec![0; HEAD_AREA];
        file.read_exact_at(&mut area, HEAD_OFFSET as u64)?;
        let head = Head::parse(&area, file.metadata()?.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(FirstHead { file, area, head })
    }
}

impl ImageFile {
    /// Opens an image and checks its head, tables and every row. The error is a failure if the file is not an image or
    /// damaged, and a refusal if it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let cannot = |error: io::Error| Failure::io("read", path, &error);
        let wrong = |error: image::Error| Failure::failed(format!("{}: {error}.", path.display()));
        let file = trust::look::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory => {
                Failure::refusal(format!("{} is not a regular file, so it is not an image.", path.display()))
            }
            _ => cannot(error),
        })?;
        let size = file.metadata().map_err(cannot)?.len();
        let mut area = Vec::new();
        (&file).seek(SeekFrom::Start(HEAD_OFFSET as u64)).map_err(cannot)?;
        (&file).take(HEAD_AREA as u64).read_to_end(&mut area).map_err(cannot)?;
        if area.len() < HEAD_AREA {
            return Err(wrong(image::Error::NotAnImage));
        }
        let first = Variant::read(0, &area, &file, size).map_err(cannot)?.map_err(wrong)?;
        let count = first.head.variants;
        let mut variants = vec![first];
        for number in 1..count {
            variants.push(Variant::read(number, &area, &file, size).map_err(cannot)?.map_err(wrong)?);
        }
        Ok(ImageFile { file, path: path.to_owned(), size, variants, area })
    }

    /// The head of the first variant.
    pub fn head(&self) -> &Head {
        &self.variants[0].head
    }

    /// The tables of the first variant.
    pub fn tables(&self) -> Tables<'_> {
        self.variants[0].tables()
    }

    /// Its name with links resolved, since that is the name that the kernel gives to a launcher.
    fn name(&self) -> OsString {
        let path = self.path.canonicalize();
        path.as_deref().unwrap_or(&self.path).file_name().unwrap_or_default().to_owned()
    }

    /// How thaws check the image.
    pub fn settings(&self) -> Result<Settings> {
        Ok(self.tables().rows::<Settings>(Section::Settings)?.next().unwrap_or_default())
    }

    /// The original command: the program, then its argv.
    pub fn command(&self) -> Result<Vec<String>> {
        let command = Command::parse(&self.area, self.head())?;
        let strings = std::iter::once(command.program()).chain(command.argv());
        Ok(strings.map(|string| String::from_utf8_lossy(&string[..string.len() - 1]).into_owned()).collect())
    }
}

/// The original command of an image: the program, then its argv. Reads only the head.
pub fn command_of(path: &Path) -> Result<Vec<OsString>> {
    let FirstHead { area, head, .. } = FirstHead::read(path).map_err(|error| Failure::io("read", path, &error))?;
    let command = Command::parse(&area, &head)?;
    let strings = std::iter::once(command.program()).chain(command.argv());
    Ok(strings.map(|string| OsStr::from_bytes(&string[..string.len() - 1]).to_owned()).collect())
}

/// Whether the file system of a path forbids execution.
pub fn on_noexec_mount(path: &Path) -> bool {
    statvfs(path).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::NOEXEC))
}
