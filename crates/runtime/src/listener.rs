//! Detects whether a program writes to an output that nobody reads.

use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{channel, Receiver};
use std::thread;
use std::time::Duration;

/// A text that no program writes.
const END: &[u8] = b"\0the end\0";
/// How long the last output may take to arrive after the program has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Reads all output of a program.
pub struct Listener {
    /// The end that the program writes to.
    end: File,
    /// How many bytes came before [`END`].
    heard: Receiver<usize>,
}

impl Listener {
    /// A listener on a pipe, and the pipe's writing end.
    pub fn on_pipe() -> io::Result<(Listener, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        Ok((Listener::reading(File::from(OwnedFd::from(reader)), OwnedFd::from(writer.try_clone()?)), writer))
    }

    /// Reads `other_end`, which receives what is written to `end`.
    pub(crate) fn reading(mut other_end: File, end: OwnedFd) -> Listener {
        let (sender, heard) = channel();
        // The thread ends with the listener: only the listener writes END, and without END the pipe or terminal is
        // closed (EIO from a terminal).
        thread::spawn(move || {
            let (mut count, mut last, mut piece) = (0, Vec::new(), [0; 4096]);
            while let Ok(size @ 1..) = other_end.read(&mut piece) {
                count += size;
                last.extend_from_slice(&piece[..size]);
                last.drain(..last.len().saturating_sub(END.len()));
                if last == END {
                    let _ = sender.send(count - END.len());
                }
            }
        });
        Listener { end: end.into(), heard }
    }

    /// Whether the program has written anything; true if that is unknown. Call it after the program has ended. Output
    /// of processes that it left running may come later and is not detected.
    pub fn has_heard(self) -> bool {
        // A terminal that the program has stopped accepts no output.
        let Listener { mut end, heard } = self;
        thread::spawn(move || end.write_all(END));
        heard.recv_timeout(LAST_WORDS) != Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn hears_output_of(script: &str) -> bool {
        let (listener, pipe) = Listener::on_pipe().unwrap();
        Command::new("/bin/sh").args(["-c", script]).stdout(pipe).status().unwrap();
        listener.has_heard()
    }

    #[test]
    fn what_is_said_is_heard() {
        assert!(hears_output_of("echo word") && hears_output_of("head -c 70000 /dev/zero") && !hears_output_of(":"));
    }

    #[test]
    fn nobody_waits_for_what_was_left_running() {
        assert!(!hears_output_of("sleep 60 &"));
    }
}
