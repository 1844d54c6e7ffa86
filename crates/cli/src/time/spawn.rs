//! Starts a command and measures its time.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use failure::{Failure, Result};
use image::StartsHead;
use nix::sys::resource::{getrusage, UsageWho};
use runtime::search_path;
use runtime::{locate, resolve, Shim};

use super::counter::Counter;
use crate::human;

/// The maximum length of a failed command's standard error that is shown.
const SHOWN: usize = 2000;

/// A command to be started again and again.
pub struct Timed {
    words: Vec<OsString>,
    program: PathBuf,
    /// The shim in front of it, whose time is in every figure.
    pub shim: Option<Shim>,
    /// Counts its starts, if it is an image.
    pub counter: Option<Counter>,
}

/// One start.
pub struct Run {
    /// How it ended.
    pub status: ExitStatus,
    /// From just before the start to just after the end, on CLOCK_MONOTONIC (ms).
    pub wall: f64,
    /// User and system time of it and its children (ms).
    pub cpu: f64,
}

impl Timed {
    /// Looks the program up once, so that no search is timed.
    pub fn new(words: &[OsString]) -> Result<Self> {
        let search_path = search_path();
        let program = locate(&words[0], &search_path)?;
        // If it cannot be followed, it is no shim.
        let shim = resolve(words, &search_path).ok().and_then(|resolved| resolved.shim);
        let counter = Counter::for_program(&program);
        Ok(Timed { words: words.to_vec(), program, shim, counter })
    }

    /// The words of the command.
    pub fn words(&self) -> Vec<String> {
        self.words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// The command on one line.
    pub fn shown(&self) -> String {
        human::command(self.words().iter().map(String::as_str))
    }

    /// Starts it (with posix_spawn, which shares this process' memory until the exec) and waits for its end. Input and output
    /// are /dev/null.
    pub fn run(&self) -> Result<Run> {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let before = children_cpu();
        let begun = Instant::now();
        let mut child = command.spawn().map_err(|error| Failure::io("start", &self.program, &error))?;
        let status = child.wait().map_err(|error| Failure::io("wait for", &self.program, &error))?;
        let wall = begun.elapsed().as_secs_f64() * 1000.0;
        Ok(Run { status, wall, cpu: children_cpu() - before })
    }

    /// Starts it once more to see its messages, and puts them into words.
    pub fn why_it_failed(&self, status: ExitStatus) -> String {
        let output = self.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output();
        let said = output.map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned()).unwrap_or_default();
        let cut = said.char_indices().rev().nth(SHOWN).map_or(0, |(start, _)| start);
        let said = if said.is_empty() {
            "It wrote nothing to its standard error.".to_owned()
        } else {
            format!("It wrote:\n{}", &said[cut..])
        };
        format!(
            "{} should end with exit status 0, but ended with {status}, so its time would mean little. Fix the command, or pass \
             --allow-failure. {said}",
            self.shown()
        )
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg0(&self.words[0]).args(&self.words[1..]);
        if let Some(counter) = &self.counter {
            command.env(StartsHead::VARIABLE, counter.folder());
        }
        command
    }
}

/// Processor time of all children that have ended (ms).
fn children_cpu() -> f64 {
    let milliseconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 * 1000.0 + time.tv_usec() as f64 / 1000.0;
    getrusage(UsageWho::RUSAGE_CHILDREN)
        .map_or(0.0, |usage| milliseconds(usage.user_time()) + milliseconds(usage.system_time()))
}
