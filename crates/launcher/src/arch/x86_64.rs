//! Entry, system calls, the jump and the memory functions that the compiler calls, for x86-64.

use core::arch::{asm, global_asm};

use image::arch::Registers;
use linux_raw_sys::general as raw;

use crate::start::Start;
use crate::sys;

/// Size of the launcher's own stack, and of its helper's (bytes). Below each is nothing, see launcher.ld: who overruns it dies by SIGSEGV.
const STACK_SIZE: usize = 64 * 1024;

// The kernel's stack is about to be unmapped, so the first thing is to leave it. rdi keeps where argc, argv, envp and auxv are.
global_asm!(
    ".section .stack,\"aw\",@nobits",
    ".balign 16",
    "snapboot_stack:",
    ".skip {size}",
    "snapboot_stack_end:",
    ".section .text._start,\"ax\",@progbits",
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "lea rsp, [rip + snapboot_stack_end]",
    "call {entry}",
    "ud2",
    size = const STACK_SIZE,
    entry = sym entry,
);

/// Why no image can be thawed here: nothing stands in the way.
pub fn refusal() -> Option<&'static str> {
    None
}

extern "C" fn entry(stack: *const usize) -> ! {
    // SAFETY: `stack` is what the kernel passed in rsp to a new process: argc, argv, envp and auxv as the System V ABI lays them out.
    let start = unsafe { Start::from_stack(stack) };
    crate::launch(&start)
}

/// A system call with up to six arguments; returns what the kernel returns, negative on error.
///
/// # Safety
/// The call must be sound for these arguments.
pub unsafe fn syscall(number: u32, arguments: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel preserves everything but rax, rcx and r11; the caller answers for the call itself.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as usize => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            out("rcx") _,
            out("r11") _,
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
    // SAFETY: the parent goes on behind the call, with its registers as they were. The child has the same ones but for rax and
    // rsp, never gets there, and nobody else uses its stack.
    unsafe {
        asm!(
            "lea rsi, [rip + snapboot_second_stack_end]",
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, {argument}",
            "call {run}",
            "ud2",
            "2:",
            argument = in(reg) argument,
            run = in(reg) run,
            inlateout("rax") raw::__NR_clone as usize => result,
            in("rdi") (raw::CLONE_VM | raw::CLONE_FS | raw::CLONE_FILES) as usize,
            out("rsi") _,
            in("rdx") 0usize,
            in("r10") 0usize,
            in("r8") 0usize,
            out("rcx") _,
            out("r11") _,
        );
    }
    sys::result(result).map(|pid| sys::Pid(pid as u32))
}

/// Sets the thread pointer, behind which thread-local memory lies.
///
/// # Safety
/// Afterwards thread-local memory is that of the frozen process.
pub unsafe fn set_thread_pointer(registers: &Registers) -> sys::Result<()> {
    /// ARCH_SET_GS and ARCH_SET_FS of asm/prctl.h.
    const SET_GS: usize = 0x1001;
    const SET_FS: usize = 0x1002;
    // SAFETY: the calls involve no memory; nothing of the launcher is thread-local.
    unsafe {
        if registers.gs_base != 0 {
            sys::call(raw::__NR_arch_prctl, &[SET_GS, registers.gs_base as usize])?;
        }
        sys::call(raw::__NR_arch_prctl, &[SET_FS, registers.fs_base as usize]).map(drop)
    }
}

/// Goes on in the frozen thread: its stack, its next instruction, `handover` as the value that its call returns.
///
/// # Safety
/// Memory and kernel state are those of the frozen process.
pub unsafe fn jump(registers: &Registers, handover: u64) -> ! {
    // SAFETY: see above; nothing of the launcher is used afterwards.
    unsafe {
        asm!(
            "mov rsp, {rsp}",
            "xor ebp, ebp",
            "jmp {rip}",
            rsp = in(reg) registers.rsp,
            rip = in(reg) registers.rip,
            in("rax") handover,
            options(noreturn),
        );
    }
}

/// Calls a function that takes one argument and returns a word.
///
/// # Safety
/// There is such a function at this address, and the call is sound.
pub unsafe fn call(function: u64, argument: u64) -> u64 {
    // SAFETY: passed on to the caller. The function keeps to the System V ABI.
    unsafe { core::mem::transmute::<usize, extern "C" fn(u64) -> u64>(function as usize)(argument) }
}

/// Makes code that was just written visible to instruction fetches, as it always is here.
pub fn code_was_written(_code: &[u8]) {}

/// Ends the process with SIGILL.
pub fn trap() -> ! {
    // SAFETY: ud2 only raises the signal.
    unsafe { asm!("ud2", options(noreturn)) }
}

// The compiler calls these by name. `rep movsb` and `rep stosb` are fast on every x86-64 CPU of the last decade and, being
// assembly, cannot be turned into calls to themselves.
global_asm!(
    ".section .text.memory,\"ax\",@progbits",
    ".globl memcpy",
    "memcpy:",
    "mov rax, rdi",
    "mov rcx, rdx",
    "rep movsb",
    "ret",
    ".globl memmove",
    "memmove:",
    "mov rax, rdi",
    "mov rcx, rdx",
    "cmp rdi, rsi",
    "ja 2f",
    "rep movsb",
    "ret",
    "2:",
    "lea rdi, [rdi + rdx - 1]",
    "lea rsi, [rsi + rdx - 1]",
    "std",
    "rep movsb",
    "cld",
    "ret",
    ".globl memset",
    "memset:",
    "mov r8, rdi",
    "mov eax, esi",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    ".globl memcmp",
    ".globl bcmp",
    "memcmp:",
    "bcmp:",
    "xor ecx, ecx",
    "2:",
    "cmp rcx, rdx",
    "je 3f",
    "movzx eax, byte ptr [rdi + rcx]",
    "movzx r8d, byte ptr [rsi + rcx]",
    "inc rcx",
    "sub eax, r8d",
    "je 2b",
    "ret",
    "3:",
    "xor eax, eax",
    "ret",
    ".globl strlen",
    "strlen:",
    "xor eax, eax",
    "2:",
    "cmp byte ptr [rdi + rax], 0",
    "je 3f",
    "inc rax",
    "jmp 2b",
    "3:",
    "ret",
);
