//! Processes with a time limit: probes, and the program that is booted.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::process::{kill_process_group, pidfd_open, Pid, PidfdFlags, Signal};

use crate::terminal::Terminal;

/// How much of each output is kept: as much as a pipe holds.
const MAX_OUTPUT: usize = 65536;
/// How often a traced process is checked.
const TICK: Duration = Duration::from_millis(1);

/// The output and the end of a process.
pub struct ProcessOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// What it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// What it wrote to its standard error.
    pub stderr: Vec<u8>,
}

/// A time limit for a process. While others keep that process or this one from the processors, no time passes: on a busy machine
/// it has as long as on an idle one.
pub struct Deadline {
    process: Pid,
    begun: Instant,
    limit: Duration,
    /// How long the threads of this process had waited for a processor by then.
    waited: Duration,
}

impl Deadline {
    /// The limit of a child, from now on.
    pub fn new(child: &Child, limit: Duration) -> Self {
        Deadline { process: Pid::from_child(child), begun: Instant::now(), limit, waited: own_wait() }
    }

    /// The time that is left at least, zero once there is none.
    pub fn left(&self) -> Duration {
        let left = self.limit.saturating_sub(self.begun.elapsed());
        if !left.is_zero() {
            return left; // most processes end in time, and need no look at what the kernel has counted
        }
        let of_child = processor_wait(&Path::new("/proc").join(self.process.to_string()));
        let waited = of_child + own_wait().saturating_sub(self.waited);
        (self.limit + waited).saturating_sub(self.begun.elapsed())
    }
}

/// How long the threads of this process have waited for a processor: the recorder is one, and a boot waits for its answers.
fn own_wait() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    threads.filter_map(Result::ok).map(|thread| processor_wait(&thread.path())).sum()
}

/// How long a thread has waited for a processor: the second number of its `schedstat`, in nanoseconds
/// (Documentation/scheduler/sched-stats.rst). Zero where the kernel does not tell.
fn processor_wait(thread: &Path) -> Duration {
    let text = std::fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
    let waited = text.split(' ').nth(1).and_then(|number| number.parse().ok());
    Duration::from_nanos(waited.unwrap_or_default())
}

/// Runs a command without input and collects its output (at most 64 kB of each kind).
///
/// Returns Ok(None) if it did not end within `limit`; then it and its children are killed. Does not wait for processes
/// that it leaves behind, even if they hold its output.
pub fn run(command: &mut Command, limit: Duration) -> io::Result<Option<ProcessOutput>> {
    run_until(command, limit, None::<&UnixStream>)
}

/// The same, but also kills it when `wake` becomes readable.
pub fn run_until(command: &mut Command, limit: Duration, wake: Option<impl AsFd>) -> io::Result<Option<ProcessOutput>> {
    run_watched(command, limit, wake, None, None)
}

