//! Whether files and directories are what they were: by size and times or, where only times differ, by content or answers.
//!
//! Copying a tree, `touch`, a hard link and a container layer change times and nothing else. What a comparison of contents has shown is
//! remembered in the file IMAGE.seen beside the image, so that the next thaw need not compare again; where that cannot be written, every
//! thaw compares. `docs/internals/image-format.md` describes the file.

use image::{directory_flag, policy, reserved, Directory, Input, MappedFile, Record, Section, SeenFile, SeenHead};
use linux_raw_sys::general::{O_CLOEXEC, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY};

use crate::content;
use crate::sidecar::SidecarPath;
use crate::sys::{self, Fd, Memory, Status};

/// What was recorded of a file.
pub struct Recorded {
    pub size: u64,
    pub mtime: i64,
    pub ctime: i64,
    pub digest: [u8; 16],
}

/// Answers of a directory that take more bytes than this are remembered; fewer are looked up again faster than a file is written.
const WORTH_REMEMBERING: u64 = 1024;

fn row(path: &[u8], now: &Status) -> SeenFile {
    SeenFile { path: image::checksum(path), mtime: now.mtime, ctime: now.ctime }
}

/// Whether a file is as it was, as far as size and times tell that under this policy; None when its content counts.
pub fn told(policy: u32, now: &Status, recorded: &Recorded) -> Option<bool> {
    if now.size != recorded.size {
        return Some(false);
    }
    (policy == policy::TRUST || times_tell(policy, now, recorded.mtime, recorded.ctime)).then_some(true)
}

/// Whether the times are those that were recorded, and mean something.
fn times_tell(policy: u32, now: &Status, mtime: i64, ctime: i64) -> bool {
    policy == policy::CHECK && now.mtime == mtime && now.ctime == ctime
}

/// Answers for one thaw.
pub struct Freshness {
    policy: u32,
    image: Fd,
    image_id: u64,
    /// Rows in the inputs, the files and the directories section together.
    rows: usize,
    seen: Option<Seen>,
    /// Whether a content was compared that IMAGE.seen does not know.
    has_news: bool,
}

impl Freshness {
    /// For the image that is open as `image`, and that IMAGE.seen knows by `image_id`. `policy`: one of [`image::policy`].
    pub fn of(image: Fd, tables: &image::Tables<'_>, image_id: u64, policy: u32) -> Result<Freshness, image::Error> {
        let rows = tables.rows::<Input>(Section::Inputs)?.len()
            + tables.rows::<MappedFile>(Section::Files)?.len()
            + tables.rows::<Directory>(Section::Directories)?.len();
        Ok(Freshness { policy, image, image_id, rows, seen: None, has_news: false })
    }

    /// Whether loaded files need no look at all.
    pub fn trusts(&self) -> bool {
        self.policy == policy::TRUST
    }

    /// Whether a file is as it was. `open` opens it for reading where its content counts; that it cannot is the error.
    pub fn holds(
        &mut self,
        path: &[u8],
        open: impl FnOnce() -> sys::Result<Fd>,
        now: &Status,
        recorded: &Recorded,
    ) -> sys::Result<bool> {
        if let Some(told) = told(self.policy, now, recorded) {
            return Ok(told);
        }
        if !self.seen().knows(&row(path, now)) {
            let file = open()?;
            let same = has_content(file, recorded);
            sys::close(file);
            if !same {
                return Ok(false);
            }
            self.has_news = true;
        }
        self.seen().add(&row(path, now));
        Ok(true)
    }

    /// Whether a file that others share and that has changed gives the answers that it gave. `repeat` makes its look-ups again, and fails with what has changed.
    pub fn shared_holds<E>(
        &mut self,
        path: &[u8],
        now: &Status,
        repeat: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.seen().knows(&row(path, now)) {
            repeat()?;
            self.has_news = true;
        }
        self.seen().add(&row(path, now));
        Ok(())
    }

    /// Whether a directory, which has these times now and had those, gives the answers that it gave. `repeat` makes its look-ups again where the times do not tell, and fails with what has changed.
    pub fn answers_hold<E>(
        &mut self,
        path: &[u8],
        now: &Status,
        recorded: &Directory,
        repeat: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        if times_tell(self.policy, now, recorded.mtime, recorded.ctime) {
            return Ok(());
        }
        let is_quick = recorded.answers_size < WORTH_REMEMBERING || recorded.flags & directory_flag::DEEP != 0;
        if is_quick || self.is_home(now) {
            return repeat();
        }
        self.shared_holds(path, now, repeat)
    }

    /// Whether this is the directory of the image: to remember its times would change them.
    #[inline(never)]
    fn is_home(&self, status: &Status) -> bool {
        let Some(mut name) = SidecarPath::of(self.image, "") else { return false };
        let slash = name.bytes().iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        // The slash stays, for the root directory.
        name.cut(slash + 1);
        sys::stat(None, name.bytes()).is_ok_and(|home| (home.device, home.inode) == (status.device, status.inode))
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

/// Whether a file has the recorded content, whatever its times. For relative names: two folders may hold files of the same times, so these
/// tell nothing of another folder.
pub fn is_same(path: &[u8], now: &Status, recorded: &Recorded) -> sys::Result<bool> {
    if now.size != recorded.size {
        return Ok(false);
    }
    let file = sys::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)?;
    let same = has_content(file, recorded);
    sys::close(file);
    Ok(same)
}

/// Whether a file has the recorded content. What is no regular file, or cannot be read, has not.
fn has_content(file: Fd, recorded: &Recorded) -> bool {
    content::digest(file) == Ok((recorded.digest, recorded.size))
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
        let Some(name) = SidecarPath::of(image, ".seen") else { return seen };
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
        let (name, temporary) = (SidecarPath::of(image, ".seen")?, SidecarPath::of(image, ".seen~")?);
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
