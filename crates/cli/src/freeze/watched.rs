//! The two sides of starting a runtime under the recorder: what `snapboot freeze` leaves in the control directory, and the hidden
//! subcommand that becomes the runtime once it is being watched.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::control_dir::ControlDir;
use crate::arguments::Watched;
use crate::entries::Entries;
use crate::failure::{reason, Failure, Result};

/// The file in the control directory.
const FILE: &str = "start";

/// The descriptor over which whoever watches gets the listening end, above those that the boot finds taken.
pub const SOCKET: i32 = 100;

/// The runtime's call: program, argv and environment, all of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Start {
    pub program: PathBuf,
    pub argv: Vec<OsString>,
    pub environment: Vec<(OsString, OsString)>,
}

impl Start {
    /// The command that waits until it is watched, and then makes this call. It leaves the call in `dir`.
    pub fn command(&self, dir: &ControlDir) -> Result<Command> {
        let file = dir.file(FILE);
        std::fs::write(&file, self.entries().to_bytes()).map_err(|error| Failure::io("write", &file, &error))?;
        let own = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("cannot find the snapboot command itself: {error}.")))?;
        let mut command = Command::new(own);
        command.arg("watched").arg(dir.path()).env_clear();
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

/// Runs the hidden subcommand: becomes the runtime; returns only when that fails.
pub fn main(arguments: &Watched) -> Result<u8> {
    let file = arguments.dir.join(FILE);
    let start = Start::read(&file).map_err(|error| Failure::io("read", &file, &error))?;
    let error = recorder::execute(SOCKET, &start.program, &start.argv, &start.environment);
    let failure = match error.raw_os_error() {
        Some(_) => Failure::io("start", &start.program, &error),
        None => not_watched(&error, &start.program),
    };
    // The command shows what is in the report.
    let mut report = Entries::default();
    report.push("error", failure.message);
    let file = arguments.dir.join("report");
    std::fs::write(&file, report.to_bytes()).map_err(|error| Failure::io("write", &file, &error))?;
    Ok(failure.status)
}

/// Why the boot of `program` cannot be watched.
pub fn not_watched(error: &io::Error, program: &Path) -> Failure {
    Failure::refusal(format!(
        "cannot watch which files {} reads while it boots: {}. Expected that a process may have its children ask before system calls \
         (seccomp user notifications, Linux 5.5) and read their memory; a container's profile, another supervisor of system calls or \
         kernel.yama.ptrace_scope above 1 forbids it. Freeze outside of that, or allow it (docker run --cap-add SYS_PTRACE \
         --security-opt seccomp=unconfined, sysctl kernel.yama.ptrace_scope=1). Images run without it.",
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
