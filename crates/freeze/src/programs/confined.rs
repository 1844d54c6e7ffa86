//! A process that can only read and end, and cannot affect others. In it the exit handlers of a program may run
//! although the program never did. A rehearsal calls them because every start will.
//!
//! The process stops itself (SIGSTOP) right before it executes the program, so that the rest can be timed.
//!
//! The confinement is a seccomp filter. Calls that it does not allow fail with ENOSYS. C libraries then use an
//! alternative if there is one, and exit handlers get an exception.

use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::io;
use std::path::Path;
use std::process::{id, Command};

use failure::Failure;
use libc::{c_long, O_ACCMODE, O_CREAT, O_TRUNC};
use seccompiler::{
    apply_filter, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use super::last_look;
use crate::arch::HARMLESS_HERE;

/// The hidden subcommand with which `snapboot freeze` starts a confined process.
pub const SUBCOMMAND: &str = "confined";

/// System calls that only read, or change only the calling process.
const HARMLESS: &[c_long] = &[
    // Memory.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mincore,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_process_madvise,
    // Files.
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_faccessat,
    libc::SYS_fadvise64,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_getcwd,
    libc::SYS_getdents64,
    libc::SYS_lseek,
    libc::SYS_newfstatat,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_statx,
    libc::SYS_write,
    libc::SYS_writev,
    // Its own descriptors.
    libc::SYS_dup3,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_eventfd2,
    libc::SYS_inotify_init1,
    libc::SYS_pidfd_open,
    libc::SYS_signalfd4,
    // Harmless as long as nothing can be bound, connected or sent.
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_timerfd_create,
    libc::SYS_pipe2,
    // The process.
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_execve,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_sigaltstack,
    libc::SYS_sysinfo,
    libc::SYS_timer_create,
    libc::SYS_timer_delete,
    libc::SYS_timer_getoverrun,
    libc::SYS_timer_gettime,
    libc::SYS_timer_settime,
    libc::SYS_uname,
];

/// The command that confines itself and executes `program`.
pub fn command(program: &Path) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(SUBCOMMAND).arg(program);
    Ok(command)
}

/// The executable that links this crate must call this for the subcommand [`SUBCOMMAND`]: confines this process, stops
/// it, and then executes `program`. Returns only on failure.
pub fn run(program: &Path) -> Failure {
    match confine() {
        Ok(()) => last_look::run(program, &[]),
        Err(error) => Failure::failed(format!("cannot run {} confined: {error}.", program.display())),
    }
}

fn confine() -> std::result::Result<(), seccompiler::Error> {
    let filter: BpfProgram = filter()?.try_into()?;
    apply_filter(&filter)
}

fn filter() -> std::result::Result<SeccompFilter, seccompiler::BackendError> {
    let has = |argument, mask: i64, value: i64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask as u64), value as u64)
    };
    let rule = |condition| SeccompRule::new(vec![condition?]);
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        HARMLESS.iter().chain(HARMLESS_HERE).map(|call| (*call, Vec::new())).collect();
    // No file can be opened for writing. It can write only to the standard streams, which are /dev/null, and to its own
    // pipes.
    let writing = i64::from(O_ACCMODE | O_CREAT | O_TRUNC);
    rules.insert(libc::SYS_openat, vec![rule(has(2, writing, 0))?]);
    let all = i64::from(u32::MAX);
    rules.insert(
        libc::SYS_ioctl,
        vec![rule(has(1, all, libc::TCGETS as i64))?, rule(has(1, all, libc::TIOCGWINSZ as i64))?],
    );
    // Threads, but no processes.
    rules.insert(libc::SYS_clone, vec![rule(has(0, i64::from(libc::CLONE_THREAD), i64::from(libc::CLONE_THREAD)))?]);
    // Signals to itself.
    for call in [libc::SYS_kill, libc::SYS_tgkill] {
        rules.insert(call, vec![rule(has(0, all, i64::from(id())))?]);
    }
    SeccompFilter::new(rules, SeccompAction::Errno(libc::ENOSYS as u32), SeccompAction::Allow, ARCH.try_into()?)
}
