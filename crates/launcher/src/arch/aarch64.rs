//! The launcher on aarch64: not yet. It starts, finds the refusal, and runs the original command.

use core::arch::{asm, global_asm};

use image::arch::Registers;

use crate::start::Start;
use crate::sys;

global_asm!(
    ".section .text._start,\"ax\",@progbits",
    ".globl _start",
    "_start:",
    "mov x29, xzr",
    "mov x30, xzr",
    "mov x0, sp",
    "bl {entry}",
    "brk #1",
    entry = sym entry,
);

extern "C" fn entry(stack: *const usize) -> ! {
    // SAFETY: `stack` is what the kernel passed in sp to a new process: argc, argv, envp and auxv.
    let start = unsafe { Start::from_stack(stack) };
    crate::launch(&start)
}

/// Why no image can be thawed here.
pub fn refusal() -> Option<&'static str> {
    Some("images are thawed on x86-64 only, not yet on aarch64")
}

/// A system call with up to six arguments; returns what the kernel returns, negative on error.
///
/// # Safety
/// The call must be sound for these arguments.
pub unsafe fn syscall(number: u32, arguments: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel preserves everything but x0; the caller answers for the call itself.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number as usize,
            inlateout("x0") arguments[0] => result,
            in("x1") arguments[1],
            in("x2") arguments[2],
            in("x3") arguments[3],
            in("x4") arguments[4],
            in("x5") arguments[5],
            options(nostack),
        );
    }
    result
}

/// Calls nothing: no image gets here.
///
/// # Safety
/// As on the other architectures.
pub unsafe fn call(_function: u64, _argument: u64) -> u64 {
    0
}

/// There is no second process: its work is done before the rest.
///
/// # Safety
/// As on the other architectures.
pub unsafe fn spawn(_run: extern "C" fn(usize) -> !, _argument: usize) -> sys::Result<sys::Pid> {
    Err(sys::Errno(linux_raw_sys::errno::ENOSYS))
}

/// No image gets this far.
///
/// # Safety
/// As on the other architectures.
pub unsafe fn set_thread_pointer(_registers: &Registers) -> sys::Result<()> {
    Err(sys::Errno(linux_raw_sys::errno::ENOSYS))
}

/// No image gets this far.
///
/// # Safety
/// As on the other architectures.
pub unsafe fn jump(_registers: &Registers, _handover: u64) -> ! {
    trap()
}

/// Ends the process with SIGTRAP.
pub fn trap() -> ! {
    // SAFETY: brk only raises the signal.
    unsafe { asm!("brk #1", options(noreturn)) }
}
