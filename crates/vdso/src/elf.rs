//! The functions that a vdso exports.

/// A function that a vdso exports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function<'a> {
    /// Its name, without the version.
    pub name: &'a [u8],
    /// Where it starts.
    pub offset: usize,
    /// Its size in bytes.
    pub size: usize,
}

/// Size of a 64-bit ELF header (bytes).
pub const HEADER: usize = 64;

/// Offsets in it: e_shoff, e_shentsize, e_shnum.
const SECTIONS: usize = 40;
const SECTION_SIZE: usize = 58;
const SECTION_COUNT: usize = 60;

/// Type of the section that holds the symbols.
const DYNSYM: u32 = 11;

/// Size of a symbol.
const SYMBOL: usize = 24;

/// Type of a symbol that is a function.
const FUNCTION: u8 = 2;

/// The functions of a vdso; None if the bytes are not a vdso. Offsets in the file equal offsets in memory, since
/// kernels map a vdso unchanged.
pub fn functions(vdso: &[u8]) -> Option<impl Iterator<Item = Function<'_>>> {
    if !vdso.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = usize::try_from(number(vdso, SECTIONS, 8)?).ok()?;
    let size = number(vdso, SECTION_SIZE, 2)? as usize;
    let section = |index: usize| vdso.get(table.checked_add(index.checked_mul(size)?)?..);
    let content = |header: &[u8]| {
        let (offset, size) = (number(header, 24, 8)? as usize, number(header, 32, 8)? as usize);
        vdso.get(offset..)?.get(..size)
    };
    let header = (0..number(vdso, SECTION_COUNT, 2)? as usize)
        .filter_map(section)
        .find(|header| number(header, 4, 4) == Some(DYNSYM.into()))?;
    let names = content(section(number(header, 40, 4)? as usize)?)?;
    let function = move |symbol: &[u8]| {
        if symbol[4] & 0xf != FUNCTION || number(symbol, 6, 2)? == 0 {
            return None;
        }
        let name = names.get(number(symbol, 0, 4)? as usize..)?.split(|&byte| byte == 0).next()?;
        let (offset, size) = (number(symbol, 8, 8)?, number(symbol, 16, 8)?);
        Some(Function { name, offset: usize::try_from(offset).ok()?, size: usize::try_from(size).ok()? })
    };
    Some(content(header)?.chunks_exact(SYMBOL).filter_map(function))
}

/// Size of a vdso (bytes) according to its header: the section headers come last. None if the header is truncated.
pub fn size(header: &[u8]) -> Option<u64> {
    let sections = number(header, SECTION_SIZE, 2)? * number(header, SECTION_COUNT, 2)?;
    Some(number(header, SECTIONS, 8)?.saturating_add(sections))
}

/// A number of `size` bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.get(..size)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}
