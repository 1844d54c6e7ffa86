//! Makes a frozen process run with another kernel's vdso. The process holds addresses of functions in the vdso it was
//! frozen with, and the kernel that thaws it has a different one.
//!
//! The process keeps a copy of its own vdso at the old address. [`redirect`] replaces the first instructions of each
//! function in that copy with a jump to the function of the same name in the running kernel's vdso, or with the plain
//! system call if that vdso lacks it. Headers, symbols and unwind tables stay as they were, so code that has parsed the
//! copy can still read it.
//!
//! Neither vdso is trusted: the copy comes from an image.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arch;
mod elf;

pub use elf::{functions, size, Function, HEADER};

/// Why the copy cannot be redirected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The copy is not an ELF file with symbols.
    Damaged,
    /// A function is shorter than the jump that would replace it.
    NoRoom,
}

/// The vdso of the running kernel.
#[derive(Clone, Copy)]
pub struct Running<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its address when the functions are called.
    pub address: u64,
}

/// Redirects every function of `copy` to `running`, or to the system call. A function without a system call (the entry
/// to an SGX enclave, the return from a signal handler) does not use the kernel's data pages and stays as it is.
pub fn redirect(copy: &mut [u8], running: Option<Running<'_>>) -> Result<(), Error> {
    let mut at = 0;
    loop {
        // One at a time, since the names lie in the bytes that are written.
        let Some(function) = elf::functions(copy).ok_or(Error::Damaged)?.nth(at) else { return Ok(()) };
        at += 1;
        let Some(call) = arch::system_call(function.name) else { continue };
        let target = running.filter(|_| !call.is_always).and_then(|running| {
            let found = elf::functions(running.bytes)?.find(|it| it.name == function.name)?;
            Some(running.address + found.offset as u64)
        });
        let (offset, size) = (function.offset, function.size);
        let mut put = |code: &[u8]| {
            let place = copy.get_mut(offset..).and_then(|rest| rest.get_mut(..code.len())).ok_or(Error::Damaged)?;
            if size < code.len() {
                return Err(Error::NoRoom);
            }
            place.copy_from_slice(code);
            Ok(())
        };
        match target {
            Some(address) => put(&arch::jump(address))?,
            None => put(&arch::call(call.number))?,
        }
    }
}

/// The system call that a function replaces.
struct SystemCall {
    number: u32,
    /// Whether the call replaces the function even if the running kernel has it: its arguments mean something to one
    /// kernel only.
    is_always: bool,
}

impl SystemCall {
    const fn if_missing(number: u32) -> Option<SystemCall> {
        Some(SystemCall { number, is_always: false })
    }

    const fn always(number: u32) -> Option<SystemCall> {
        Some(SystemCall { number, is_always: true })
    }
}

#[cfg(test)]
mod tests;
