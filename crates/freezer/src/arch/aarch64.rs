//! The frozen thread, on aarch64: not yet. A freeze ends with the refusal.

use image::arch::Registers;
use image::Handover;

/// RSEQ_SIG of sys/rseq.h.
pub const RSEQ_SIGNATURE: u32 = 0xd428_bc00;

/// Why no process can be frozen here.
pub fn refusal() -> Option<&'static [u8]> {
    Some(b"processes are frozen on x86-64 only, not yet on aarch64")
}

/// Nothing is left or entered again: `capture` finds the refusal among the findings, and ends the process.
pub fn suspend(capture: fn(Registers) -> !) -> Handover {
    capture(Registers::default())
}

/// There are none whose use is asked for.
pub fn extended_registers() -> u64 {
    0
}

/// See there.
pub fn request_extended_registers(_: u64) -> Result<(), i32> {
    Err(libc::ENOSYS)
}

/// Not read, since no process is frozen here.
pub fn cpu_switches() -> [u64; 4] {
    [0; 4]
}

/// There is no such table.
pub fn segment_table_size() -> usize {
    0
}

/// See there: the caller is not told, since no process is frozen here.
///
/// # Safety
/// As for the function of the C library.
#[no_mangle]
pub unsafe extern "C" fn getenv(name: *const core::ffi::c_char) -> *mut core::ffi::c_char {
    // SAFETY: the name is the caller's.
    unsafe { crate::sys::libc_hooks::getenv_for(name, core::ptr::null()) }
}

/// The same.
///
/// # Safety
/// As for the function of the C library.
#[no_mangle]
pub unsafe extern "C" fn secure_getenv(name: *const core::ffi::c_char) -> *mut core::ffi::c_char {
    // SAFETY: the name is the caller's.
    unsafe { crate::sys::libc_hooks::secure_getenv_for(name, core::ptr::null()) }
}
