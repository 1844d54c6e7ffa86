//! Children that must end in time: probes, and the program that is being booted.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{kill_process_group, pidfd_open, Pid, PidfdFlags, Signal};

/// What a probe wrote and how it ended.
pub struct Answer {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs a command without input and collects its output (64 kB at most of each kind).
///
/// Returns Ok(None) when it did not end within `limit`; it and its children are killed then.
pub fn ask(command: &mut Command, limit: Duration) -> io::Result<Option<Answer>> {
    use std::os::unix::process::CommandExt;
    let mut child =
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if !ended_within(&child, limit)? {
        kill_group(&mut child);
        return Ok(None);
    }
    let status = child.wait()?;
    Ok(Some(Answer { status, stdout: drain(child.stdout.take())?, stderr: drain(child.stderr.take())? }))
}

/// Waits for the end of a child, `limit` at most; returns whether it ended.
pub fn ended_within(child: &Child, limit: Duration) -> io::Result<bool> {
    let ended = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let deadline = Instant::now() + limit;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match poll(&mut [PollFd::new(&ended, PollFlags::IN)], Some(&timespec(left))) {
            Ok(0) if left.is_zero() => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Kills a child that leads a process group, with all of the group, and reaps it.
pub fn kill_group(child: &mut Child) {
    // Both fail only when there is nobody left to kill.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}

/// A duration as `poll` takes it.
pub fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}

fn drain(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(65536).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
