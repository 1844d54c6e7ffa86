//! System calls of the store without a safe wrapper in a library: executing another program unchanged, and leaving one behind.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Child;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The disposition of SIGPIPE when the process was started. Rust's runtime changes it before `main`.
static SIGPIPE_HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
/// The standard streams that were closed when the process was started. Rust's runtime opens /dev/null there before `main`.
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

extern "C" fn note_start() {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: no new action is given; the call fills in the old one when it succeeds, and it is read only then. F_GETFD involves no
    // memory.
    unsafe {
        if libc::sigaction(libc::SIGPIPE, std::ptr::null(), action.as_mut_ptr()) == 0 {
            SIGPIPE_HANDLER.store(action.assume_init().sa_sigaction, Ordering::Relaxed);
        }
        for (stream, closed) in (0..).zip(&CLOSED) {
            closed.store(libc::fcntl(stream, libc::F_GETFD) == -1, Ordering::Relaxed);
        }
    }
}

// SAFETY: the section holds pointers to functions that take nothing they need, which the C library calls before `main`.
#[unsafe(link_section = ".init_array")]
#[used]
static NOTE_START: extern "C" fn() = note_start;

extern "C" {
    /// See environ(7).
    static environ: *const *const libc::c_char;
}

/// Executes another program, with everything as it was when this one was started: the environment, ignored and blocked signals,
/// descriptors. Returns only if that fails. `argv`: all words, the name first.
pub fn execute(program: &Path, argv: &[OsString], changed: Option<(&str, &OsStr)>) -> io::Error {
    let Ok(path) = CString::new(program.as_os_str().as_bytes()) else { return io::ErrorKind::InvalidInput.into() };
    execute_with(argv, changed, |argv, environment| {
        // SAFETY: the lists are those of `execute_with`, and the path ends with a NUL.
        unsafe { libc::execve(path.as_ptr(), argv, environment) };
        io::Error::last_os_error()
    })
}

/// Like [`execute`], but runs the open file itself, whatever its path leads to now. Not for scripts: the kernel would give the interpreter
/// a descriptor that is closed by then.
pub fn execute_open(program: &File, argv: &[OsString]) -> io::Error {
    execute_with(argv, None, |argv, environment| {
        let file = program.as_raw_fd();
        // SAFETY: the lists are those of `execute_with`, and both paths end with a NUL.
        unsafe { libc::syscall(libc::SYS_execveat, file, c"".as_ptr(), argv, environment, libc::AT_EMPTY_PATH) };
        let error = io::Error::last_os_error();
        let is_unknown = matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM));
        let path = CString::new(format!("/proc/self/fd/{file}")).expect("no NUL");
        if is_unknown {
            // SAFETY: as above.
            unsafe { libc::execve(path.as_ptr(), argv, environment) };
        }
        error
    })
}

/// Prepares for another program, and calls `become_it` with the lists of its words and of its environment, which end with null pointers.
fn execute_with(
    argv: &[OsString],
    changed: Option<(&str, &OsStr)>,
    become_it: impl FnOnce(*const *const libc::c_char, *const *const libc::c_char) -> io::Error,
) -> io::Error {
    let list = |words: &[OsString]| -> Result<Vec<CString>, _> {
        words.iter().map(|word| CString::new(word.as_bytes())).collect()
    };
    let Ok(argv) = list(argv) else { return io::ErrorKind::InvalidInput.into() };
    let environment = match changed {
        None => None,
        Some(changed) => match list(&with(changed)) {
            Ok(entries) => Some(entries),
            Err(_) => return io::ErrorKind::InvalidInput.into(),
        },
    };
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv_pointers, entries) = (pointers(&argv), environment.as_deref().map(pointers));
    // SAFETY: the lists end with null pointers, and their strings live until the call returns. The handler is one that the process had.
    // The streams stay open until the other program is there, and if it cannot be.
    unsafe {
        libc::signal(libc::SIGPIPE, SIGPIPE_HANDLER.load(Ordering::Relaxed));
        for (stream, _) in (0..).zip(&CLOSED).filter(|(_, closed)| closed.load(Ordering::Relaxed)) {
            libc::fcntl(stream, libc::F_SETFD, libc::FD_CLOEXEC);
        }
        let environment = entries.as_ref().map_or(environ, |entries| entries.as_ptr());
        become_it(argv_pointers.as_ptr(), environment)
    }
}

