//! Files that the whole machine shares, such as the dynamic loader's cache: where one has changed, only the answers count that the boot got from it.

use image::{reserved, FileLookup, Section};
use inputs::lookups;
use linux_raw_sys::general::{O_CLOEXEC, O_NONBLOCK, O_RDONLY};

use crate::frozen::Frozen;
use crate::reason::Reason;
use crate::start::without_nul;
use crate::sys::{self, Fd, Memory};

/// What comes later in a file (bytes) is not looked at.
const MAX: u64 = 64 << 20;

/// What the boot has looked up in one file.
pub struct Lookups<'a> {
    frozen: &'a Frozen,
    rows: image::Rows<'static, FileLookup>,
    input: u32,
}

impl<'a> Lookups<'a> {
    /// Those of an input, by its row.
    pub fn to(frozen: &'a Frozen, input: usize) -> Result<Self, Reason> {
        Ok(Lookups { frozen, rows: frozen.rows(Section::Lookups)?, input: input as u32 })
    }

    fn own(&self) -> impl Iterator<Item = FileLookup> {
        let input = self.input;
        self.rows.clone().skip_while(move |row| row.input < input).take_while(move |row| row.input == input)
    }

    /// Whether there are none: then the whole content counts.
    pub fn are_none(&self) -> bool {
        self.own().next().is_none()
    }

    /// Repeats the look-ups; the first answer that is another one is the reason for the fallback.
    pub fn ask(&self, path: &'static [u8]) -> Result<(), Reason> {
        let unreadable = |errno| Reason::new("stale: this file cannot be read").subject(without_nul(path)).errno(errno);
        let file = sys::open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC).map_err(unreadable)?;
        let content = Content::of(file);
        sys::close(file);
        self.ask_of(content.map_err(unreadable)?.bytes())
    }

    /// The same of a content; of one that is empty where there is no file any more.
    pub fn ask_of(&self, content: &[u8]) -> Result<(), Reason> {
        for lookup in self.own() {
            let text = self.frozen.tables.text(lookup.text).map_err(Reason::image)?;
            if lookups::answer(lookup.kind, text, content) != Some(lookup.answer) {
                // The table stays, the content does not.
                return Err(Reason::new(lookups::difference(lookup.kind)).subject(text));
            }
        }
        Ok(())
    }
}

/// What is in a file, in memory of its own: whoever changes the file meanwhile does no harm.
struct Content {
    memory: Memory,
    size: usize,
}

impl Content {
    fn of(file: Fd) -> sys::Result<Content> {
        let mut content = Content { memory: Memory::map(reserved::SHARED, MAX)?, size: 0 };
        loop {
            match sys::read_at(file, &mut content.memory.bytes_mut()[content.size..], content.size as u64)? {
                0 => return Ok(content),
                count => content.size += count,
            }
        }
    }

    fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[..self.size]
    }
}
