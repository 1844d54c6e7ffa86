//! Entry, system calls, the jump and the memory functions that the compiler calls, for aarch64.

use core::arch::{asm, global_asm};

use image::arch::Registers;
use linux_raw_sys::errno::EOPNOTSUPP;
use linux_raw_sys::general as raw;

use crate::start::Start;
use crate::sys;

/// Size of the launcher's own stack, and of its helper's (bytes). Below each is nothing, see launcher.ld: who overruns it dies by SIGSEGV.
const STACK_SIZE: usize = 64 * 1024;

// The kernel's stack is about to be unmapped, so the first thing is to leave it. x0 keeps where argc, argv, envp and auxv are.
global_asm!(
    ".section .stack,\"aw\",@nobits",
    ".balign 16",
    "snapboot_stack:",
    ".skip {size}",
    "snapboot_stack_end:",
    ".section .text._start,\"ax\",@progbits",
    ".globl _start",
    "_start:",
    "mov x29, xzr",
    "mov x30, xzr",
    "mov x0, sp",
    "adrp x1, snapboot_stack_end",
    "add x1, x1, :lo12:snapboot_stack_end",
    "mov sp, x1",
    "bl {entry}",
    "brk #1",
    size = const STACK_SIZE,
    entry = sym entry,
);

/// Why no image can be thawed here: nothing stands in the way.
pub fn refusal() -> Option<&'static str> {
    None
}

extern "C" fn entry(stack: *const usize) -> ! {
    // SAFETY: `stack` is what the kernel passed in sp to a new process: argc, argv, envp and auxv.
    let start = unsafe { Start::from_stack(stack) };
    crate::launch(&start)
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

// The stack of the second process of `spawn`.
global_asm!(
    ".section .helper_stack,\"aw\",@nobits",
    ".balign 16",
    "snapboot_second_stack:",
    ".skip {size}",
    "snapboot_second_stack_end:",
    size = const STACK_SIZE,
);

/// Starts a process that shares memory and descriptors with this one, on a stack of its own, and calls `run` with `argument`.
/// Its parent hears of its end only by waiting (there is no signal).
///
/// # Safety
/// There is one at a time, and its parent waits for it. `run` is sound beside whatever the parent does meanwhile.
pub unsafe fn spawn(run: extern "C" fn(usize) -> !, argument: usize) -> sys::Result<sys::Pid> {
    let result: isize;
    // SAFETY: the parent goes on behind the call, with its registers as they were. The child has the same ones but for x0 and
    // sp, never gets there, and nobody else uses its stack.
    unsafe {
        asm!(
            "adrp x1, snapboot_second_stack_end",
            "add x1, x1, :lo12:snapboot_second_stack_end",
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, {argument}",
            "blr {run}",
            "brk #1",
            "2:",
            argument = in(reg) argument,
            run = in(reg) run,
            in("x8") raw::__NR_clone as usize,
            inlateout("x0") (raw::CLONE_VM | raw::CLONE_FS | raw::CLONE_FILES) as usize => result,
            out("x1") _,
            in("x2") 0usize,
            in("x3") 0usize,
            in("x4") 0usize,
        );
    }
    sys::result(result).map(|pid| sys::Pid(pid as u32))
}

/// Sets the thread pointer, behind which thread-local memory lies, and turns pointer authentication off: every process has
/// keys of its own, so none could return to the addresses on the frozen stack if they were signed. The freezer has seen to it
/// that they are not.
///
/// # Safety
/// Afterwards thread-local memory is that of the frozen process.
pub unsafe fn set_thread_pointer(registers: &Registers) -> sys::Result<()> {
    /// PR_PAC_SET_ENABLED_KEYS of linux/prctl.h, and the keys for code and data, A and B.
    const SET_ENABLED_KEYS: usize = 60;
    const KEYS: usize = 0b1111;
    // SAFETY: the call involves no memory, and nothing of the launcher is signed.
    let result = unsafe { sys::prctl(&[SET_ENABLED_KEYS, KEYS, 0, 0, 0]) };
    if result.is_err() && signs_addresses() {
        return Err(sys::Errno(EOPNOTSUPP));
    }
    // SAFETY: nothing of the launcher is thread-local.
    unsafe { asm!("msr tpidr_el0, {}", in(reg) registers.tpidr, options(nomem, nostack, preserves_flags)) };
    Ok(())
}

/// Whether the CPU signs addresses for this process. A kernel without the call above may be on such a CPU (Linux 5.0 to 5.12).
fn signs_addresses() -> bool {
    (1..9u64).any(|modifier| {
        let mut address = image::RESERVED_START;
        // SAFETY: these are pacia1716 and pacib1716, which change only x17, and nothing on a CPU without.
        unsafe {
            asm!("hint #8", "hint #10", inout("x17") address, in("x16") modifier << 4, options(nomem, nostack, preserves_flags));
        }
        address != image::RESERVED_START
    })
}

/// Goes on in the frozen thread: its stack, its next instruction, `handover` as the value that its call returns.
///
/// # Safety
/// Memory and kernel state are those of the frozen process.
pub unsafe fn jump(registers: &Registers, handover: u64) -> ! {
    // SAFETY: see above; nothing of the launcher is used afterwards. Where branch targets are checked, x16 may lead to the start
    // of any function.
    unsafe {
        asm!(
            "mov sp, {sp}",
            "mov x29, xzr",
            "mov x30, xzr",
            "br x16",
            sp = in(reg) registers.sp,
            in("x16") registers.pc,
            in("x0") handover,
            options(noreturn),
        );
    }
}

/// Calls a function that takes one argument and returns a word.
///
/// # Safety
/// There is such a function at this address, and the call is sound.
pub unsafe fn call(function: u64, argument: u64) -> u64 {
    // SAFETY: passed on to the caller. The function keeps to the procedure call standard.
    unsafe { core::mem::transmute::<usize, extern "C" fn(u64) -> u64>(function as usize)(argument) }
}

/// Makes code that was just written visible to instruction fetches, which do not look into the data cache.
pub fn code_was_written(code: &[u8]) {
    let mut sizes: u64;
    // SAFETY: the kernel lets programs read this register, or answers for it.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) sizes, options(nomem, nostack, preserves_flags)) };
    let line = |shift: u64| 4usize << (sizes >> shift & 0xf);
    let (start, end) = (code.as_ptr().addr(), code.as_ptr().addr() + code.len());
    let lines = |size: usize| (start & !(size - 1)..end).step_by(size);
    for line in lines(line(16)) {
        // SAFETY: writes a line back to where instructions are fetched from.
        unsafe { asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: a barrier.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) };
    for line in lines(line(0)) {
        // SAFETY: the next fetch reads the line anew.
        unsafe { asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags)) };
    }
    // SAFETY: barriers.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) };
}

