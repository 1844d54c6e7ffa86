//! How much time starts of an image save: the same short start, made the ordinary way and from the image.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// So often each is made. The shortest counts: whatever else the machine does makes it longer.
const TIMES: usize = 3;
/// What such a start is made with: as in training.
const ARGUMENT: &str = "--version";

/// How long a start takes (seconds).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartTimes {
    /// The ordinary way.
    pub ordinary: f64,
    /// From the image.
    pub thawed: f64,
}

impl StartTimes {
    /// Measures a command without arguments, of which training has shown that it takes `--version` for what it says.
    pub fn measure(program: &Path, image: &Path) -> Option<StartTimes> {
        let mut times = StartTimes { ordinary: f64::INFINITY, thawed: f64::INFINITY };
        for _ in 0..TIMES {
            times.ordinary = times.ordinary.min(time(program)?.as_secs_f64());
            times.thawed = times.thawed.min(time(image)?.as_secs_f64());
        }
        Some(times)
    }

    /// What a start saves (seconds).
    pub fn saved(&self) -> f64 {
        (self.ordinary - self.thawed).max(0.0)
    }
}

fn time(program: &Path) -> Option<Duration> {
    let begun = Instant::now();
    let mut command = Command::new(program);
    // What is counted are the starts of the user.
    command.arg(ARGUMENT).env("SNAPBOOT_STATE", "").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().ok().map(|_| begun.elapsed())
}
