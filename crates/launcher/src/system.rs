//! The system calls with which files and directories are compared, see [`inputs::system`].

use core::cell::OnceCell;

use image::{reserved, Directory};
use inputs::system::{Status, System};
use linux_raw_sys::general::{O_CLOEXEC, O_DIRECTORY, O_NONBLOCK, O_PATH, O_RDONLY};

use crate::content;
use crate::frozen::Frozen;
use crate::reason::Reason;
use crate::sidecar::SidecarPath;
use crate::start::without_nul;
use crate::sys::{self, Fd, FilePart, Memory, Result};

/// What comes later in a file that others share (bytes) is not looked at.
const MAX_SHARED: u64 = 64 << 20;

/// This machine, and the answers that an image has of its directories.
pub struct Machine {
    image: Fd,
    offset: u64,
    size: u64,
    /// Mapped when the first directory is looked at again.
    part: OnceCell<FilePart>,
}

impl Machine {
    /// For an image whose head and tables were checked.
    pub fn new(frozen: &Frozen) -> Machine {
        let Frozen { file, head, .. } = frozen;
        Machine { image: *file, offset: head.answers_offset, size: head.answers_size, part: OnceCell::new() }
    }

    fn map_answers(&self) -> core::result::Result<FilePart, Reason> {
        FilePart::map(reserved::ANSWERS, self.size, self.image, self.offset)
            .map_err(|errno| Reason::new("cannot map the answers of directories").errno(errno))
    }
}

impl System for Machine {
    type Directory = Fd;
    type Stop = Reason;
    const WORTH_OPENING: u32 = 2;

    fn open_directory(&self, path: &[u8]) -> Result<Fd> {
        sys::open(path, O_PATH | O_DIRECTORY | O_CLOEXEC)
    }

    fn close(&self, directory: Fd) {
        sys::close(directory);
    }

    fn status(&self, directory: &Fd) -> Result<Status> {
        sys::fstat(*directory)
    }

    fn stat(&self, directory: Option<&Fd>, path: &[u8]) -> Result<Status> {
        sys::stat(directory.copied(), path)
    }

    fn stat_readable(&self, path: &[u8]) -> Result<Status> {
        let file = sys::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)?;
        let status = sys::fstat(file);
        sys::close(file);
        status
    }

    fn stat_link(&self, directory: &Fd, name: &[u8]) -> Result<Status> {
        sys::stat_link(*directory, name)
    }

    fn read_link(&self, directory: &Fd, name: &[u8], target: &mut [u8]) -> Result<usize> {
        sys::read_link_at(*directory, name, target)
    }

    fn list(&self, directory: &Fd, each: &mut dyn FnMut(&[u8])) -> Result<()> {
        let open = sys::open_at(*directory, b".\0", O_RDONLY | O_DIRECTORY | O_CLOEXEC)?;
        let result = list_open(open, each);
        sys::close(open);
        result
    }

    fn read_start(&self, directory: &Fd, name: &[u8], start: &mut [u8]) -> Result<usize> {
        let file = sys::open_at(*directory, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC)?;
        let size = sys::read_at(file, start, 0);
        sys::close(file);
        size
    }

    fn digest(&self, path: &[u8]) -> Result<([u8; 16], u64)> {
        let file = sys::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)?;
        let digest = content::digest(file);
        sys::close(file);
        digest
    }

    fn with_content(&self, path: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<()> {
        let file = sys::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)?;
        let copied = copy(file);
        sys::close(file);
        copied.map(|(memory, size)| see(&memory.bytes()[..size]))
    }

    fn answers(&self, row: &Directory) -> core::result::Result<&[u8], Reason> {
        let part = match self.part.get() {
            Some(part) => part,
            None => {
                let part = self.map_answers()?;
                self.part.get_or_init(|| part)
            }
        };
        let (start, size) = (row.answers_offset as usize, row.answers_size as usize);
        Ok(part.bytes().get(start..start + size).unwrap_or(b""))
    }

    /// Not inlined: the name would make the stack of every start larger.
    #[inline(never)]
    fn with_image_name(&self, see: &mut dyn FnMut(&[u8])) {
        let path = SidecarPath::beside(self.image, "");
        let own = path.as_ref().map_or(&b""[..], |name| without_nul(name.bytes()));
        see(own.rsplit(|&byte| byte == b'/').next().unwrap_or(b""));
    }

    #[inline(never)]
    fn is_home(&self, directory: &Status) -> bool {
        let Some(mut name) = SidecarPath::beside(self.image, "") else { return false };
        let slash = name.bytes().iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        // The slash stays, for the root directory.
        name.cut(slash + 1);
        sys::stat(None, name.bytes()).is_ok_and(|home| (home.device, home.inode) == (directory.device, directory.inode))
    }
}

/// What is in a file, in memory of its own, and how much it is (bytes): whoever changes the file meanwhile does no harm.
fn copy(file: Fd) -> Result<(Memory, usize)> {
    let (mut memory, mut size) = (Memory::map(reserved::SHARED, MAX_SHARED)?, 0);
    loop {
        match sys::read_at(file, &mut memory.bytes_mut()[size..], size as u64)? {
            0 => return Ok((memory, size)),
            count => size += count,
        }
    }
}

/// Calls `each` with every name in a directory that is open for reading.
#[inline(never)]
pub fn list_open(directory: Fd, each: &mut dyn FnMut(&[u8])) -> Result<()> {
    /// Offsets of d_reclen and d_name in `linux_dirent64`.
    const LENGTH: usize = 16;
    const NAME: usize = 19;
    let mut entries = [0; 8192];
    loop {
        let mut rest = match sys::list(directory, &mut entries)? {
            0 => return Ok(()),
            size => &entries[..size],
        };
        while rest.len() > NAME {
            let length = usize::from(u16::from_le_bytes([rest[LENGTH], rest[LENGTH + 1]]));
            let Some((entry, next)) = rest.split_at_checked(length.max(NAME)) else { break };
            each(entry[NAME..].split(|&byte| byte == 0).next().unwrap_or(b""));
            rest = next;
        }
    }
}
