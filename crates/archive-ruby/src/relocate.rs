//! Gives code that was compiled at one path another one, after the application has moved.
//!
//! The result of RubyVM::InstructionSequence#to_binary holds the path as a string object, which the code and everything in it refers to by
//! its index in a list. A new string is appended, and the list refers to that. The layout was tried with some versions; code of others is
//! compiled again.

/// Offsets of the numbers in the header (bytes). Each has four bytes.
mod header {
    pub const MAGIC: [u8; 4] = *b"YARB";
    pub const MAJOR: usize = 4;
    pub const MINOR: usize = 8;
    pub const SIZE: usize = 12;
    pub const EXTRA_SIZE: usize = 16;
    pub const OBJECTS: usize = 24;
    pub const OBJECTS_OFFSET: usize = 32;
}

/// The versions with this layout.
const KNOWN: [(u32, u32); 2] = [(3, 1), (3, 3)];

/// In the first byte of an object: its type, and that it is no object but a number or the like.
const TYPE: u8 = 0x1f;
const STRING: u8 = 5;
const IMMEDIATE: u8 = 0x20;

/// The code with each pair's old string replaced by the new one. `None`: its layout is unknown, or it has none of these strings.
pub fn relocate(binary: &[u8], changes: &[(&[u8], &[u8])]) -> Option<Vec<u8>> {
    let version = (number(binary, header::MAJOR)?, number(binary, header::MINOR)?);
    if !binary.starts_with(&header::MAGIC) || !KNOWN.contains(&version) {
        return None;
    }
    let mut moved = binary.get(..number(binary, header::SIZE)? as usize)?.to_vec();
    let list = number(binary, header::OBJECTS_OFFSET)? as usize;
    let mut is_changed = false;
    for object in 0..number(binary, header::OBJECTS)? as usize {
        let place = list.checked_add(object * 4)?;
        let start = number(binary, place)? as usize;
        let Some(string) = string(binary, start) else { continue };
        let Some((_, new)) = changes.iter().find(|(old, _)| *old == string.bytes) else { continue };
        let offset = u32::try_from(moved.len()).ok()?;
        moved.extend_from_slice(binary.get(start..string.size_at)?);
        put_small(&mut moved, new.len() as u64);
        moved.extend_from_slice(new);
        put(&mut moved, place, offset)?;
        is_changed = true;
    }
    let size = u32::try_from(moved.len()).ok()?;
    put(&mut moved, header::SIZE, size)?;
    put(&mut moved, header::EXTRA_SIZE, 0)?;
    is_changed.then_some(moved)
}

/// A string object.
struct Text<'a> {
    /// Where the number of its bytes is.
    size_at: usize,
    bytes: &'a [u8],
}

fn string(binary: &[u8], start: usize) -> Option<Text<'_>> {
    let first = *binary.get(start)?;
    if first & TYPE != STRING || first & IMMEDIATE != 0 {
        return None;
    }
    let (_encoding, size_at) = small(binary, start + 1)?;
    let (size, bytes_at) = small(binary, size_at)?;
    let bytes = binary.get(bytes_at..)?.get(..usize::try_from(size).ok()?)?;
    Some(Text { size_at, bytes })
}

/// A number of one to nine bytes, and the rest: the zeros at the low end of the first byte say how many bytes follow.
fn small(binary: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *binary.get(at)?;
    let size = if first == 0 { 9 } else { first.trailing_zeros() as usize + 1 };
    let rest = binary.get(at + 1..at + size)?;
    let high = u64::from(first).checked_shr(size as u32).unwrap_or(0);
    Some((rest.iter().fold(high, |value, byte| value << 8 | u64::from(*byte)), at + size))
}

fn put_small(bytes: &mut Vec<u8>, value: u64) {
    let size = (1..9).find(|size| value < 1 << (7 * size)).unwrap_or(9);
    let all = value.to_be_bytes();
    if size == 9 {
        bytes.push(0);
        bytes.extend_from_slice(&all);
        return;
    }
    let rest = &all[8 - (size - 1)..];
    let high = (value >> (8 * (size - 1))) as u8;
    bytes.push(high.checked_shl(size as u32).unwrap_or(0) | 1 << (size - 1));
    bytes.extend_from_slice(rest);
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn put(bytes: &mut [u8], at: usize, number: u32) -> Option<()> {
    bytes.get_mut(at..at + 4)?.copy_from_slice(&number.to_le_bytes());
    Some(())
}
