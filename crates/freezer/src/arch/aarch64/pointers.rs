//! Pointer authentication: return addresses on the stack are signed with keys that the kernel draws for each process.
//!
//! A thawed process has other keys than the one that was frozen, and could not return to a signed address. So the process
//! to be frozen signs none: the kernel can make the instructions for it do nothing. The functions of the loader that have
//! called this library have signed their return addresses before, and would return to them as they are; these lose
//! their signatures.

use core::arch::{asm, naked_asm};

/// PR_PAC_SET_ENABLED_KEYS of linux/prctl.h (Linux 5.13), and the keys for code and data, A and B.
const SET_ENABLED_KEYS: isize = 60;
const KEYS: usize = 0b1111;

/// A function's saved frame pointer and return address.
#[repr(C)]
struct Frame {
    above: *mut Frame,
    address: u64,
}

/// Turns the signing of addresses off, in a process that has only the loader's functions on its stack yet.
#[unsafe(naked)]
pub extern "C" fn leave_addresses_unsigned() {
    // x29 leads to the caller's frame.
    naked_asm!("mov x0, x29", "b {turn_off}", turn_off = sym turn_off)
}

extern "C" fn turn_off(mut frame: *mut Frame) {
    let failed: isize;
    // Not by the C library's function, which has signed its own return address by then.
    // SAFETY: the request takes no memory, and the kernel preserves everything but x0.
    unsafe {
        asm!("svc #0", in("x8") libc::SYS_prctl, inlateout("x0") SET_ENABLED_KEYS => failed, in("x1") KEYS, in("x2") 0usize, in("x3") 0usize,
            in("x4") 0usize, options(nostack));
    }
    // On a CPU that signs nothing.
    if failed != 0 {
        return;
    }
    while !frame.is_null() && frame.is_aligned() {
        // SAFETY: every function that signs its return address puts it there, below the frame of its caller (AAPCS64, "The
        // frame pointer"); the outermost frame has none above. The signature stands in the bits that addresses have not.
        unsafe {
            (*frame).address &= image::arch::ADDRESS_END - 1;
            let above = (*frame).above;
            if above <= frame {
                return;
            }
            frame = above;
        }
    }
}

/// Whether the process signs addresses.
pub fn are_signed() -> bool {
    (1..9u64).any(|modifier| {
        let mut address = image::RESERVED_START;
        // SAFETY: these are pacia1716 and pacib1716, which change only x17, and nothing where the keys are off.
        unsafe {
            asm!("hint #8", "hint #10", inout("x17") address, in("x16") modifier << 4, options(nomem, nostack, preserves_flags));
        }
        address != image::RESERVED_START
    })
}
