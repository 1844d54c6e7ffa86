//! The process: its environment, the kernel's state of it, its memory, its end.

use core::ffi::{c_char, c_int, c_long, c_void};
use core::ops::Range;

use image::Handover;

use super::errno;

extern "C" {
    static mut environ: *mut *mut c_char;
}

/// Whether the strings of the environment lie in this range.
pub fn environment_lies_in(range: Range<u64>) -> bool {
    // SAFETY: `environ` is a null-terminated list, or null.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            if range.contains(&(*entry as u64)) {
                return true;
            }
            entry = entry.add(1);
        }
    }
    false
}

/// Makes the new process' environment the C library's and unmaps the launcher's leftovers.
pub fn adopt_environment(handover: &Handover) {
    // SAFETY: the launcher built the list, and no part of it lies in the unmapped range; there is one thread.
    unsafe {
        environ = handover.environ as *mut *mut c_char;
        let size = (handover.leftover_end - handover.leftover_start) as usize;
        libc::munmap(handover.leftover_start as *mut c_void, size);
    }
}

/// `prctl(PR_GET_TID_ADDRESS)`: where the C library keeps the thread id.
pub fn tid_address() -> Result<u64, i32> {
    let mut address: u64 = 0;
    // SAFETY: the kernel writes a pointer.
    match unsafe { libc::prctl(libc::PR_GET_TID_ADDRESS, &raw mut address) } {
        0 => Ok(address),
        _ => Err(errno()),
    }
}

/// Head and length of the robust list.
pub fn robust_list() -> (u64, u64) {
    let (mut head, mut length) = (0u64, 0u64);
    // SAFETY: the kernel writes two words.
    unsafe { libc::syscall(libc::SYS_get_robust_list, 0, &raw mut head, &raw mut length) };
    (head, length)
}

/// The alternate signal stack: address, size, flags.
pub fn alternate_stack() -> (u64, u64, u32) {
    let mut stack = core::mem::MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: the kernel fills in the structure, for which zeros are valid too.
    let stack = unsafe {
        libc::sigaltstack(core::ptr::null(), stack.as_mut_ptr());
        stack.assume_init()
    };
    if stack.ss_flags & libc::SS_DISABLE != 0 {
        return (0, 0, 0);
    }
    (stack.ss_sp as u64, stack.ss_size as u64, stack.ss_flags as u32)
}

/// The kernel's action for a signal: handler, flags, restorer, mask.
pub fn signal_action(number: u32) -> Option<[u64; 4]> {
    let mut action = [0u64; 4];
    // SAFETY: the kernel writes its own sigaction, four words.
    let status = unsafe { libc::syscall(libc::SYS_rt_sigaction, number, 0, action.as_mut_ptr(), 8) };
    (status == 0).then_some(action)
}

/// Blocked and pending signals.
pub fn signal_masks() -> (u64, u64) {
    let (mut blocked, mut pending) = (0u64, 0u64);
    // SAFETY: the kernel writes 8 bytes each.
    unsafe {
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, 0, &raw mut blocked, 8);
        libc::syscall(libc::SYS_rt_sigpending, &raw mut pending, 8);
    }
    (blocked, pending)
}

/// ` (SIGTERM)` and the like; empty for the real-time signals, which have no names.
pub fn signal_name(number: u32) -> &'static [u8] {
    match number as c_int {
        libc::SIGHUP => b" (SIGHUP)",
        libc::SIGINT => b" (SIGINT)",
        libc::SIGQUIT => b" (SIGQUIT)",
        libc::SIGUSR1 => b" (SIGUSR1)",
        libc::SIGUSR2 => b" (SIGUSR2)",
        libc::SIGPIPE => b" (SIGPIPE)",
        libc::SIGALRM => b" (SIGALRM)",
        libc::SIGTERM => b" (SIGTERM)",
        libc::SIGCHLD => b" (SIGCHLD)",
        libc::SIGCONT => b" (SIGCONT)",
        libc::SIGTSTP => b" (SIGTSTP)",
        libc::SIGWINCH => b" (SIGWINCH)",
        _ => b"",
    }
}

/// Whether one of the three interval timers runs.
pub fn interval_timer(which: c_int) -> bool {
    let mut timer = core::mem::MaybeUninit::<libc::itimerval>::zeroed();
    // SAFETY: the kernel fills in the structure, for which zeros are valid too.
    unsafe {
        libc::syscall(libc::SYS_getitimer, which as c_long, timer.as_mut_ptr());
        let timer = timer.assume_init();
        timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0
    }
}

/// Whether there are child processes, running or not waited for.
pub fn has_children() -> bool {
    let mut info = core::mem::MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the kernel fills in the structure.
    let status =
        unsafe { libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), libc::WEXITED | libc::WNOHANG | libc::WNOWAIT) };
    status == 0
}

/// The current end of the heap.
pub fn heap_end() -> u64 {
    // SAFETY: brk(0) changes nothing.
    unsafe { libc::syscall(libc::SYS_brk, 0) as u64 }
}

/// Waits.
pub fn sleep_ms(milliseconds: u32) {
    // SAFETY: no memory is involved.
    unsafe { libc::usleep(milliseconds * 1000) };
}

/// Process id.
pub fn pid() -> i32 {
    // SAFETY: cannot fail.
    unsafe { libc::getpid() }
}

/// The process that was booted: the frozen one is its child.
pub fn booted_pid() -> i32 {
    // SAFETY: cannot fail.
    unsafe { libc::getppid() }
}

/// Ends the process at once.
pub fn exit(status: c_int) -> ! {
    // SAFETY: never returns.
    unsafe { libc::_exit(status) }
}

/// Kills the process with SIGKILL, as the out-of-memory killer does.
pub fn kill_self() {
    // SAFETY: a system call without arguments in memory.
    unsafe { libc::raise(libc::SIGKILL) };
}

/// A range of this process' memory that must be readable: the vdso.
pub fn readable_memory(range: Range<u64>) -> &'static [u8] {
    // SAFETY: callers pass the vdso, which is mapped readable for the life of the process.
    unsafe { core::slice::from_raw_parts(range.start as *const u8, (range.end - range.start) as usize) }
}

/// The address range of this library, including its zero-initialised data.
pub fn own_range() -> Range<u64> {
    extern "C" {
        static __ehdr_start: u8;
        static _end: u8;
    }
    // The linker defines both; only their addresses are used.
    (&raw const __ehdr_start) as u64..((&raw const _end) as u64).next_multiple_of(image::PAGE)
}

/// Bytes leaked from the arena, given as pointer and length; empty for a null pointer.
pub fn kept_bytes(start: *const u8, length: usize) -> &'static [u8] {
    if start.is_null() {
        return b"";
    }
    // SAFETY: `Findings::keep` stored both, and the arena is released only together with them.
    unsafe { core::slice::from_raw_parts(start, length) }
}
