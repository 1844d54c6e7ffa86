//! Inspects a process right before its memory is gone, however it ends.
//!
//! The kernel stops a traced process at its exit (PTRACE_O_TRACEEXIT). Nothing else of it is traced, and none of its
//! children. If tracing is not allowed, there is no inspection.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use failure::Failure;
use nix::sys::ptrace::{self, Event, Options};
use nix::sys::signal::Signal;
use nix::unistd;
use rustix::process::{getpid, kill_process, waitid, Pid, WaitId, WaitIdOptions, WaitIdStatus};

/// The hidden subcommand with which `snapboot freeze` starts a process that waits until it is traced.
pub const SUBCOMMAND: &str = "traced";

/// The command that stops itself and then executes `program`.
pub fn command(program: &Path) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(SUBCOMMAND).arg(program);
    Ok(command)
}

/// The executable that links this crate must call this for the subcommand [`SUBCOMMAND`]. Returns only on failure.
pub fn run(program: &Path, arguments: &[OsString]) -> Failure {
    let stopped = kill_process(getpid(), rustix::process::Signal::STOP).map_err(io::Error::from);
    let error = stopped.err().unwrap_or_else(|| Command::new(program).args(arguments).exec());
    Failure::failed(format!("cannot run {}: {error}.", program.display()))
}

/// The callback of [`runtime::deadline::run_watched`] for a process that stops itself first: traces it, continues it,
/// and calls `look` at its end.
pub fn at_end(mut look: impl FnMut(&Child)) -> impl FnMut(&Child) {
    let mut has_begun = false;
    move |child| {
        let process = unistd::Pid::from_raw(child.id() as i32);
        while let Some(stop) = stop(child) {
            if let Some(trap) = stop.trapping_signal() {
                // The low byte is a signal, which is delivered if there is no event.
                let (event, signal) = (trap >> 8, Signal::try_from(trap).ok());
                if event == Event::PTRACE_EVENT_EXIT as i32 {
                    look(child);
                }
                let _ = ptrace::cont(process, signal.filter(|_| event == 0));
            } else if !has_begun {
                has_begun = true;
                let _ = ptrace::seize(process, Options::PTRACE_O_TRACEEXIT);
                let _ = kill_process(Pid::from_child(child), rustix::process::Signal::CONT);
            }
        }
    }
}

/// Why a process has stopped; None if it has not. Does not reap one that has ended.
fn stop(child: &Child) -> Option<WaitIdStatus> {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    waitid(WaitId::Pid(Pid::from_child(child)), options).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::deadline::run_watched;
    use std::fs;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    /// Runs a script; returns the target of `/proc/PID/exe` in each inspection, and the exit code if the script ended
    /// in time.
    fn looks(script: &str, limit: Duration) -> (Vec<String>, Option<i32>) {
        let mut seen = Vec::new();
        let mut look = at_end(|child: &Child| {
            let path = fs::read_link(format!("/proc/{}/exe", child.id())).expect("its memory is still there");
            seen.push(path.file_name().unwrap().to_string_lossy().into_owned());
        });
        let mut command = Command::new("/bin/bash");
        command.arg("-c").arg(format!("kill -STOP $$; {script}"));
        let ended = run_watched(&mut command, limit, None::<&UnixStream>, Some(&mut look), None).unwrap();
        drop(look);
        (seen, ended.map(|output| output.status.code().unwrap_or(-1)))
    }

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn each_end_is_seen_once_and_nothing_is_changed_by_it() {
        let bash = || vec!["bash".to_owned()];
        assert_eq!(looks("exit 3", LIMIT), (bash(), Some(3)));
        assert_eq!(looks("trap 'exit 4' USR1; kill -USR1 $$; sleep 60", LIMIT), (bash(), Some(4)));
        assert_eq!(looks("kill -TERM $$; exit 5", LIMIT), (bash(), Some(-1)));
        assert_eq!(looks("(exit 1); sleep 0; exit 6", LIMIT), (bash(), Some(6)));
        assert_eq!(looks("exec sleep 0", LIMIT), (vec!["sleep".to_owned()], Some(0)));
    }

    #[test]
    fn who_does_not_end_in_time_is_killed() {
        assert_eq!(looks("sleep 300", Duration::from_millis(100)).1, None);
    }
}
