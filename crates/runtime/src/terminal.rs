//! Pseudoterminals for boots and training runs, so that a program that checks its terminal can be frozen without one.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::fs::OFlags;
use rustix::pty::{grantpt, openpt, ptsname, unlockpt, OpenptFlags};
use rustix::termios::{isatty, tcgetwinsize, tcsetwinsize, Winsize};

use crate::listener::Listener;

/// The common default size (columns and rows).
const USUAL: (u16, u16) = (80, 24);

/// Which standard streams of a process are a terminal, and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Input, output and error; at least one of them.
    pub streams: [bool; 3],
    /// Its size (characters).
    pub columns: u16,
    /// Its size (lines).
    pub rows: u16,
}

impl Terminal {
    /// The terminal of this process; None if no standard stream is one.
    pub fn of_this_process() -> Option<Terminal> {
        let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
        let all = [input.as_fd(), output.as_fd(), error.as_fd()];
        let streams = all.map(isatty);
        let size =
            all.iter().zip(streams).find(|(_, is_terminal)| *is_terminal).map(|(stream, _)| tcgetwinsize(stream))?;
        let Winsize { ws_col: columns, ws_row: rows, .. } = size.ok()?;
        Some(Terminal { streams, columns, rows })
    }

    /// A terminal at all standard streams for programs of this process' user, in the size of this process' terminal if
    /// it has one; None if no pseudoterminal is available.
    pub fn for_programs() -> Option<Terminal> {
        let (columns, rows) = Terminal::of_this_process().map_or(USUAL, |own| (own.columns, own.rows));
        Some(Terminal { streams: [true; 3], columns, rows }).filter(Terminal::is_available)
    }

    /// Parses the form of [`fmt::Display`]: `110 80x24`.
    pub fn parse(text: &str) -> Option<Terminal> {
        let (streams, size) = text.split_once(' ')?;
        let (columns, rows) = size.split_once('x')?;
        let streams: Vec<bool> = streams.chars().map(|digit| digit == '1').collect();
        let streams = streams.try_into().ok().filter(|streams: &[bool; 3]| streams.contains(&true))?;
        Some(Terminal { streams, columns: columns.parse().ok()?, rows: rows.parse().ok()? })
    }

    /// Whether a pseudoterminal is available; some containers have none.
    pub fn is_available(&self) -> bool {
        self.open().is_ok()
    }

    /// The terminal size at each standard stream that is a terminal (columns and rows).
    pub fn windows(&self) -> [Option<(u16, u16)>; 3] {
        self.streams.map(|is_terminal| is_terminal.then_some((self.columns, self.rows)))
    }

    /// Gives a command a terminal of its own at these streams. It is the controlling terminal of no process. Returns
    /// the other end, from which the output can be read until the command is dropped and all its processes have ended.
    /// If the command is dropped before the output is read, the last part may be lost.
    pub fn attach(&self, command: &mut Command) -> io::Result<File> {
        let (other_end, terminal) = self.open()?;
        self.attach_to(command, terminal)?;
        Ok(other_end)
    }

    /// The same, with a listener that detects output.
    pub fn attach_listening(&self, command: &mut Command) -> io::Result<Listener> {
        let (other_end, terminal) = self.open()?;
        let end = terminal.try_clone()?;
        self.attach_to(command, terminal)?;
        Ok(Listener::reading(other_end, end))
    }

    fn attach_to(&self, command: &mut Command, terminal: OwnedFd) -> io::Result<()> {
        let [input, output, error] = self.streams;
        if input {
            command.stdin(Stdio::from(terminal.try_clone()?));
        }
        if output {
            command.stdout(Stdio::from(terminal.try_clone()?));
        }
        if error {
            command.stderr(Stdio::from(terminal));
        }
        Ok(())
    }

    /// The same for a command whose output nobody reads.
    pub fn attach_unread(&self, command: &mut Command) -> io::Result<()> {
        let mut other_end = self.attach(command)?;
        // Ends with an error (EIO) once no process has the terminal open.
        thread::spawn(move || io::copy(&mut other_end, &mut io::sink()));
        Ok(())
    }

    fn open(&self) -> io::Result<(File, OwnedFd)> {
        let other_end = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&other_end)?;
        unlockpt(&other_end)?;
        let name = ptsname(&other_end, Vec::new())?;
        let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
        let flags = OFlags::NOCTTY.bits() as i32;
        let terminal = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?;
        tcsetwinsize(&terminal, Winsize { ws_col: self.columns, ws_row: self.rows, ws_xpixel: 0, ws_ypixel: 0 })?;
        Ok((other_end.into(), terminal.into()))
    }
}

impl fmt::Display for Terminal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let streams: String = self.streams.iter().map(|&is_terminal| if is_terminal { '1' } else { '0' }).collect();
        write!(formatter, "{streams} {}x{}", self.columns, self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn a_command_is_at_the_terminal_where_it_was_to_be() {
        let terminal = Terminal { streams: [true, true, false], columns: 91, rows: 17 };
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "for n in 0 1 2; do test -t $n && echo $n; done; stty size; echo end"]);
        command.stderr(Stdio::null());
        let mut other_end = terminal.attach(&mut command).unwrap();
        command.status().unwrap();
        let mut said = Vec::new();
        // The output arrives in pieces.
        while !said.ends_with(b"end\r\n") {
            let mut piece = [0; 100];
            let count = other_end.read(&mut piece).unwrap();
            said.extend_from_slice(&piece[..count]);
        }
        assert_eq!(String::from_utf8_lossy(&said), "0\r\n1\r\n17 91\r\nend\r\n");
    }

    #[test]
    fn one_is_written_down_and_read_again() {
        let terminal = Terminal { streams: [false, true, true], columns: 80, rows: 24 };
        assert_eq!(terminal.to_string(), "011 80x24");
        assert_eq!(Terminal::parse("011 80x24"), Some(terminal));
        for wrong in ["", "000 80x24", "01 80x24", "011 80", "011 x24"] {
            assert_eq!(Terminal::parse(wrong), None, "{wrong}");
        }
    }
}
