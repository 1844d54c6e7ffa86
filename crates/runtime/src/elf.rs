//! The properties of an ELF executable that decide whether it can be frozen.

use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{FileKind, LittleEndian};

use crate::arch;

/// The kind of an executable.
#[derive(Debug, PartialEq, Eq)]
pub enum Executable {
    /// A program for this processor with this loader.
    Dynamic {
        /// Path of the loader, such as `/lib64/ld-linux-x86-64.so.2`.
        loader: String,
    },
    /// A program for this processor without a loader; no library can be preloaded into it.
    Static,
    /// A program for another processor, by its number in the ELF header.
    Other {
        /// The `e_machine` field.
        machine: u16,
    },
    /// Not an ELF file, or a truncated one.
    Unknown,
}

impl Executable {
    /// Parses the bytes of a file.
    pub fn parse(file: &[u8]) -> Self {
        parse(file).unwrap_or(Executable::Unknown)
    }
}

fn parse(file: &[u8]) -> Option<Executable> {
    let header = match FileKind::parse(file).ok()? {
        FileKind::Elf64 => FileHeader64::<LittleEndian>::parse(file).ok()?,
        FileKind::Elf32 => {
            let header = FileHeader32::<LittleEndian>::parse(file).ok()?;
            return Some(Executable::Other { machine: header.e_machine.get(LittleEndian).0 });
        }
        _ => return None,
    };
    let machine = header.e_machine.get(LittleEndian).0;
    if machine != arch::MACHINE {
        return Some(Executable::Other { machine });
    }
    let headers = header.program_headers(LittleEndian, file).ok()?;
    let loader = headers.iter().find_map(|header| header.interpreter(LittleEndian, file).transpose());
    Some(match loader.transpose().ok()? {
        Some(path) => Executable::Dynamic { loader: String::from_utf8_lossy(path).into_owned() },
        None => Executable::Static,
    })
}

/// The usual name of a processor other than this one, for messages.
pub fn machine_name(machine: u16) -> String {
    if machine == arch::MACHINE {
        return format!("{} with 32-bit pointers", arch::NAME);
    }
    match machine {
        3 => "32-bit x86".to_owned(),
        40 => "32-bit ARM".to_owned(),
        62 => "x86-64".to_owned(),
        183 => "aarch64".to_owned(),
        243 => "RISC-V".to_owned(),
        other => format!("ELF machine {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF header with one program header of the given type behind it, and a loader's path.
    fn elf(machine: u16, kind: u32) -> Vec<u8> {
        let path = b"/lib/ld.so\0";
        let mut file = vec![0; 64 + 56];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        file[20] = 1; // the version, once more
        file[18..20].copy_from_slice(&machine.to_le_bytes());
        file[32..40].copy_from_slice(&64u64.to_le_bytes());
        file[54..56].copy_from_slice(&56u16.to_le_bytes());
        file[56..58].copy_from_slice(&1u16.to_le_bytes());
        file[64..68].copy_from_slice(&kind.to_le_bytes());
        file[72..80].copy_from_slice(&120u64.to_le_bytes());
        file[96..104].copy_from_slice(&(path.len() as u64).to_le_bytes());
        file.extend_from_slice(path);
        file
    }

    #[test]
    fn tells_dynamic_static_and_other() {
        assert_eq!(Executable::parse(&elf(arch::MACHINE, 3)), Executable::Dynamic { loader: "/lib/ld.so".to_owned() });
        assert_eq!(Executable::parse(&elf(arch::MACHINE, 1)), Executable::Static);
        assert_eq!(Executable::parse(&elf(243, 3)), Executable::Other { machine: 243 });
        assert_eq!(Executable::parse(b"#!/bin/sh\n"), Executable::Unknown);
    }

    #[test]
    fn a_file_cut_off_anywhere_is_no_reason_to_panic() {
        let whole = elf(arch::MACHINE, 3);
        for length in 0..whole.len() {
            Executable::parse(&whole[..length]);
        }
    }
}
