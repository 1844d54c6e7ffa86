//! Makes the vdso of another kernel usable: a frozen process holds addresses of functions in the vdso it was frozen with, and the kernel that
//! thaws it has another one.
//!
//! The process keeps a copy of its own vdso at the old place. [`redirect`] replaces the first instructions of each function in that copy by a
//! jump to the function of the same name in the running kernel's vdso, or by the plain system call where that has none. Headers, symbols and
//! unwind tables stay as they were, so whoever has parsed the copy goes on reading it.
//!
//! Nothing in either vdso is believed: a copy comes from an image.
#![no_std]
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arch;
mod elf;

pub use elf::{functions, size, Function, HEADER};

/// Why the copy cannot be redirected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The copy is no ELF file with symbols.
    Damaged,
    /// A function of it is shorter than the jump that would replace it.
    NoRoom,
}

/// The vdso of the kernel that runs.
#[derive(Clone, Copy)]
pub struct Running<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Where they will be when the functions are called.
    pub address: u64,
}

/// Redirects every function of `copy`: to `running`, or to the system call. What has no system call (the entry to an SGX enclave, the return from
/// a signal handler) needs nothing of the kernel's data pages and stays as it is.
pub fn redirect(copy: &mut [u8], running: Option<Running<'_>>) -> Result<(), Error> {
    let mut at = 0;
    loop {
        // One after the other, since the names lie in what is written to.
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

/// The system call that a function stands for.
struct SystemCall {
    number: u32,
    /// Whether the call is made even where the running kernel has the function: its arguments mean something to one kernel only.
    is_always: bool,
}

impl SystemCall {
    const fn of(number: u32) -> Option<SystemCall> {
        Some(SystemCall { number, is_always: false })
    }

    const fn always(number: u32) -> Option<SystemCall> {
        Some(SystemCall { number, is_always: true })
    }
}

#[cfg(test)]
mod tests;
