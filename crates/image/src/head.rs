//! The head: the part of an image that is read first, and the original command for the fallback.
//!
//! The head lies at [`HEAD_OFFSET`] of the file, in a segment that the kernel loads with the launcher. So the launcher
//! can fall back even if everything after the launcher was stripped or truncated.

use crate::{checksum, reserved, Error, PAGE, VERSION};
use record::record;
use record::Record;

/// Where the head starts in the file (bytes).
///
/// Not the second page: the kernel's first read of a program leaves a read-ahead mark there, and touching it makes the
/// kernel read megabytes ahead.
pub const HEAD_OFFSET: usize = 8192;
/// Bytes that the launcher reserves for the head and the command.
pub const HEAD_AREA: usize = 16 * 1024;
/// Where the command's strings start, from the head (bytes).
pub const COMMAND_OFFSET: usize = 256;
/// The maximum number of frozen processes in an image.
pub const MAX_VARIANTS: u32 = 16;
/// Where the heads of all variants but the first are, one after the other, relative to the first head (bytes). The
/// command ends before them.
pub const VARIANTS_OFFSET: usize = HEAD_AREA - (MAX_VARIANTS as usize - 1) * Head::SIZE;

/// Bytes that the launcher reserves for the tables.
pub const MAX_TABLES: u64 = reserved::VDSO - reserved::TABLES;

/// Bytes that the launcher reserves for the answers.
pub const MAX_ANSWERS: u64 = reserved::CHANGED_PATH - reserved::ANSWERS;

/// The magic of a finished image. While an image is being written its first byte is zero.
const MAGIC: [u8; 8] = *b"\x89SNAPBT\n";

record! {
    /// Describes the rest of the file. [`Head::parse`] checks all of it. An image with several variants has a head for
    /// each; they differ only in their data pages and tables.
    pub struct Head {
        /// `\x89SNAPBT\n`; the first byte is written last.
        pub magic: [u8; 8],
        /// [`VERSION`].
        pub version: u32,
        /// Number of strings in the command area: the program to execute, the anchor (see [`Command::anchor`]), its
        /// argv, the words of the store (see [`Command::store_words`]), and the number of these words in decimal.
        pub command_count: u32,
        /// Bytes of the command's strings, each with its NUL.
        pub command_size: u64,
        /// Checksum of the command's strings.
        pub command_sum: u64,
        /// Size of the whole file in bytes.
        pub file_size: u64,
        /// File offset of the data pages, a multiple of the page size.
        pub pages_offset: u64,
        /// Bytes of data pages, a multiple of the page size.
        pub pages_size: u64,
        /// Digest (XXH3, 128 bits) of the data pages. `snapboot verify` checks it, and so does a start under
        /// [`crate::settings_flag::CHECK_PAGES`].
        pub pages_digest: [u8; 16],
        /// File offset of the tables, a multiple of the page size.
        pub tables_offset: u64,
        /// Bytes of the tables.
        pub tables_size: u64,
        /// Checksum of the tables.
        pub tables_sum: u64,
        /// File offset of the directories' answers, a multiple of the page size.
        pub answers_offset: u64,
        /// Bytes of the answers; each directory's part has a checksum of its own.
        pub answers_size: u64,
        /// Number of variants: frozen processes from which a thaw chooses one.
        pub variants: u32,
        /// Number of kinds of starts that the variants serve. Those for the first kind have the numbers 0, `kinds`, 2 *
        /// `kinds` and so on.
        pub kinds: u32,
        /// Checksum of all fields before this one.
        pub head_sum: u64,
    }
}

impl Head {
    /// Bytes of the head that `head_sum` covers.
    const SUMMED: usize = Self::SIZE - 8;

    /// Identifies the image to other files, if this is the head of its first variant: the checksum of the tables.
    pub fn image_id(&self) -> u64 {
        self.tables_sum
    }

    /// Reads and checks the head of the first variant.
    ///
    /// `area` holds the [`HEAD_AREA`] bytes at [`HEAD_OFFSET`]; `file_size` is the current size of the file. All fields
    /// of the returned head are within their bounds.
    pub fn parse(area: &[u8], file_size: u64) -> Result<Head, Error> {
        Head::parse_at(0, area, file_size)
    }

