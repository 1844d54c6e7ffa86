//! Which files and directories are the same though their times are others.
//!
//! What a comparison of contents or answers has shown is remembered in the file IMAGE.seen beside the image, so that the next thaw need not
//! compare again; where that cannot be written, every thaw compares. `docs/internals/image-format.md` describes the file.

use image::{reserved, Directory, Input, MappedFile, Record, Section, SeenFile, SeenHead};
use linux_raw_sys::general::{O_CLOEXEC, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY};

use crate::sidecar::SidecarPath;
use crate::sys::{self, Fd, Memory, Status};

fn row(path: &[u8], now: &Status) -> SeenFile {
    SeenFile { path: image::checksum(path), mtime: now.mtime, ctime: now.ctime }
}

/// What is known of them in one thaw.
pub struct SeenFiles {
    image: Fd,
    image_id: u64,
    /// Rows in the inputs, the files and the directories section together.
    rows: usize,
    seen: Option<Seen>,
    /// Whether something was compared that IMAGE.seen does not know.
    has_news: bool,
}

impl SeenFiles {
    /// For the image that is open as `image`, and that IMAGE.seen knows by `image_id`.
    pub fn new(image: Fd, tables: &image::Tables<'_>, image_id: u64) -> Result<SeenFiles, image::Error> {
        let rows = tables.rows::<Input>(Section::Inputs)?.len()
            + tables.rows::<MappedFile>(Section::Files)?.len()
            + tables.rows::<Directory>(Section::Directories)?.len();
        Ok(SeenFiles { image, image_id, rows, seen: None, has_news: false })
    }

    /// Whether an earlier thaw has found that a place with this status is the same.
    pub fn knows(&mut self, path: &[u8], now: &Status) -> bool {
        self.seen().knows(&row(path, now))
    }

    /// Adds a place to what the next thaw knows. `is_new`: this one did not know it.
    pub fn add(&mut self, path: &[u8], now: &Status, is_new: bool) {
        self.has_news |= is_new;
        self.seen().add(&row(path, now));
    }

    fn seen(&mut self) -> &mut Seen {
        let (image, image_id, rows) = (self.image, self.image_id, self.rows);
        self.seen.get_or_insert_with(|| Seen::read(image, image_id, rows))
    }

    /// Writes IMAGE.seen when there is something new, and gives the memory back. Nothing depends on that, so nothing is said when it
    /// fails.
    pub fn remember(&mut self) {
        let Some(seen) = self.seen.take() else { return };
        if self.has_news {
            let _ = seen.write(self.image, self.image_id);
        }
    }
}

/// Two lists in one area of the reserved range, each large enough for every file and directory: what IMAGE.seen holds, and what it shall hold.
struct Seen {
    /// None without memory for it.
    area: Option<Memory>,
    /// Rows that fit into each list.
    most: usize,
    old: usize,
    new: usize,
}

impl Seen {
    /// An area, with the rows of IMAGE.seen if that is there, complete, and as private as the image. Without memory the lists are empty.
    #[inline(never)]
    fn read(image: Fd, image_id: u64, most: usize) -> Seen {
        let Ok(area) = Memory::map(reserved::SEEN, (2 * most * SeenFile::SIZE) as u64) else {
            return Seen { area: None, most: 0, old: 0, new: 0 };
        };
        let mut seen = Seen { area: Some(area), most, old: 0, new: 0 };
        let Some(name) = SidecarPath::beside(image, ".seen") else { return seen };
        let Ok(file) = sys::open(name.bytes(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) else { return seen };
        seen.old = seen.old_rows_of(file, image_id).unwrap_or(0);
        sys::close(file);
        seen
    }

    /// Reads the rows; None when the file is not to be believed.
    fn old_rows_of(&mut self, file: Fd, image_id: u64) -> Option<usize> {
        let status = sys::fstat(file).ok()?;
        let is_own = status.owner == 0 || status.owner == sys::euid();
        if !is_own || status.mode & 0o022 != 0 {
            return None;
        }
        let mut bytes = [0; SeenHead::SIZE];
        if sys::read_at(file, &mut bytes, 0).ok()? != bytes.len() {
            return None;
        }
        let head = SeenHead::decode(&bytes);
        let count = usize::try_from(head.count).ok()?;
        if head.magic != SeenHead::MAGIC || head.image != image_id || count > self.most {
            return None;
        }
        let rows = &mut self.area_mut()[..count * SeenFile::SIZE];
        let complete = sys::read_at(file, rows, SeenHead::SIZE as u64).ok()? == rows.len();
        (complete && image::checksum(rows) == head.sum).then_some(count)
    }

    /// Whether IMAGE.seen has this very row. Rows were added in the order in which they are looked up, so the first look is
    /// mostly right.
    fn knows(&self, row: &SeenFile) -> bool {
        let (old, likely) = (self.old, self.new);
        let area = self.area();
        let at = |index: usize| SeenFile::decode(&area[index * SeenFile::SIZE..]) == *row;
        (likely < old && at(likely)) || (0..old).any(at)
    }

    fn add(&mut self, row: &SeenFile) {
        if self.new < self.most {
            let start = (self.most + self.new) * SeenFile::SIZE;
            row.encode(&mut self.area_mut()[start..]);
            self.new += 1;
        }
    }

    /// Puts the new rows in the place of the old file, at once.
    #[inline(never)]
    fn write(&self, image: Fd, image_id: u64) -> Option<()> {
        let (name, temporary) = (SidecarPath::beside(image, ".seen")?, SidecarPath::beside(image, ".seen~")?);
        let rows = &self.area()[self.most * SeenFile::SIZE..][..self.new * SeenFile::SIZE];
        let (count, sum) = (self.new as u64, image::checksum(rows));
        let mut head = [0; SeenHead::SIZE];
        SeenHead { magic: SeenHead::MAGIC, image: image_id, count, sum }.encode(&mut head);
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
        let Ok(file) = sys::create(temporary.bytes(), flags, 0o600) else {
            // Perhaps a thaw was killed in here: the next one starts afresh. Of two at the same time one may lose its file.
            sys::unlink(temporary.bytes());
            return None;
        };
        let written = sys::write_all(file, &head).and_then(|()| sys::write_all(file, rows));
        sys::close(file);
        if written.is_err() || sys::rename(temporary.bytes(), name.bytes()).is_err() {
            sys::unlink(temporary.bytes());
        }
        Some(())
    }

    fn area(&self) -> &[u8] {
        self.area.as_ref().map_or(b"", Memory::bytes)
    }

    fn area_mut(&mut self) -> &mut [u8] {
        self.area.as_mut().map_or(&mut [], Memory::bytes_mut)
    }
}
