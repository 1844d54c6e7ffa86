//! Suspends and resumes the frozen thread, on aarch64.

mod exec;
mod getenv;
mod pointers;

use core::arch::{asm, global_asm};

use image::arch::Registers;
use image::Handover;

pub use pointers::leave_addresses_unsigned;

/// RSEQ_SIG of sys/rseq.h.
pub const RSEQ_SIGNATURE: u32 = 0xd428_bc00;

/// Why no process can be frozen here: what a thaw could not give it again.
pub fn refusal() -> Option<&'static [u8]> {
    // SAFETY: plain calls.
    let (page, tagged) = unsafe { (libc::sysconf(libc::_SC_PAGESIZE), libc::prctl(GET_TAGGED_ADDRESSES, 0, 0, 0, 0)) };
    if page != image::PAGE as core::ffi::c_long {
        return Some(b"this kernel has pages larger than 4 KiB, and images have pages of that size");
    }
    if pointers::are_signed() {
        return Some(b"this kernel cannot turn pointer authentication off: Linux can from 5.13 on");
    }
    (tagged > 0).then_some(b"the process uses tagged addresses, which a thaw does not turn on; freeze without glibc.mem.tagging in GLIBC_TUNABLES")
}

// A call preserves x19 to x29, the stack pointer, the low halves of v8 to v15 and fpcr. All of them and the return address are
// pushed on the stack, which is part of the image, so stack pointer and address suffice to resume.
global_asm!(
    ".globl snapboot_suspend",
    ".hidden snapboot_suspend",
    "snapboot_suspend:",
    "stp x29, x30, [sp, #-176]!",
    "mov x29, sp",
    "stp x19, x20, [sp, #16]",
    "stp x21, x22, [sp, #32]",
    "stp x23, x24, [sp, #48]",
    "stp x25, x26, [sp, #64]",
    "stp x27, x28, [sp, #80]",
    "stp d8, d9, [sp, #96]",
    "stp d10, d11, [sp, #112]",
    "stp d12, d13, [sp, #128]",
    "stp d14, d15, [sp, #144]",
    "mrs x9, fpcr",
    "str x9, [sp, #160]",
    "mov x9, x0",
    "mov x0, sp",
    "adr x1, 2f",
    "blr x9",
    "brk #1",
    // The launcher jumps here with a handover in x0.
    "2:",
    "hint #38", // bti jc
    "ldr x9, [sp, #160]",
    "msr fpcr, x9",
    "ldp d14, d15, [sp, #144]",
    "ldp d12, d13, [sp, #128]",
    "ldp d10, d11, [sp, #112]",
    "ldp d8, d9, [sp, #96]",
    "ldp x27, x28, [sp, #80]",
    "ldp x25, x26, [sp, #64]",
    "ldp x23, x24, [sp, #48]",
    "ldp x21, x22, [sp, #32]",
    "ldp x19, x20, [sp, #16]",
    "ldp x29, x30, [sp], #176",
    "ret",
);

extern "C" {
    fn snapboot_suspend(capture: extern "C" fn(u64, u64) -> !) -> *const Handover;
}

/// Calls `capture` with the place to resume at. Returns after a thaw, in another process.
pub fn suspend(capture: fn(Registers) -> !) -> Handover {
    use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
    static CAPTURE: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
    extern "C" fn with_registers(sp: u64, pc: u64) -> ! {
        // SAFETY: `suspend` stored a function of this type.
        let capture: fn(Registers) -> ! = unsafe { core::mem::transmute(CAPTURE.load(Relaxed)) };
        let tpidr: u64;
        // SAFETY: every program may read its thread pointer.
        unsafe { asm!("mrs {}, tpidr_el0", out(reg) tpidr, options(nomem, nostack, preserves_flags)) };
        capture(Registers { sp, pc, tpidr })
    }
    CAPTURE.store(capture as *mut (), Relaxed);
    // SAFETY: the assembly keeps to the procedure call standard; the launcher passes a valid handover.
    unsafe { *snapboot_suspend(with_registers) }
}

/// None need to be requested.
pub fn extended_registers() -> u64 {
    0
}

/// None can be requested.
pub fn request_extended_registers(_: u64) -> Result<(), i32> {
    Err(libc::ENOSYS)
}

/// PR_SVE_GET_VL, PR_GET_TAGGED_ADDR_CTRL, PR_SME_GET_VL and PR_GET_SHADOW_STACK_STATUS of linux/prctl.h.
const GET_SVE_LENGTH: i32 = 51;
const GET_TAGGED_ADDRESSES: i32 = 56;
const GET_SME_LENGTH: i32 = 64;
const GET_SHADOW_STACK: i32 = 74;

/// The lengths of vectors, whether the kernel takes addresses with tags, and the state of the shadow stack.
pub fn cpu_switches() -> [u64; 4] {
    let ask = |what| {
        // SAFETY: the request takes no memory.
        unsafe { libc::prctl(what, 0, 0, 0, 0) as u64 }
    };
    let mut shadow_stack = 0u64;
    // SAFETY: the kernel writes a number.
    unsafe { libc::prctl(GET_SHADOW_STACK, &raw mut shadow_stack, 0, 0, 0) };
    [ask(GET_SVE_LENGTH), ask(GET_SME_LENGTH), ask(GET_TAGGED_ADDRESSES), shadow_stack]
}

/// aarch64 has no such table.
pub fn segment_table_size() -> usize {
    0
}
