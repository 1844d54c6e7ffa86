//! Leaving and re-entering the frozen thread, on x86-64.

mod exec;

use core::arch::global_asm;

use image::arch::Registers;
use image::Handover;

/// RSEQ_SIG of sys/rseq.h.
pub const RSEQ_SIGNATURE: u32 = 0x5305_3053;

/// Why no process can be frozen here: nothing stands in the way.
pub fn refusal() -> Option<&'static [u8]> {
    None
}

// The System V ABI has a call preserve rbx, rbp, r12 to r15, the x87 control word and the control bits of mxcsr: all
// of them are put on the stack, which is part of the image, so stack pointer and address are enough to come back.
global_asm!(
    ".globl snapboot_suspend",
    ".hidden snapboot_suspend",
    "snapboot_suspend:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "stmxcsr [rsp]",
    "fnstcw [rsp + 4]",
    "mov rax, rdi",
    "mov rdi, rsp",
    "lea rsi, [rip + 2f]",
    "call rax",
    "ud2",
    // The launcher jumps here with a handover in rax.
    "2:",
    "ldmxcsr [rsp]",
    "fldcw [rsp + 4]",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbx",
    "pop rbp",
    "ret",
);

extern "C" {
    fn snapboot_suspend(capture: extern "C" fn(u64, u64) -> !) -> *const Handover;
}

/// Calls `capture` with the place to come back to. Returns when a thaw came back, in another process.
pub fn suspend(capture: fn(Registers) -> !) -> Handover {
    use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};
    static CAPTURE: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
    extern "C" fn with_registers(rsp: u64, rip: u64) -> ! {
        // SAFETY: `suspend` stored a function of this type.
        let capture: fn(Registers) -> ! = unsafe { core::mem::transmute(CAPTURE.load(Relaxed)) };
        capture(Registers { rsp, rip, fs_base: base(ARCH_GET_FS), gs_base: base(ARCH_GET_GS) })
    }
    CAPTURE.store(capture as *mut (), Relaxed);
    // SAFETY: the assembly keeps to the ABI; the launcher passes a valid handover.
    unsafe { *snapboot_suspend(with_registers) }
}

/// ARCH_GET_FS and ARCH_GET_GS of asm/prctl.h.
const ARCH_GET_FS: i32 = 0x1003;
const ARCH_GET_GS: i32 = 0x1004;

fn base(which: i32) -> u64 {
    let mut address = 0u64;
    // SAFETY: the kernel writes one word.
    unsafe { libc::syscall(libc::SYS_arch_prctl, which, &raw mut address) };
    address
}