/// The environment with another value for one variable, which keeps its position.
fn with((name, value): (&str, &OsStr)) -> Vec<OsString> {
    let entry = |name: &OsStr, value: &OsStr| [name.as_bytes(), b"=", value.as_bytes()].concat();
    let mut found = false;
    let mut entries = Vec::new();
    for (other, old) in std::env::vars_os() {
        let is_it = other == name;
        found |= is_it;
        entries.push(entry(&other, if is_it { value } else { &old }));
    }
    if !found {
        entries.push(entry(OsStr::new(name), value));
    }
    use std::os::unix::ffi::OsStringExt;
    entries.into_iter().map(OsString::from_vec).collect()
}

/// Starts a program that nobody waits for: it becomes no child of this process. Its standard streams are /dev/null, and it has a session of
/// its own. Errors are ignored.
pub fn leave_behind(program: &Path, argv: &[OsString]) {
    let strings: Result<Vec<CString>, _> = argv.iter().map(|word| CString::new(word.as_bytes())).collect();
    let (Ok(path), Ok(strings)) = (CString::new(program.as_os_str().as_bytes()), strings) else { return };
    let pointers: Vec<*const libc::c_char> =
        strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect();
    // SAFETY: this process has one thread. What runs in the children makes system calls only, on what was prepared before.
    unsafe {
        // As fork(2), but no SIGCHLD says that it has ended: one would stay pending for the program that this process becomes.
        let child = libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) as libc::pid_t;
        if child == 0 {
            libc::setsid();
            if libc::fork() == 0 {
                let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
                (0..3).for_each(|stream| {
                    libc::dup2(null, stream);
                });
                close_from_3();
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                libc::execv(path.as_ptr(), pointers.as_ptr());
            }
            libc::_exit(0);
        }
        if child > 0 {
            while libc::waitpid(child, std::ptr::null_mut(), libc::__WALL) == -1
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
    }
}

/// Waits for a child to end. Returns the processor time of the child, and of those of its children that it has waited for.
pub fn wait_for(child: Child) -> io::Result<Duration> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    let mut status = 0;
    loop {
        // SAFETY: the child is one of this process that nobody else waits for; both places live until the call returns.
        let ended = unsafe { libc::wait4(child.id() as libc::pid_t, &mut status, 0, usage.as_mut_ptr()) };
        match io::Error::last_os_error() {
            _ if ended >= 0 => break,
            error if error.kind() == io::ErrorKind::Interrupted => {}
            error => return Err(error),
        }
    }
    // SAFETY: the call has filled it; it was zeros before.
    let usage = unsafe { usage.assume_init() };
    let time = |of: libc::timeval| Duration::new(of.tv_sec as u64, of.tv_usec as u32 * 1000);
    Ok(time(usage.ru_utime) + time(usage.ru_stime))
}

/// Closes all descriptors but the standard streams.
pub fn close_all() {
    // SAFETY: nothing of this process has opened any yet.
    unsafe { close_from_3() };
}

/// Safe in a forked child. Does not use the function `close_range`, which glibc has only since 2.34; the kernel has the call since 5.9.
unsafe fn close_from_3() {
    /// For older kernels: the number that most limits allow.
    const MANY: libc::c_int = 1024;
    // SAFETY: the calls have numbers only; whoever calls this answers for what is closed.
    unsafe {
        let (first, last, flags) = (3 as libc::c_ulong, libc::c_uint::MAX as libc::c_ulong, 0 as libc::c_ulong);
        if libc::syscall(libc::SYS_close_range, first, last, flags) != 0 {
            (3..MANY).for_each(|number| {
                libc::close(number);
            });
        }
    }
}

/// Ends the process at once, as `alarm` does.
pub fn alarm_now() {
    // SAFETY: the calls take numbers, and this process handles the signal.
    unsafe { libc::kill(libc::getpid(), libc::SIGALRM) };
}

/// Lets the kernel send SIGALRM to this process after so many seconds; its children get none.
pub fn alarm(seconds: u32) {
    // SAFETY: the call takes a number.
    unsafe { libc::alarm(seconds) };
}

/// Lowers the priority for processor and disk; if memory runs out, the kernel ends this process and its children first.
pub fn step_back() {
    // Any process may raise it. Without /proc, none can.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    /// From ioprio_set(2): the calling process, and the class that reads and writes only if no other process does.
    const WHO_PROCESS: libc::c_int = 1;
    const CLASS_IDLE: libc::c_int = 3 << 13;
    // SAFETY: the calls take numbers, and a record that lives until the call returns.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, 19);
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &libc::sched_param { sched_priority: 0 });
        libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, CLASS_IDLE);
    }
}
