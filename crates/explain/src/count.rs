//! Counts the system calls of a start, in a run of its own that is not timed: it is stopped at each call.
//!
//! The start marks its position with a call that no program makes: it asks for the process group of a process that cannot exist.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::process::Command;

use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;

use crate::arch;

/// The number of the first event; no kernel gives a process so high a number.
const FIRST_NUMBER: u64 = 1 << 30;

/// System calls and failed look-ups by the events of a start.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// The counts before each event, by its number.
    before: BTreeMap<usize, (u64, u64)>,
    total: (u64, u64),
}

impl Counts {
    /// System calls and failed look-ups before the event of that number.
    pub fn before(&self, number: usize) -> (u64, u64) {
        self.before.range(number..).next().map_or(self.total, |(_, counts)| *counts)
    }

    /// System calls and failed look-ups of the whole process.
    pub fn total(&self) -> (u64, u64) {
        self.total
    }

    /// Counts a call that has returned. Returns the number of the next entry, if the call marks one.
    fn add(&mut self, number: i64, argument: u64, result: i64) -> Option<usize> {
        if number == libc::SYS_getpgid && (FIRST_NUMBER..2 * FIRST_NUMBER).contains(&argument) {
            let entry = (argument - FIRST_NUMBER) as usize;
            self.before.insert(entry, self.total);
            return Some(entry);
        }
        self.total.0 += 1;
        if [libc::ENOENT, libc::ENOTDIR].map(|error| -i64::from(error)).contains(&result) {
            self.total.1 += 1;
        }
        None
    }
}

/// Observes a process whose calls are counted, while it is stopped.
pub trait Watch {
    /// Called right before the entry of that number. `Break` kills the process.
    fn before_entry(&mut self, process: Pid, number: usize) -> ControlFlow<()>;
    /// Called when it ends, while its memory still exists.
    fn at_end(&mut self, process: Pid);
}

/// Observes nothing.
impl Watch for () {
    fn before_entry(&mut self, _: Pid, _: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn at_end(&mut self, _: Pid) {}
}

/// Counts the calls of a command's first thread. `command` stops itself before it executes the program, as `snapboot traced` does. Fails if
/// the machine does not allow tracing.
pub fn count(command: &mut Command, watch: &mut dyn Watch) -> io::Result<Counts> {
    let child = Pid::from_raw(command.spawn()?.id() as i32);
    let counts = follow(child, watch);
    if counts.is_err() {
        // It may have ended by itself.
        let _ = kill(child, Signal::SIGKILL);
        let _ = waitpid(child, None);
    }
    Ok(counts?)
}

fn follow(child: Pid, watch: &mut dyn Watch) -> nix::Result<Counts> {
    let mut counts = Counts::default();
    let mut call = None;
    waitpid(child, Some(WaitPidFlag::WUNTRACED))?;
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACEEXIT
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(child, options)?;
    kill(child, Signal::SIGCONT)?;
    loop {
        let signal = match waitpid(child, None)? {
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return Ok(counts),
            WaitStatus::PtraceSyscall(_) => {
                let (number, argument, result) = arch::call(&ptrace::getregs(child)?);
                match call.take() {
                    None => call = Some((number, argument)),
                    Some((number, argument)) => {
                        if let Some(entry) = counts.add(number, argument, result) {
                            if watch.before_entry(child, entry).is_break() {
                                kill(child, Signal::SIGKILL)?;
                                waitpid(child, None)?;
                                return Ok(counts);
                            }
                        }
                    }
                }
                None
            }
            // Only the last program counts, and not the one that has started it.
            WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXEC) => {
                counts = Counts::default();
                None
            }
            WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXIT) => {
                watch.at_end(child);
                None
            }
            WaitStatus::Stopped(_, signal) => Some(signal),
            _ => None,
        };
        match ptrace::syscall(child, signal) {
            // Killed meanwhile; the next wait reports it.
            Ok(()) | Err(nix::errno::Errno::ESRCH) => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_those_between_two_events() {
        let mut counts = Counts::default();
        let at = |number: u64| FIRST_NUMBER + number;
        counts.add(libc::SYS_openat, 0, 3);
        counts.add(libc::SYS_getpgid, at(0), -3);
        counts.add(libc::SYS_openat, 0, -i64::from(libc::ENOENT));
        counts.add(libc::SYS_getpgid, at(2), -3);
        counts.add(libc::SYS_getpgid, 5, 5);
        assert_eq!([0, 1, 2, 3].map(|number| counts.before(number)), [(1, 0), (2, 1), (2, 1), (3, 1)]);
    }

    #[test]
    fn a_command_is_counted_from_its_execution() {
        let script = "kill -STOP $$; exec ls /nowhere-at-all";
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script).stderr(std::process::Stdio::null());
        let (calls, failed) = count(&mut command, &mut ()).unwrap().total();
        assert!(calls > 10 && failed >= 1, "{calls} {failed}");
    }
}
