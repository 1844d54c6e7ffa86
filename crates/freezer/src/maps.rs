//! Parses /proc/self/smaps.

use alloc::vec::Vec;
use core::ops::Range;

use crate::sys;

/// What the kernel appends to the path of a file that has no name any more.
pub const DELETED: &[u8] = b" (deleted)";

/// Where shared memory and semaphores have names (shm_overview(7), sem_overview(7)).
pub const SHARED_FOLDER: &[u8] = b"/dev/shm/";

/// A mapping with its flags.
#[derive(Clone)]
pub struct Area {
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// PROT_ bits.
    pub protection: u32,
    /// Whether it is shared.
    pub shared: bool,
    /// Offset in the file.
    pub offset: u64,
    /// Inode, 0 for memory without a file.
    pub inode: u64,
    /// Path, or a name in brackets, or nothing.
    pub name: Vec<u8>,
    /// The kernel's two-letter flags, separated by spaces (VmFlags).
    pub flags: Vec<u8>,
    /// Protection key.
    pub key: u64,
}

impl Area {
    /// Whether it has this two-letter flag.
    pub fn has_flag(&self, flag: &[u8; 2]) -> bool {
        self.flags.split(|&byte| byte == b' ').any(|word| word == flag)
    }

    /// Whether it is shared memory to which no path leads: an anonymous shared mapping, or a semaphore that was removed when
    /// everybody had it open. The kernel shows the former as a deleted /dev/zero (`shmem_zero_setup`).
    pub fn is_nameless_shared(&self) -> bool {
        let is_memory = self.name == b"/dev/zero (deleted)" || self.name.starts_with(SHARED_FOLDER);
        self.shared && is_memory && self.name.ends_with(DELETED)
    }

    /// The part of it in `range`.
    pub fn part(&self, range: Range<u64>) -> Area {
        let offset = self.offset + (range.start - self.start);
        Area { start: range.start, end: range.end, offset, ..self.clone() }
    }
}

/// Reads the list, lowest address first.
pub fn read() -> Vec<Area> {
    let text = sys::read_file(b"/proc/self/smaps\0");
    let mut areas: Vec<Area> = Vec::new();
    for line in text.split(|&byte| byte == b'\n') {
        if let Some(area) = parse_first_line(line) {
            areas.push(area);
        } else if let Some(area) = areas.last_mut() {
            if let Some(flags) = line.strip_prefix(b"VmFlags: ") {
                area.flags = flags.to_vec();
            } else if let Some(key) = line.strip_prefix(b"ProtectionKey:") {
                area.key = decimal(key.trim_ascii());
            }
        }
    }
    areas
}

/// `start-end perms offset dev inode   name`.
fn parse_first_line(line: &[u8]) -> Option<Area> {
    let mut rest = line;
    let mut word = || {
        let end = rest.iter().position(|&byte| byte == b' ').unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        rest = tail.strip_prefix(b" ").unwrap_or(tail);
        word
    };
    let addresses = word();
    let dash = addresses.iter().position(|&byte| byte == b'-')?;
    let (start, end) = (hexadecimal(&addresses[..dash])?, hexadecimal(&addresses[dash + 1..])?);
    let permissions = word();
    if permissions.len() != 4 {
        return None;
    }
    let offset = hexadecimal(word())?;
    let _device = word();
    let inode = decimal(word());
    let bit = |index: usize, letter: u8, value: u32| if permissions[index] == letter { value } else { 0 };
    let (read, write, execute) = (libc::PROT_READ as u32, libc::PROT_WRITE as u32, libc::PROT_EXEC as u32);
    Some(Area {
        start,
        end,
        protection: bit(0, b'r', read) | bit(1, b'w', write) | bit(2, b'x', execute),
        shared: permissions[3] == b's',
        offset,
        inode,
        name: rest.trim_ascii().to_vec(),
        flags: Vec::new(),
        key: 0,
    })
}

/// A hexadecimal number; None when it is not one.
pub fn hexadecimal(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

/// A decimal number; 0 when it is not one.
pub fn decimal(digits: &[u8]) -> u64 {
    core::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
