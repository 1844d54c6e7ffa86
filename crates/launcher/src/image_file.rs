//! The image that is to be thawed: the head that was loaded with the launcher, and the file.

use image::{reserved, Command, Head, Record, HEAD_AREA, HEAD_OFFSET};
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK, O_RDONLY};

use crate::reason::Reason;
use crate::start::Start;
use crate::sys::{self, Fd, FilePart};

/// `snapboot freeze` writes head and command over these bytes; in the launcher as it was built they are zero.
#[allow(unsafe_code)] // For the section.
#[link_section = ".snapboot.head"]
#[used]
static HEAD: [u8; HEAD_AREA] = [0; HEAD_AREA];

/// The image, with nothing checked yet but the command's own checksum.
pub struct ImageFile {
    /// Head and command as bytes.
    pub area: &'static [u8],
    /// The original command.
    pub command: Command<'static>,
    /// Arguments before those of the program: 1, or 2 when the launcher got the image as an argument.
    pub own_arguments: usize,
    /// The image file, once it could be opened.
    pub file: Result<Fd, Reason>,
}

impl ImageFile {
    /// Opens the file that is being executed or, when the launcher has no head of its own, the one named by its first
    /// argument. Fails when there is no original command that could be executed instead.
    pub fn open(start: &Start) -> Result<ImageFile, Reason> {
        // The black box keeps the compiler from believing the zeros that it sees.
        let own: &'static [u8] = core::hint::black_box(&HEAD);
        let (area, own_arguments, file) = if own[..Head::SIZE].iter().any(|&byte| byte != 0) {
            (own, 1, running(start, own))
        } else {
            let path = start.arguments().nth(1).ok_or(Reason::new(
                "expected an image: run the image itself, or give the launcher an image as its first argument",
            ))?;
            // A pipe would wait for somebody who writes.
            let file = sys::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
                .map_err(|errno| Reason::new("cannot open the image").errno(errno))?;
            (head_of(file)?, 2, Ok(file))
        };
        let command = Command::parse(area, &Head::decode(area)).map_err(Reason::image)?;
        Ok(ImageFile { area, command, own_arguments, file })
    }
}

/// Opens the image that is running: by the path that was executed, or else through /proc, which takes several times as long.
fn running(start: &Start, own: &[u8]) -> Result<Fd, Reason> {
    // A pipe that has come in its place would wait for somebody who writes.
    if let Some(file) = start.executed().and_then(|path| sys::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC).ok()) {
        let mut head = [0; Head::SIZE];
        // The head has checksums of everything else, so a file with this very head is this image.
        if sys::read_at(file, &mut head, HEAD_OFFSET as u64) == Ok(Head::SIZE) && head == own[..Head::SIZE] {
            return Ok(file);
        }
        sys::close(file);
    }
    sys::open(b"/proc/self/exe\0", O_RDONLY | O_CLOEXEC)
        .map_err(|errno| Reason::new("cannot open the image through /proc/self/exe").errno(errno))
}

/// Maps the head of an image that is not the running program.
fn head_of(file: Fd) -> Result<&'static [u8], Reason> {
    let unreadable = |errno| Reason::new("cannot read the head of the image").errno(errno);
    let size = sys::fstat(file).map_err(unreadable)?.size;
    if size < (HEAD_OFFSET + HEAD_AREA) as u64 {
        return Err(Reason::new("expected an image, found a file that is too short to be one"));
    }
    let part = FilePart::map(reserved::HEAD, HEAD_AREA as u64, file, HEAD_OFFSET as u64).map_err(unreadable)?;
    Ok(part.leak())
}
