//! Starts a runtime under the recorder, both sides: what `snapboot freeze` leaves in the control directory, and the
//! hidden subcommand that becomes the runtime once the watch has begun.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use command_fds::{CommandFdExt, FdMapping};
use failure::{reason, Failure, Result};
use judge::entries::Entries;
use recorder::Recorder;
use rustix::process::{set_parent_process_death_signal, Signal};

use crate::control_dir::ControlDir;

/// The hidden subcommand with which `snapboot freeze` starts a runtime.
pub const SUBCOMMAND: &str = "watched";
/// The file in the control directory.
const FILE: &str = "start";

/// The descriptor over which the recorder gets the listener, above those that the boot finds occupied.
pub const SOCKET: i32 = 100;

/// The runtime's call: program, argv and whole environment.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Start {
    pub program: PathBuf,
    pub argv: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
}

impl Start {
    /// The command that waits for the watch and then makes this call. It leaves the call in `dir`.
    pub fn command(&self, dir: &ControlDir) -> Result<Command> {
        dir.write(FILE, self.entries().to_bytes())?;
        let mut command = Command::new(own_path()?);
        command.arg(SUBCOMMAND).arg(dir.path()).env_clear();
        Ok(command)
    }

    fn entries(&self) -> Entries {
        let mut entries = Entries::default();
        entries.push("program", &self.program);
        self.argv.iter().for_each(|argument| entries.push("argv", argument));
        for (name, value) in &self.environment {
            entries.push("env", [name.as_os_str(), value].join(OsStr::new("=")));
        }
        entries
    }

    fn read(file: &Path) -> io::Result<Start> {
        let entries = Entries::read(file)?;
        let split = |entry: &OsStr| {
            let bytes = entry.as_bytes();
            // The first character belongs to the name even if it is an equal sign.
            let equals = bytes.iter().skip(1).position(|&byte| byte == b'=')? + 1;
            let (name, value) = (&bytes[..equals], &bytes[equals + 1..]);
            Some((OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(value).to_owned()))
        };
        let program = entries.all("program").next().unwrap_or_default().into();
        Ok(Start {
            program,
            argv: entries.all("argv").map(OsStr::to_owned).collect(),
            environment: entries.all("env").filter_map(split).collect(),
        })
    }
}

/// Tests whether a boot can be watched here: has this command print its version under watch.
pub fn trial() -> Result<()> {
    let own = own_path()?;
    let cannot = |error: io::Error| Failure::io("start", &own, &error);
    let (socket, other_end) = UnixStream::pair().map_err(cannot)?;
    let mut command = Command::new(&own);
    command.arg(SUBCOMMAND).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let passed = FdMapping { parent_fd: other_end.into(), child_fd: SOCKET };
    command.fd_mappings(vec![passed]).map_err(|error| cannot(io::Error::other(error.to_string())))?;
    let child = command.spawn();
    // It holds the other end of the socket.
    drop(command);
    let child = child.map_err(cannot)?;
    let recorder = Recorder::start(&socket, None, |_| None, None, true).map_err(|error| not_watched(&error, &own))?;
    let ended = child.wait_with_output().map_err(cannot)?;
    let said = String::from_utf8_lossy(&ended.stderr).trim().trim_start_matches("snapboot: ").to_owned();
    match recorder {
        Some(recorder) => recorder.finish().map(drop).map_err(|error| not_watched(&error, &own)),
        None => Err(Failure::refusal(said)),
    }
}

fn own_path() -> Result<PathBuf> {
    std::env::current_exe()
        .map_err(|error| Failure::failed(format!("cannot find the snapboot command itself: {error}.")))
}

/// The executable that links this crate must call this for the subcommand [`SUBCOMMAND`]: becomes the runtime, and
/// returns only on failure. Without a directory it becomes this command, for [`trial`]. None if the freeze learns of
/// the failure and reports it itself.
pub fn run(dir: Option<&Path>) -> Option<Failure> {
    match dir {
        None => Some(become_this_command()),
        Some(dir) => become_runtime(dir).err(),
    }
}

fn become_this_command() -> Failure {
    let own = match own_path() {
        Ok(own) => own,
        Err(failure) => return failure,
    };
    let argv = ["snapboot".into(), "--version".into()];
    not_watched(&recorder::execute(SOCKET, &own, &argv, &[]), &own)
}

fn become_runtime(dir: &Path) -> Result<()> {
    // Without the recorder each call that the filter stops would fail, and the program would report that with our
    // frames in its traceback. Forked children do not inherit this setting, so no image has it.
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Failure::failed(format!("cannot tie the boot to its freeze: {error}.")))?;
    let file = dir.join(FILE);
    let start = Start::read(&file).map_err(|error| Failure::io("read", &file, &error))?;
    let error = recorder::execute(SOCKET, &start.program, &start.argv, &start.environment);
    let failure = match error.raw_os_error() {
        Some(_) => Failure::io("start", &start.program, &error),
        None => not_watched(&error, &start.program),
    };
    let mut report = Entries::default();
    report.push("error", failure.message);
    let file = dir.join("report");
    std::fs::write(&file, report.to_bytes()).map_err(|error| Failure::io("write", &file, &error))
}

/// Why the boot of `program` cannot be watched.
pub fn not_watched(error: &io::Error, program: &Path) -> Failure {
    Failure::refusal(format!(
        "cannot watch which files {} reads while it boots: {}. Expected that a process may have its children ask before system calls \
         (seccomp user notifications, Linux 5.5) and read their memory. The default profiles of podman and Docker permit both; a profile of \
         one's own, a sandbox, another supervisor of system calls or kernel.yama.ptrace_scope above 1 may not. `snapboot check` says what is \
         in the way; freeze where it is not, or permit the calls seccomp, ioctl on what that returns, and process_vm_readv. Images run without them.",
        program.display(),
        reason(error)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_as_it_was_written() {
        let top = tempfile::tempdir().unwrap();
        let start = Start {
            program: "/usr/bin/python3".into(),
            argv: vec!["python".into(), "".into(), "a=1\nb".into()],
            environment: vec![("A".into(), "x=y".into()), ("EMPTY".into(), "".into()), ("=odd".into(), "1".into())],
        };
        let file = top.path().join("start");
        std::fs::write(&file, start.entries().to_bytes()).unwrap();
        assert_eq!(Start::read(&file).unwrap(), start);
    }
}
