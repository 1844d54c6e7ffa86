//! The system calls that the launcher makes, each behind a function whose contract Rust can check as far as it can be checked.
#![allow(unsafe_code)]

use image::arch::Registers;
use linux_raw_sys::general as raw;

use crate::arch::{set_thread_pointer, syscall};

mod memory;
mod region;

pub use inputs::system::{Result, Status};
pub use inputs::Errno;
pub use memory::*;
pub use region::{FilePart, Memory};

/// An open descriptor; the launcher closes what it opened itself before it jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fd(pub u32);

/// A child of this process.
#[derive(Clone, Copy)]
pub struct Pid(pub u32);

/// What a call returned, as the kernel encodes errors.
pub fn result(value: isize) -> Result<usize> {
    if (-4095..0).contains(&value) {
        Err(Errno(-value as u32))
    } else {
        Ok(value as usize)
    }
}

/// A call that reads and writes no memory of the launcher but what the arguments say.
///
/// # Safety
/// The call must be sound for these arguments.
pub unsafe fn call(number: u32, arguments: &[usize]) -> Result<usize> {
    let mut all = [0; 6];
    all[..arguments.len()].copy_from_slice(arguments);
    // SAFETY: passed on to the caller.
    result(unsafe { syscall(number, all) })
}

/// Where a relative path starts: the working directory.
const CWD: usize = raw::AT_FDCWD as isize as usize;

/// Opens a file. `path` ends with a NUL.
pub fn open(path: &[u8], flags: u32) -> Result<Fd> {
    debug_assert!(path.last() == Some(&0));
    // SAFETY: `path` is NUL-terminated and the kernel only reads it.
    unsafe { call(raw::__NR_openat, &[CWD, path.as_ptr() as usize, flags as usize, 0]) }.map(|fd| Fd(fd as u32))
}

/// Opens a file that may have to be made first, with this mode. `path` ends with a NUL.
pub fn create(path: &[u8], flags: u32, mode: u32) -> Result<Fd> {
    let arguments = [CWD, path.as_ptr() as usize, flags as usize, mode as usize];
    // SAFETY: `path` is NUL-terminated and the kernel only reads it.
    unsafe { call(raw::__NR_openat, &arguments) }.map(|fd| Fd(fd as u32))
}

/// Gives a file another name, in whose place it comes. Both end with a NUL.
pub fn rename(from: &[u8], to: &[u8]) -> Result<()> {
    let arguments = [CWD, from.as_ptr() as usize, CWD, to.as_ptr() as usize];
    // SAFETY: the paths are NUL-terminated and the kernel only reads them.
    unsafe { call(raw::__NR_renameat, &arguments) }.map(drop)
}

/// Removes a file, if it is there. `path` ends with a NUL.
pub fn unlink(path: &[u8]) {
    // SAFETY: `path` is NUL-terminated and the kernel only reads it.
    let _ = unsafe { call(raw::__NR_unlinkat, &[CWD, path.as_ptr() as usize, 0]) };
}

/// Makes a folder, if it is not there. `path` ends with a NUL.
pub fn make_folder(path: &[u8], mode: u32) {
    // SAFETY: `path` is NUL-terminated and the kernel only reads it.
    let _ = unsafe { call(raw::__NR_mkdirat, &[CWD, path.as_ptr() as usize, mode as usize]) };
}

/// Makes a symbolic link, if nothing is there. Both paths end with a NUL.
pub fn link(target: &[u8], path: &[u8]) {
    // SAFETY: the paths are NUL-terminated and the kernel only reads them.
    let _ = unsafe { call(raw::__NR_symlinkat, &[target.as_ptr() as usize, CWD, path.as_ptr() as usize]) };
}

/// What a symbolic link says; returns its length, at most that of `target`. `path` ends with a NUL.
pub fn read_link(path: &[u8], target: &mut [u8]) -> Result<usize> {
    let arguments = [CWD, path.as_ptr() as usize, target.as_mut_ptr() as usize, target.len()];
    // SAFETY: `path` is NUL-terminated; the kernel writes to `target` only.
    unsafe { call(raw::__NR_readlinkat, &arguments) }
}

/// Reads from a place in a file; returns how much (bytes), 0 at the end. Less than requested only at the end of a regular file.
pub fn read_at(fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let arguments = [fd.0 as usize, buffer.as_mut_ptr() as usize, buffer.len(), offset as usize];
    // SAFETY: the kernel writes to `buffer` only.
    unsafe { call(raw::__NR_pread64, &arguments) }
}

