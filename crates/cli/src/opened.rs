//! An image file opened for reading: head and tables, checked.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use image::{Command, ContentDigest, Head, Section, Settings, Tables, HEAD_OFFSET, HEAD_ROOM};

use crate::failure::{Failure, Result};

/// How much is read at a time (bytes).
const PIECE: usize = 1 << 18;

/// An image whose head and tables are whole. The data pages are not read.
pub struct Opened {
    /// The file.
    pub file: File,
    /// Where it is.
    pub path: PathBuf,
    /// Its head.
    pub head: Head,
    /// Its size in bytes.
    pub size: u64,
    room: Vec<u8>,
    tables: Vec<u8>,
}

impl Opened {
    /// Opens an image and checks its head, tables and every row. A file that is no image, or is damaged, fails with exit
    /// status 1 and says what is wrong; one that cannot be read, with 2.
    pub fn open(path: &Path) -> Result<Self> {
        let cannot = |error: io::Error| Failure::io("read", path, &error);
        let wrong = |error: image::Error| Failure::failed(format!("{}: {error}.", path.display()));
        let file = File::open(path).map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        if !metadata.is_file() {
            return Err(Failure::refusal(format!("{} is no regular file, and an image is one.", path.display())));
        }
        let size = metadata.len();
        let mut room = Vec::new();
        (&file).seek(SeekFrom::Start(HEAD_OFFSET as u64)).map_err(cannot)?;
        (&file).take(HEAD_ROOM as u64).read_to_end(&mut room).map_err(cannot)?;
        if room.len() < HEAD_ROOM {
            return Err(wrong(image::Error::NotAnImage));
        }
        let head = Head::parse(&room, size).map_err(wrong)?;
        // `Head::parse` has checked that the tables lie inside the file.
        let mut tables = vec![0; head.tables_size as usize];
        file.read_exact_at(&mut tables, head.tables_offset).map_err(cannot)?;
        let opened = Opened { file, path: path.to_owned(), head, size, room, tables };
        let tables = Tables::parse(&opened.tables, &opened.head).map_err(wrong)?;
        image::validate::rows(&tables, &opened.head).map_err(wrong)?;
        Ok(opened)
    }

    /// The tables.
    pub fn tables(&self) -> Tables<'_> {
        // They were parsed with the same bytes when the image was opened.
        Tables::parse(&self.tables, &self.head).expect("tables that were checked before")
    }

    /// How thaws go about their checks.
    pub fn settings(&self) -> Result<Settings> {
        Ok(self.tables().rows::<Settings>(Section::Settings)?.next().unwrap_or_default())
    }

    /// The original command: the program, then its argv.
    pub fn command(&self) -> Result<Vec<String>> {
        let command = Command::parse(&self.room, &self.head)?;
        let strings = std::iter::once(command.program()).chain(command.argv());
        Ok(strings.map(|string| String::from_utf8_lossy(&string[..string.len() - 1]).into_owned()).collect())
    }

    /// The digest of the data pages as they are in the file.
    pub fn digest_pages(&self) -> io::Result<[u8; 16]> {
        digest_pages(&self.file, self.head.pages_offset, self.head.pages_size)
    }
}

/// The digest of a part of a file, as the head has it of the data pages.
pub fn digest_pages(file: &File, offset: u64, size: u64) -> io::Result<[u8; 16]> {
    let (mut digest, mut buffer) = (ContentDigest::default(), vec![0; PIECE]);
    let (mut at, end) = (offset, offset + size);
    while at < end {
        let piece = buffer.len().min(usize::try_from(end - at).unwrap_or(usize::MAX));
        file.read_exact_at(&mut buffer[..piece], at)?;
        digest.update(&buffer[..piece]);
        at += piece as u64;
    }
    Ok(digest.finish())
}
