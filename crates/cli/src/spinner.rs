//! Spinner for a person during a long task: a spinner on a terminal, elsewhere a line every now and then.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::{human, render};

/// How long to wait for output that a child's children still hold open.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// Where no spinner can be drawn, nothing is printed for this long, as in a log.
const BETWEEN_LINES: Duration = Duration::from_secs(20);

/// The spinner, and the program's output past it.
pub struct Spinner {
    bar: Option<ProgressBar>,
    lines: Option<Lines>,
    is_quiet: bool,
}

impl Spinner {
    /// A spinner when standard error is a terminal that can draw one, else lines. `is_quiet`: neither these nor notes.
    pub fn start(is_quiet: bool) -> Self {
        let mut spinner = Self::still(is_quiet);
        match &spinner.bar {
            Some(bar) => bar.enable_steady_tick(Duration::from_millis(100)),
            None if is_quiet => {}
            None => spinner.lines = Some(Lines::start(BETWEEN_LINES, render::message)),
        }
        spinner
    }

    /// Like `start`, but turns only when it is called, and takes no time from what is measured meanwhile.
    pub fn still(is_quiet: bool) -> Self {
        let bar = (!is_quiet && render::can_draw(&std::io::stderr())).then(|| {
            let bar = ProgressBar::new_spinner();
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
                bar.set_style(style);
            }
            bar
        });
        Spinner { bar, lines: None, is_quiet }
    }

    /// Shows what is being done.
    pub fn phase(&self, text: impl Into<String>) {
        let text = human::harmless(&text.into());
        match (&self.bar, &self.lines) {
            (Some(bar), _) => bar.set_message(text),
            (None, Some(lines)) => lines.phase(text),
            (None, None) => {}
        }
    }

    /// Prints a line past the spinner, on standard error.
    pub fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| render::message(text)),
            None => render::message(text),
        }
    }

    /// Prints a note, unless messages are turned off.
    pub fn print_note(&self, note: &str) {
        if !self.is_quiet {
            self.line(&format!("snapboot: note: {note}"));
        }
    }

    /// Removes the spinner.
    pub fn stop(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Where the booted program's output goes: to standard error, past the spinner when there is one.
    pub fn output(&self) -> std::io::Result<(Stdio, Stdio, Output)> {
        let (reader, writer) = std::io::pipe()?;
        let (sender, receiver) = channel();
        let bar = self.bar.clone();
        let said = Arc::new(AtomicBool::new(false));
        let has_said = said.clone();
        std::thread::spawn(move || {
            pass_lines(BufReader::new(reader), |line| {
                has_said.store(true, Ordering::Relaxed);
                let show = || std::io::stderr().write_all(line);
                // A terminal that is gone takes no output; the freeze goes on.
                let _ = bar.as_ref().map_or_else(show, |bar| bar.suspend(show));
            });
            let _ = sender.send(());
        });
        Ok((writer.try_clone()?.into(), writer.into(), Output { shown: receiver, said }))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Prints from a thread of its own what is being done, as long as that takes. The thread ends with this.
struct Lines(Sender<String>);

impl Lines {
    fn start(between: Duration, print: impl Fn(&str) + Send + 'static) -> Lines {
        let (sender, receiver) = channel::<String>();
        std::thread::spawn(move || {
            let begun = Instant::now();
            let (mut phase, mut printed) = (String::new(), begun);
            loop {
                match receiver.recv_timeout(between.saturating_sub(printed.elapsed())) {
                    Ok(next) => phase = next,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        printed = Instant::now();
                        if !phase.is_empty() {
                            print(&format!("snapboot: {phase} ({:.0} s so far)", begun.elapsed().as_secs_f64()));
                        }
                    }
                }
            }
        });
        Lines(sender)
    }

    fn phase(&self, text: String) {
        let _ = self.0.send(text);
    }
}

/// The program's output on its way.
pub struct Output {
    shown: Receiver<()>,
    said: Arc<AtomicBool>,
}

impl Output {
    /// Waits until all of it was shown. Call this after the program ended and the command that started it was dropped. Returns whether
    /// there was any output.
    pub fn finish(self) -> bool {
        let _ = self.shown.recv_timeout(LAST_OUTPUT);
        self.said.load(Ordering::Relaxed)
    }
}

/// Shows output line by line: the spinner, redrawn on the last line, would erase an unfinished one.
fn pass_lines(mut reader: impl BufRead, mut show: impl FnMut(&[u8])) {
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        show(&line);
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_what_takes_long() {
        let (sender, output) = channel();
        let lines = Lines::start(Duration::from_millis(1), move |line| {
            let _ = sender.send(line.to_owned());
        });
        lines.phase("training".to_owned());
        let first = output.recv().unwrap();
        assert!(first.starts_with("snapboot: training (") && first.ends_with(" s so far)"), "{first}");
        drop(lines);
        // The thread ends.
        while output.recv().is_ok() {}
    }

    #[test]
    fn output_is_passed_on_in_whole_lines() {
        let mut shown = Vec::new();
        let pieces = std::io::Read::chain(&b"he"[..], &b"llo\nlast"[..]);
        pass_lines(BufReader::new(pieces), |line| shown.push(line.to_vec()));
        assert_eq!(shown, [b"hello\n".to_vec(), b"last\n".to_vec()]);
    }
}
