//! Safe functions for seccomp user notifications, which ask a supervisor before a system call continues, and for
//! reading the memory of the calling process.
#![allow(unsafe_code)]

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use libc::{seccomp_data, seccomp_notif, seccomp_notif_resp, sock_filter, sock_fprog};

/// SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP of linux/seccomp.h (Linux 6.6).
const SYNC_WAKE_UP: libc::c_ulong = 1;

/// A system call that waits for a reply.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    /// The calling thread.
    pub thread: i32,
    /// Number and arguments.
    pub data: seccomp_data,
    id: u64,
}

fn result(value: libc::c_long) -> io::Result<i32> {
    if value < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(value as i32)
}

/// Installs a filter for all further system calls of this thread and of its children. Returns the listener, which
/// receives the calls that the filter passes to a supervisor.
pub fn set_filter(filter: &[sock_filter]) -> io::Result<OwnedFd> {
    let program = sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    let set = |flags: libc::c_ulong| {
        let (mode, flags) = (libc::SECCOMP_SET_MODE_FILTER, flags | libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
        // SAFETY: the kernel copies the filter, which `program` describes.
        result(unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) })
    };
    // A signal must not interrupt a call that waits for its reply. Before Linux 5.19 it may.
    let set = || set(libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV).or_else(|_| set(0));
    let listener = set().or_else(|_| {
        // SAFETY: the request involves no memory.
        result(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }.into())?;
        set()
    })?;
    // SAFETY: the kernel has just created this descriptor, and no other code knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(listener) })
}

/// Wakes the calling and the replying thread in turn on one CPU, which is several times as fast. Older kernels lack
/// this.
pub fn wake_in_turn(listener: &OwnedFd) {
    // SAFETY: the request takes a number.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS, SYNC_WAKE_UP) };
}

/// Receives the next waiting call; None if the caller was killed meanwhile.
pub fn next(listener: &OwnedFd) -> io::Result<Option<Waiting>> {
    // SAFETY: all-zero bytes are valid for this structure of integers, and the kernel wants them.
    let mut call: seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills in the structure.
    match result(unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) }.into()) {
        Ok(_) => Ok(Some(Waiting { thread: call.pid as i32, data: call.data, id: call.id })),
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Continues a call unchanged. If its thread was killed meanwhile, there is none to reply to.
pub fn go_on(listener: &OwnedFd, call: &Waiting) {
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    let mut answer = seccomp_notif_resp { id: call.id, val: 0, error: 0, flags };
    // SAFETY: the kernel reads the structure.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
}

/// Reads memory of another process; returns the number of bytes read.
pub fn read_memory(process: i32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let own = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let other = libc::iovec { iov_base: ptr::without_provenance_mut(address as usize), iov_len: into.len() };
    // SAFETY: the kernel writes only to `into`, and reads only mapped memory of the other process.
    let size = unsafe { libc::process_vm_readv(process, &raw const own, 1, &raw const other, 1, 0) };
    usize::try_from(size).map_err(|_| io::Error::last_os_error())
}

/// Executes a program with its environment in this order, which `std::process` would sort: libraries that set the title of
/// a process expect the first variable that is left right behind the arguments. No signal is blocked, and SIGPIPE is as at first.
/// Returns only on failure.
pub fn execute(program: &Path, argv: &[OsString], environment: &[(OsString, OsString)]) -> io::Error {
    let strings =
        |all: &[OsString]| all.iter().map(|text| CString::new(text.as_bytes())).collect::<Result<Vec<_>, _>>();
    let entries: Vec<_> =
        environment.iter().map(|(name, value)| [name.as_os_str(), value].join(OsStr::new("="))).collect();
    let (program, argv, environment) =
        match (CString::new(program.as_os_str().as_bytes()), strings(argv), strings(&entries)) {
            (Ok(program), Ok(argv), Ok(environment)) => (program, argv, environment),
            (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => return error.into(),
        };
    let list = |strings: &[CString]| strings.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>();
    let (argv, environment) = (list(&argv), list(&environment));
    // SAFETY: the lists end with a null pointer, and their strings live on; the calls for signals use no other memory.
    unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::execve(program.as_ptr(), argv.as_ptr(), environment.as_ptr());
    }
    io::Error::last_os_error()
}

/// A descriptor that this process inherited; closed when dropped.
pub fn inherited(number: i32) -> OwnedFd {
    // SAFETY: the parent process left it open for this one use.
    unsafe { OwnedFd::from_raw_fd(number) }
}