/// Writes all of `bytes`.
pub fn write_all(fd: Fd, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the kernel only reads `bytes`.
        let count = unsafe { call(raw::__NR_write, &[fd.0 as usize, bytes.as_ptr() as usize, bytes.len()])? };
        bytes = &bytes[count.min(bytes.len())..];
    }
    Ok(())
}

/// Writes to a place in a file, as much as goes in one call.
pub fn write_at(fd: Fd, bytes: &[u8], offset: u64) -> Result<()> {
    let arguments = [fd.0 as usize, bytes.as_ptr() as usize, bytes.len(), offset as usize];
    // SAFETY: the kernel only reads `bytes`.
    unsafe { call(raw::__NR_pwrite64, &arguments) }.map(drop)
}

/// Closes a descriptor of the launcher's own.
pub fn close(fd: Fd) {
    // SAFETY: no memory is involved.
    let _ = unsafe { call(raw::__NR_close, &[fd.0 as usize]) };
}

fn status(number: u32, arguments: [usize; 4], place: usize) -> Result<Status> {
    let mut stat = core::mem::MaybeUninit::<raw::stat>::zeroed();
    let mut arguments = arguments;
    arguments[place] = stat.as_mut_ptr() as usize;
    // SAFETY: the kernel fills in the structure; a path among the arguments is NUL-terminated (see callers).
    unsafe { call(number, &arguments)? };
    // SAFETY: all-zero and kernel-written bytes are both valid for this structure of integers.
    let stat = unsafe { stat.assume_init() };
    // Signed on some architectures, unsigned on others.
    #[allow(clippy::unnecessary_cast)] // unsigned on x86-64 only
    let (mtime, ctime) = (stat.st_mtime as i64, stat.st_ctime as i64);
    let ns = |seconds: i64, nanoseconds: u64| seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds as i64);
    Ok(Status {
        size: stat.st_size as u64,
        mtime: ns(mtime, stat.st_mtime_nsec),
        ctime: ns(ctime, stat.st_ctime_nsec),
        owner: stat.st_uid,
        mode: stat.st_mode,
        device: stat.st_dev,
        inode: stat.st_ino,
    })
}

/// Status of an open file.
pub fn fstat(fd: Fd) -> Result<Status> {
    status(raw::__NR_fstat, [fd.0 as usize, 0, 0, 0], 1)
}

/// Status of a file by path, links followed; a relative path is looked up from `directory`. `path` ends with a NUL.
pub fn stat(directory: Option<Fd>, path: &[u8]) -> Result<Status> {
    debug_assert!(path.last() == Some(&0));
    let from = directory.map_or(CWD, |directory| directory.0 as usize);
    status(raw::__NR_newfstatat, [from, path.as_ptr() as usize, 0, 0], 2)
}

/// Status of a name itself, which may be a link, looked up from `directory`. `name` ends with a NUL.
pub fn stat_link(directory: Fd, name: &[u8]) -> Result<Status> {
    debug_assert!(name.last() == Some(&0));
    let arguments = [directory.0 as usize, name.as_ptr() as usize, 0, raw::AT_SYMLINK_NOFOLLOW as usize];
    status(raw::__NR_newfstatat, arguments, 2)
}

/// What a symbolic link says, looked up from `directory`; returns its length. `name` ends with a NUL.
pub fn read_link_at(directory: Fd, name: &[u8], target: &mut [u8]) -> Result<usize> {
    let arguments = [directory.0 as usize, name.as_ptr() as usize, target.as_mut_ptr() as usize, target.len()];
    // SAFETY: `name` is NUL-terminated; the kernel writes to `target` only.
    unsafe { call(raw::__NR_readlinkat, &arguments) }
}

/// Opens what is named from `directory`. `name` ends with a NUL.
pub fn open_at(directory: Fd, name: &[u8], flags: u32) -> Result<Fd> {
    let arguments = [directory.0 as usize, name.as_ptr() as usize, flags as usize, 0];
    // SAFETY: `name` is NUL-terminated and the kernel only reads it.
    unsafe { call(raw::__NR_openat, &arguments) }.map(|fd| Fd(fd as u32))
}