    /// Like [`Head::parse`], for any variant: `number` counts from 0, and is below the first head's `variants`.
    pub fn parse_variant(number: u32, area: &[u8], file_size: u64) -> Result<Head, Error> {
        if number >= MAX_VARIANTS {
            return Err(Error::OutOfRange { what: "the number of a variant", value: number.into() });
        }
        Head::parse_at(Head::head_offset(number as usize), area, file_size)
    }

    /// Where the head of a variant is, relative to the first head (bytes).
    fn head_offset(number: usize) -> usize {
        number.checked_sub(1).map_or(0, |index| VARIANTS_OFFSET + index * Head::SIZE)
    }

    fn parse_at(start: usize, area: &[u8], file_size: u64) -> Result<Head, Error> {
        if area.len() < HEAD_AREA {
            return Err(Error::Truncated { what: "the head", expected: HEAD_AREA as u64, found: area.len() as u64 });
        }
        let head = Head::decode(&area[start..]);
        if head.magic != MAGIC {
            return Err(Error::NotAnImage);
        }
        if head.version != VERSION {
            return Err(Error::Version { found: head.version });
        }
        if checksum(&area[start..][..Self::SUMMED]) != head.head_sum {
            return Err(Error::Damaged { what: "head" });
        }
        if head.variants == 0 || head.variants > MAX_VARIANTS {
            return Err(Error::OutOfRange { what: "the number of variants", value: head.variants.into() });
        }
        if head.kinds == 0 || head.variants % head.kinds != 0 {
            return Err(Error::OutOfRange { what: "the number of kinds of starts", value: head.kinds.into() });
        }
        Command::parse(area, &head)?;
        if head.file_size > file_size {
            return Err(Error::Truncated { what: "the image", expected: head.file_size, found: file_size });
        }
        inside_file("the data pages", head.pages_offset, head.pages_size, head.file_size)?;
        inside_file("the tables", head.tables_offset, head.tables_size, head.file_size)?;
        if head.answers_size > 0 {
            inside_file("the answers", head.answers_offset, head.answers_size, head.file_size)?;
        }
        if head.pages_size % PAGE != 0 {
            return Err(Error::OutOfRange { what: "the size of the data pages", value: head.pages_size });
        }
        let (pages_end, tables_end) = (head.pages_offset + head.pages_size, head.tables_offset + head.tables_size);
        if pages_end > head.tables_offset && tables_end > head.pages_offset {
            return Err(Error::OutOfRange { what: "the offset of the tables", value: head.tables_offset });
        }
        if head.tables_size > MAX_TABLES {
            return Err(Error::OutOfRange { what: "the size of the tables", value: head.tables_size });
        }
        if head.answers_size > MAX_ANSWERS {
            return Err(Error::OutOfRange { what: "the size of the answers", value: head.answers_size });
        }
        Ok(head)
    }

    /// Completes the heads of all variants (at least 1, at most [`MAX_VARIANTS`]) with the magic, the version, the
    /// command's fields, the number of kinds if it is 0, and the checksum. Writes them and the command into `area`
    /// ([`HEAD_AREA`] bytes), which belongs at [`HEAD_OFFSET`].
    ///
    /// `command` is the program to execute, the anchor (see [`Command::anchor`]), and the argv; for `store_words` see
    /// [`Command::store_words`].
    pub fn write<'a>(
        variants: &[Head],
        command: impl Iterator<Item = &'a [u8]>,
        store_words: &[&'a [u8]],
        area: &mut [u8],
    ) -> Result<(), Error> {
        let mut end = COMMAND_OFFSET;
        let mut needed = 0;
        let mut command_count = 0;
        let mut add = |string: &[u8]| {
            command_count += 1;
            needed += string.len() + 1;
            if COMMAND_OFFSET + needed <= VARIANTS_OFFSET {
                area[end..end + string.len()].copy_from_slice(string);
                area[end + string.len()] = 0;
                end += string.len() + 1;
            }
        };
        command.for_each(&mut add);
        store_words.iter().copied().for_each(&mut add);
        let (count, digits) = digits(store_words.len());
        add(&digits[digits.len() - count..]);
        if COMMAND_OFFSET + needed > VARIANTS_OFFSET {
            return Err(Error::CommandTooLong { length: needed });
        }
        let command_sum = checksum(&area[COMMAND_OFFSET..end]);
        for (number, head) in variants.iter().enumerate() {
            let mut head = Head {
                magic: MAGIC,
                version: VERSION,
                command_count,
                command_size: needed as u64,
                command_sum,
                variants: variants.len() as u32,
                kinds: head.kinds.max(1),
                ..*head
            };
            let place = &mut area[Head::head_offset(number)..];
            head.encode(place);
            head.head_sum = checksum(&place[..Self::SUMMED]);
            head.encode(place);
        }
        Ok(())
    }
}