/// The same for a process that is traced, or runs at a terminal. Calls `watch` repeatedly until the process has ended;
/// `watch` continues it after a stop. Its output to the terminal is appended to its standard output.
pub fn run_watched(
    command: &mut Command,
    limit: Duration,
    wake: Option<impl AsFd>,
    mut watch: Option<&mut dyn FnMut(&Child)>,
    terminal: Option<&Terminal>,
) -> io::Result<Option<ProcessOutput>> {
    use std::os::unix::process::CommandExt;
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let other_end = terminal.map(|terminal| terminal.attach(command)).transpose()?;
    // Keep the terminal open while reading: the kernel may drop output written right before the last close.
    let mut child = command.spawn()?;
    let mut stdout = Collected::new(child.stdout.take())?;
    let mut stderr = Collected::new(child.stderr.take())?;
    let mut shown = Collected::new(other_end)?;
    let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
    let deadline = Deadline::new(&child, limit);
    loop {
        let left = deadline.left();
        let nap = if let Some(watch) = &mut watch {
            watch(&child);
            left.min(TICK)
        } else {
            left
        };
        let mut waited = vec![PollFd::new(&ended, PollFlags::IN)];
        waited.extend(wake.iter().map(|wake| PollFd::new(wake, PollFlags::IN)));
        waited.extend(stdout.pipe.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        waited.extend(stderr.pipe.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        waited.extend(shown.pipe.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN)));
        let has_ended = match poll(&mut waited, Some(&timespec(nap))) {
            Ok(0) if left.is_zero() => return kill(child, &ended, watch).map(|()| None),
            Ok(_) if wake.is_some() && !waited[1].revents().is_empty() => {
                return kill(child, &ended, watch).map(|()| None);
            }
            Ok(_) => !waited[0].revents().is_empty(),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        // Collect once more: the last output is in the pipes by now.
        stdout.collect()?;
        stderr.collect()?;
        shown.collect()?;
        if has_ended {
            shown.collect_rest()?;
            stdout.bytes.append(&mut shown.bytes);
            return Ok(Some(ProcessOutput { status: child.wait()?, stdout: stdout.bytes, stderr: stderr.bytes }));
        }
    }
}

/// Kills a child and its group like [`kill_group`]. A traced child may stop at its end and must be continued.
fn kill(mut child: Child, ended: &OwnedFd, watch: Option<&mut dyn FnMut(&Child)>) -> io::Result<()> {
    if let Some(watch) = watch {
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        while poll(&mut [PollFd::new(ended, PollFlags::IN)], Some(&timespec(TICK)))? == 0 {
            watch(&child);
        }
    }
    kill_group(&mut child);
    Ok(())
}

/// One kind of output of a child, read as it arrives.
struct Collected<P> {
    /// None once all writers have closed it.
    pipe: Option<P>,
    bytes: Vec<u8>,
}

impl<P: Read + AsFd> Collected<P> {
    fn new(pipe: Option<P>) -> io::Result<Self> {
        if let Some(pipe) = &pipe {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(Collected { pipe, bytes: Vec::new() })
    }

    /// Reads what is in the pipe, at most as much as a pipe holds, so a child that keeps writing does not block us.
    /// Drops the excess.
    fn collect(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let mut buffer = [0; MAX_OUTPUT];
        match pipe.read(&mut buffer) {
            Ok(0) => self.pipe = None,
            Ok(count) => self.bytes.extend(&buffer[..count.min(MAX_OUTPUT - self.bytes.len())]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

impl<P: Read + AsFd> Collected<P> {
    /// Reads everything. A read from a terminal returns only a part, but waits for pending output.
    fn collect_rest(&mut self) -> io::Result<()> {
        while let before @ ..MAX_OUTPUT = self.bytes.len() {
            self.collect()?;
            if self.bytes.len() == before {
                break;
            }
        }
        Ok(())
    }
}

/// Kills a child that leads a process group, together with the group, and reaps it.
pub fn kill_group(child: &mut Child) {
    // Both fail only if no process is left.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    let _ = child.wait();
}

/// A duration in the form that `poll` takes.
pub fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: i64::from(duration.subsec_nanos()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn who_writes_more_than_a_pipe_holds_is_read_to_the_end() {
        let script = "head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; exit 3";
        let answer = run(&mut shell(script), LIMIT).unwrap().expect("it ends");
        assert_eq!((answer.status.code(), answer.stdout.len(), answer.stderr.len()), (Some(3), MAX_OUTPUT, MAX_OUTPUT));
    }

    #[test]
    fn who_is_left_behind_holding_the_pipe_is_not_waited_for() {
        let answer = run(&mut shell("sleep 300 & echo $!; echo last >&2"), LIMIT).unwrap().expect("it ends");
        let _ = Command::new("kill").arg(String::from_utf8_lossy(&answer.stdout).trim()).status();
        assert_eq!(answer.stderr, b"last\n");
    }

    #[test]
    fn what_is_written_to_a_terminal_is_all_there() {
        let terminal = Terminal { streams: [true; 3], columns: 80, rows: 24 };
        for _ in 0..100 {
            let mut command = shell("head -c 9000 /dev/zero | tr '\\0' 'x'; echo; test -t 0 && echo last >&2");
            let answer =
                run_watched(&mut command, LIMIT, None::<&UnixStream>, None, Some(&terminal)).unwrap().expect("it ends");
            let expected = "x".repeat(9000) + "\r\nlast\r\n";
            assert!(answer.stdout == expected.as_bytes(), "{}", String::from_utf8_lossy(&answer.stdout));
        }
    }

    #[test]
    fn who_waits_for_a_processor_has_more_time() {
        let limit = Duration::from_millis(200);
        let busy = std::thread::available_parallelism().unwrap().get() * 4;
        let mut others: Vec<Child> =
            (0..busy).map(|_| shell("while :; do :; done").process_group(0).spawn().unwrap()).collect();
        let mut idle = shell("sleep 300").process_group(0).spawn().unwrap();
        let mut worker = shell("while :; do :; done").process_group(0).spawn().unwrap();
        let deadlines = [&idle, &worker].map(|child| Deadline::new(child, limit));
        let [of_idle, of_worker] = &deadlines;
        while !of_idle.left().is_zero() {
            std::thread::sleep(TICK);
        }
        let left = of_worker.left();
        others.iter_mut().chain([&mut idle, &mut worker]).for_each(kill_group);
        assert!(!left.is_zero(), "it has had a fifth of the time");
    }

    #[test]
    fn who_does_not_end_in_time_is_killed() {
        let answer = run(&mut shell("echo said; sleep 300"), Duration::from_millis(100)).unwrap();
        assert!(answer.is_none());
    }
}