/// Ends the process with SIGTRAP.
pub fn trap() -> ! {
    // SAFETY: brk only raises the signal.
    unsafe { asm!("brk #1", options(noreturn)) }
}

// The compiler calls these by name. Being assembly, they cannot be turned into calls to themselves.
global_asm!(
    ".section .text.memory,\"ax\",@progbits",
    ".globl memmove",
    "memmove:",
    "sub x3, x0, x1",
    "cmp x3, x2",
    "b.hs memcpy", // the end of the source is not overwritten before it was read
    "add x1, x1, x2",
    "add x3, x0, x2",
    "2:",
    "cmp x2, #16",
    "b.lo 3f",
    "ldp x4, x5, [x1, #-16]!",
    "stp x4, x5, [x3, #-16]!",
    "sub x2, x2, #16",
    "b 2b",
    "3:",
    "cbz x2, 4f",
    "ldrb w4, [x1, #-1]!",
    "strb w4, [x3, #-1]!",
    "sub x2, x2, #1",
    "b 3b",
    "4:",
    "ret",
    ".globl memcpy",
    "memcpy:",
    "mov x3, x0",
    "2:",
    "cmp x2, #16",
    "b.lo 3f",
    "ldp x4, x5, [x1], #16",
    "stp x4, x5, [x3], #16",
    "sub x2, x2, #16",
    "b 2b",
    "3:",
    "cbz x2, 4f",
    "ldrb w4, [x1], #1",
    "strb w4, [x3], #1",
    "sub x2, x2, #1",
    "b 3b",
    "4:",
    "ret",
    ".globl memset",
    "memset:",
    "mov x3, x0",
    "and x1, x1, #0xff",
    "orr x1, x1, x1, lsl #8",
    "orr x1, x1, x1, lsl #16",
    "orr x1, x1, x1, lsl #32",
    "2:",
    "cmp x2, #16",
    "b.lo 3f",
    "stp x1, x1, [x3], #16",
    "sub x2, x2, #16",
    "b 2b",
    "3:",
    "cbz x2, 4f",
    "strb w1, [x3], #1",
    "sub x2, x2, #1",
    "b 3b",
    "4:",
    "ret",
    ".globl memcmp",
    ".globl bcmp",
    "memcmp:",
    "bcmp:",
    "cmp x2, #8",
    "b.lo 3f",
    "ldr x3, [x0]",
    "ldr x4, [x1]",
    "cmp x3, x4",
    "b.ne 3f", // the bytes say which is less
    "add x0, x0, #8",
    "add x1, x1, #8",
    "sub x2, x2, #8",
    "b memcmp",
    "3:",
    "cbz x2, 4f",
    "ldrb w3, [x0], #1",
    "ldrb w4, [x1], #1",
    "sub x2, x2, #1",
    "subs w3, w3, w4",
    "b.eq 3b",
    "mov w0, w3",
    "ret",
    "4:",
    "mov w0, wzr",
    "ret",
    ".globl strlen",
    "strlen:",
    "mov x1, x0",
    "2:",
    "ldrb w2, [x1], #1",
    "cbnz w2, 2b",
    "sub x0, x1, x0",
    "sub x0, x0, #1",
    "ret",
);