/// A number in decimal: how many digits it has, and the bytes that end with them.
fn digits(mut number: usize) -> (usize, [u8; 20]) {
    let (mut bytes, mut count) = ([b'0'; 20], 0);
    while count == 0 || number > 0 {
        count += 1;
        bytes[20 - count] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    (count, bytes)
}

/// Checks that a page-aligned part lies inside the file.
fn inside_file(what: &'static str, offset: u64, size: u64, file_size: u64) -> Result<(), Error> {
    let end = offset.checked_add(size).ok_or(Error::OutOfRange { what, value: size })?;
    if !offset.is_multiple_of(PAGE) || offset < (HEAD_OFFSET + HEAD_AREA) as u64 || end > file_size {
        return Err(Error::OutOfRange { what, value: offset });
    }
    Ok(())
}

/// The original command: what the fallback executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    strings: &'a [u8],
    count: usize,
    store_count: usize,
}

impl<'a> Command<'a> {
    /// Reads the command that belongs to `head`, which may be unchecked: the command has its own checksum, so a damaged
    /// head still leads to the fallback.
    pub fn parse(area: &'a [u8], head: &Head) -> Result<Command<'a>, Error> {
        let size = usize::try_from(head.command_size).unwrap_or(usize::MAX);
        let strings = area
            .get(COMMAND_OFFSET..VARIANTS_OFFSET)
            .and_then(|rest| rest.get(..size))
            .ok_or(Error::OutOfRange { what: "the length of the command", value: head.command_size })?;
        if checksum(strings) != head.command_sum || strings.last() != Some(&0) {
            return Err(Error::Damaged { what: "command" });
        }
        let count = strings.iter().filter(|&&byte| byte == 0).count();
        let last = strings[..strings.len() - 1].rsplit(|&byte| byte == 0).next().unwrap_or(b"");
        let store_count = core::str::from_utf8(last).ok().and_then(|text| text.parse::<usize>().ok());
        let store_count = store_count.ok_or(Error::Damaged { what: "command" })?;
        if count != head.command_count as usize || count < store_count.saturating_add(4) {
            return Err(Error::OutOfRange {
                what: "the number of strings of the command",
                value: head.command_count.into(),
            });
        }
        let command = Command { strings, count, store_count };
        if command.words().nth(1) != Some(b"\0") && command.anchor().is_none() {
            return Err(Error::Damaged { what: "command" });
        }
        Ok(command)
    }

    /// The program to execute, with its final NUL.
    pub fn program(&self) -> &'a [u8] {
        self.words().next().unwrap_or(b"\0")
    }

    /// The index in argv of a script named by a relative path, and its absolute path with a final NUL. Encoded as
    /// `INDEX=PATH`; an empty string means none.
    pub fn anchor(&self) -> Option<(usize, &'a [u8])> {
        let anchor = self.words().nth(1)?;
        let equals = anchor.iter().position(|&byte| byte == b'=')?;
        let index = core::str::from_utf8(&anchor[..equals]).ok()?.parse().ok()?;
        let path = &anchor[equals + 1..];
        (index < self.argc() && path.starts_with(b"/")).then_some((index, path))
    }

    /// The argv of the command, each string with its final NUL.
    pub fn argv(&self) -> impl Iterator<Item = &'a [u8]> {
        self.words().skip(2).take(self.argc())
    }

    /// The number of argv entries.
    pub fn argc(&self) -> usize {
        self.count - 3 - self.store_count
    }

    /// The program that maintains the images of a store, and its first arguments, each with its final NUL; none for an
    /// image outside a store. A fallback executes it instead of the program, and appends the reason, the program and
    /// its argv.
    pub fn store_words(&self) -> impl Iterator<Item = &'a [u8]> {
        self.words().skip(2 + self.argc()).take(self.store_count)
    }

    /// The number of the store's words.
    pub fn store_count(&self) -> usize {
        self.store_count
    }

    fn words(&self) -> impl Iterator<Item = &'a [u8]> {
        self.strings.split_inclusive(|&byte| byte == 0)
    }
}