/// Reads entries of an open directory as `linux_dirent64` has them; returns how many bytes, 0 at the end.
pub fn list(directory: Fd, entries: &mut [u8]) -> Result<usize> {
    let arguments = [directory.0 as usize, entries.as_mut_ptr() as usize, entries.len()];
    // SAFETY: the kernel writes to `entries` only.
    unsafe { call(raw::__NR_getdents64, &arguments) }
}

/// Whether a descriptor is open.
pub fn is_open(number: u32) -> bool {
    // SAFETY: F_GETFD involves no memory.
    unsafe { call(raw::__NR_fcntl, &[number as usize, raw::F_GETFD as usize]) }.is_ok()
}

/// Moves the open descriptor `fd` to the first free number above `number`.
pub fn duplicate_above(fd: Fd, number: u32) -> Result<Fd> {
    let arguments = [fd.0 as usize, raw::F_DUPFD_CLOEXEC as usize, number as usize + 1];
    // SAFETY: no memory is involved.
    let moved = unsafe { call(raw::__NR_fcntl, &arguments)? };
    close(fd);
    Ok(Fd(moved as u32))
}

/// Gives the open descriptor `fd` the number `number`, with only `O_CLOEXEC` of `flags` looked at, and closes `fd`.
pub fn renumber(fd: Fd, number: u32, flags: u32) -> Result<()> {
    if fd.0 == number {
        return Ok(());
    }
    let cloexec = flags & raw::O_CLOEXEC;
    // SAFETY: no memory is involved.
    unsafe { call(raw::__NR_dup3, &[fd.0 as usize, number as usize, cloexec as usize])? };
    close(fd);
    Ok(())
}

/// A file's offset.
pub fn position(fd: Fd) -> Result<u64> {
    // SAFETY: no memory is involved.
    unsafe { call(raw::__NR_lseek, &[fd.0 as usize, 0, raw::SEEK_CUR as usize]) }.map(|offset| offset as u64)
}

/// The wall clock (ns since 1970).
pub fn now() -> Result<i64> {
    let mut time = raw::__kernel_timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in the structure.
    unsafe { call(raw::__NR_clock_gettime, &[raw::CLOCK_REALTIME as usize, &raw mut time as usize])? };
    Ok(time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec))
}

/// Nanoseconds of the monotonic clock.
pub fn monotonic() -> Result<u64> {
    let mut time = raw::__kernel_timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills in the structure.
    unsafe { call(raw::__NR_clock_gettime, &[raw::CLOCK_MONOTONIC as usize, &raw mut time as usize])? };
    Ok((time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64))
}

/// Tells whoever counts the calls of this process which entry of `snapboot explain` comes now: asks for the group of a process of a number
/// that no kernel gives.
pub fn announce(entry: u32) {
    const FIRST: u32 = 1 << 30;
    // SAFETY: no memory is involved.
    let _ = unsafe { call(raw::__NR_getpgid, &[(FIRST + entry) as usize]) };
}

/// Effective user.
pub fn euid() -> u32 {
    // SAFETY: cannot fail, no memory.
    unsafe { syscall(raw::__NR_geteuid, [0; 6]) as u32 }
}

/// Soft and hard limit of a resource.
pub fn limit(resource: u32) -> Result<[u64; 2]> {
    let mut limit = [0u64; 2];
    // SAFETY: the kernel writes two 64-bit numbers.
    unsafe { call(raw::__NR_prlimit64, &[0, resource as usize, 0, limit.as_mut_ptr() as usize])? };
    Ok(limit)
}

/// Waits for the end of a child.
pub fn wait(child: Pid) {
    let wait = || {
        // SAFETY: the kernel writes nothing where it gets null.
        unsafe { call(raw::__NR_wait4, &[child.0 as usize, 0, raw::__WALL as usize, 0]) }
    };
    while wait() == Err(Errno(linux_raw_sys::errno::EINTR)) {}
}

/// Whether this process may run on more than one CPU. True when the kernel does not tell.
pub fn has_cpus() -> bool {
    let mut mask = [0u64; 16];
    // SAFETY: the kernel writes at most the mask.
    let told = unsafe { call(raw::__NR_sched_getaffinity, &[0, size_of_val(&mask), mask.as_mut_ptr() as usize]) };
    told.is_err() || mask.iter().map(|word| word.count_ones()).sum::<u32>() > 1
}

