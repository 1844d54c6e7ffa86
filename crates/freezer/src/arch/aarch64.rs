//! aarch64 is not supported yet: a freeze ends with the refusal.

use image::arch::Registers;
use image::Handover;

/// RSEQ_SIG of sys/rseq.h.
pub const RSEQ_SIGNATURE: u32 = 0xd428_bc00;

/// Why no process can be frozen here.
pub fn refusal() -> Option<&'static [u8]> {
    Some(b"processes are frozen on x86-64 only, not yet on aarch64")
}

/// Suspends nothing: `capture` finds the refusal among the findings and ends the process.
pub fn suspend(capture: fn(Registers) -> !) -> Handover {
    capture(Registers::default())
}

/// None need to be requested.
pub fn extended_registers() -> u64 {
    0
}

/// See x86_64.
pub fn request_extended_registers(_: u64) -> Result<(), i32> {
    Err(libc::ENOSYS)
}

/// Not read, since no process is frozen here.
pub fn cpu_switches() -> [u64; 4] {
    [0; 4]
}

/// aarch64 has no such table.
pub fn segment_table_size() -> usize {
    0
}

/// As on x86-64, but does not record the caller, since no process is frozen here.
///
/// # Safety
///
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
