//! Suspends and resumes the frozen thread, on x86-64.

mod exec;
mod getenv;

use core::arch::global_asm;

use image::arch::Registers;
use image::Handover;

/// RSEQ_SIG of sys/rseq.h.
pub const RSEQ_SIGNATURE: u32 = 0x5305_3053;

/// Why no process can be frozen here: none here.
pub fn refusal() -> Option<&'static [u8]> {
    None
}

/// Return addresses are never signed here.
pub fn leave_addresses_unsigned() {}

// A call in the System V ABI preserves rbx, rbp, r12 to r15, the x87 control word and the control bits of mxcsr. All of
// them are pushed on the stack, which is part of the image, so stack pointer and address suffice to resume.
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

/// Calls `capture` with the place to resume at. Returns after a thaw, in another process.
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

/// ARCH_GET_XCOMP_PERM, ARCH_REQ_XCOMP_PERM, ARCH_GET_CPUID, ARCH_GET_UNTAG_MASK and ARCH_SHSTK_STATUS of asm/prctl.h.
const ARCH_GET_XCOMP_PERM: i32 = 0x1022;
const ARCH_REQ_XCOMP_PERM: i32 = 0x1023;
const ARCH_GET_CPUID: i32 = 0x1011;
const ARCH_GET_UNTAG_MASK: i32 = 0x4001;
const ARCH_SHSTK_STATUS: i32 = 0x5005;

/// The extended register states (XCR0 bits) that this process may use.
pub fn extended_registers() -> u64 {
    base(ARCH_GET_XCOMP_PERM)
}

/// Requests further register states from the kernel. Fails with an errno.
pub fn request_extended_registers(states: u64) -> Result<(), i32> {
    for state in (0..64u32).filter(|state| states & (1 << state) != 0) {
        // SAFETY: the request takes a number.
        if unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, state) } != 0 {
            return Err(crate::sys::errno());
        }
    }
    Ok(())
}

/// Whether the process may read the TSC and use CPUID, which bits of addresses are tags, and the state of its shadow
/// stack.
pub fn cpu_switches() -> [u64; 4] {
    let mut counter = 0u64;
    // SAFETY: the kernel writes a number; the other request takes none.
    let identification = unsafe {
        libc::prctl(libc::PR_GET_TSC, &raw mut counter);
        libc::syscall(libc::SYS_arch_prctl, ARCH_GET_CPUID, 0)
    };
    [counter, identification as u64, base(ARCH_GET_UNTAG_MASK), base(ARCH_SHSTK_STATUS)]
}

/// Size of the local descriptor table (bytes).
pub fn segment_table_size() -> usize {
    let mut entry = [0u8; 8];
    // SAFETY: the kernel writes at most the size of the buffer.
    let size = unsafe { libc::syscall(libc::SYS_modify_ldt, 0, entry.as_mut_ptr(), entry.len()) };
    usize::try_from(size).unwrap_or(0)
}