/// The signals that are blocked.
pub fn blocked_signals() -> Result<u64> {
    let mut mask = 0u64;
    let place = &raw mut mask as usize;
    // SAFETY: the kernel writes 8 bytes.
    unsafe { call(raw::__NR_rt_sigprocmask, &[0, 0, place, 8])? };
    Ok(mask)
}

/// Sets the blocked signals.
pub fn block_signals(mask: u64) -> Result<()> {
    let place = &raw const mask as usize;
    // SAFETY: the kernel reads 8 bytes.
    unsafe { call(raw::__NR_rt_sigprocmask, &[raw::SIG_SETMASK as usize, place, 0, 8]) }.map(drop)
}

/// The kernel's sigaction structure.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Action {
    pub handler: u64,
    pub flags: u64,
    pub restorer: u64,
    pub mask: u64,
}

/// What a signal does.
pub fn action(signal: u32) -> Result<Action> {
    let mut old = Action::default();
    let place = &raw mut old as usize;
    // SAFETY: the kernel writes the structure.
    unsafe { call(raw::__NR_rt_sigaction, &[signal as usize, 0, place, 8])? };
    Ok(old)
}

/// Sets what a signal does.
///
/// # Safety
/// A handler address must be that of a handler in the memory that is now in place.
pub unsafe fn set_action(signal: u32, new: &Action) -> Result<()> {
    // SAFETY: the kernel reads the structure; the handler is the caller's.
    unsafe { call(raw::__NR_rt_sigaction, &[signal as usize, core::ptr::from_ref(new) as usize, 0, 8]) }.map(drop)
}

/// One `prctl`.
///
/// # Safety
/// The call must be sound for these arguments.
pub unsafe fn prctl(arguments: &[usize]) -> Result<usize> {
    // SAFETY: passed on to the caller.
    unsafe { call(raw::__NR_prctl, arguments) }
}

/// Registers what glibc keeps with the kernel for the thread: thread id address, robust list, rseq area, alternate
/// stack, and the thread pointer. Returns the thread id.
///
/// # Safety
/// All addresses belong to the frozen process and mean the same there; afterwards thread-local memory is that process's.
pub unsafe fn adopt_thread(process: &image::Process, registers: &Registers) -> Result<u32> {
    let altstack = raw::stack_t {
        ss_sp: process.altstack_start as *mut _,
        ss_flags: process.altstack_flags as i32,
        ss_size: process.altstack_size as _,
    };
    // SAFETY: the caller vouches for the addresses; the kernel reads `altstack`.
    unsafe {
        let tid = call(raw::__NR_set_tid_address, &[process.tid_address as usize])?;
        call(raw::__NR_set_robust_list, &[process.robust_list as usize, process.robust_length as usize])?;
        if process.altstack_size != 0 {
            call(raw::__NR_sigaltstack, &[&raw const altstack as usize, 0])?;
        }
        set_thread_pointer(registers)?;
        Ok(tid as u32)
    }
}

/// Registers the area of the restartable sequences, if there is one.
///
/// # Safety
/// The area is memory of the frozen process.
pub unsafe fn register_rseq(process: &image::Process) -> Result<()> {
    if process.rseq_area != 0 {
        let (area, length) = (process.rseq_area as usize, process.rseq_length as usize);
        // SAFETY: the caller answers for the area.
        unsafe { call(raw::__NR_rseq, &[area, length, 0, process.rseq_signature as usize])? };
    }
    Ok(())
}

/// Executes a program; returns only on failure. `program` and all strings end with a NUL, both lists with a null pointer.
///
/// # Safety
/// The pointers lead to such strings.
pub unsafe fn execute(program: *const u8, argv: *const *const u8, envp: *const *const u8) -> Errno {
    // SAFETY: the caller vouches for the pointers.
    match unsafe { call(raw::__NR_execve, &[program as usize, argv as usize, envp as usize]) } {
        Err(errno) => errno,
        Ok(_) => Errno(0),
    }
}

/// Writes a message to standard error, as far as that is possible.
pub fn write_stderr(text: &[u8]) {
    // SAFETY: the kernel only reads `text`.
    let _ = unsafe { call(raw::__NR_write, &[2, text.as_ptr() as usize, text.len()]) };
}

/// Ends the process.
pub fn exit(status: u32) -> ! {
    // SAFETY: never returns.
    unsafe { syscall(raw::__NR_exit_group, [status as usize, 0, 0, 0, 0, 0]) };
    crate::arch::trap()
}
