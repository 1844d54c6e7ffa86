//! How much time starts from an image save: measures the same short start made the ordinary way, with the boot archive alone, and from the
//! image.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::sys;

/// How often each start is made. The shortest counts: other load on the machine only makes it longer.
const TIMES: usize = 3;
/// The argument of such a start, as in training.
const ARGUMENT: &str = "--version";

/// How long a start takes (seconds).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StartTimes {
    /// The ordinary way.
    pub ordinary: f64,
    /// From the image.
    pub thawed: f64,
}

/// The processor time of a start (seconds), which does not depend on the machine's other load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// With the boot archive alone.
    pub archived: f64,
    /// From the image.
    pub thawed: f64,
}

impl StartTimes {
    /// Measures a command without arguments for which training has shown that it accepts `--version`. `words`: of the call that starts it.
    pub fn measure(words: &[OsString], image: &Path) -> Option<StartTimes> {
        let (program, words) = words.split_first()?;
        let program = Path::new(program);
        let mut times = StartTimes { ordinary: f64::INFINITY, thawed: f64::INFINITY };
        for _ in 0..TIMES {
            times.ordinary = times.ordinary.min(time(program, words)?.0.as_secs_f64());
            times.thawed = times.thawed.min(time(image, &[])?.0.as_secs_f64());
        }
        Some(times)
    }

    /// The time that a start saves (seconds).
    pub fn saved(&self) -> f64 {
        (self.ordinary - self.thawed).max(0.0)
    }
}

impl Effort {
    /// Measures such a command. `words`: of the call that starts it with its boot archive alone. The first of these starts fills the
    /// archive, and does not count.
    pub fn measure(words: &[OsString], image: &Path) -> Option<Effort> {
        let (program, words) = words.split_first()?;
        let program = Path::new(program);
        time(program, words)?;
        let mut effort = Effort { archived: f64::INFINITY, thawed: f64::INFINITY };
        // A seeming loss is measured once more.
        for round in 1..=2 * TIMES {
            effort.archived = effort.archived.min(time(program, words)?.1.as_secs_f64());
            effort.thawed = effort.thawed.min(time(image, &[])?.1.as_secs_f64());
            if round == TIMES && !effort.is_in_vain() {
                break;
            }
        }
        Some(effort)
    }

    /// Whether an image is no faster than the archive.
    pub fn is_in_vain(&self) -> bool {
        self.thawed >= self.archived
    }
}

/// The duration of a start, and its processor time.
fn time(program: &Path, words: &[OsString]) -> Option<(Duration, Duration)> {
    let begun = Instant::now();
    let mut command = Command::new(program);
    // Only starts of the user are counted. In an enabled environment, an ordinary start would have the image.
    command.args(words).arg(ARGUMENT).env("SNAPBOOT_STATE", "").env("SNAPBOOT_STORE", "off");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let processor = sys::wait_for(command.spawn().ok()?).ok()?;
    Some((begun.elapsed(), processor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_time_of_a_start_does_not_depend_on_who_else_is_at_work() {
        let (took, worked) = time(Path::new("/bin/sh"), &["-c".into(), "sleep 0.2".into()]).unwrap();
        assert!(took >= Duration::from_millis(200) && worked < took, "{took:?}, {worked:?}");
    }

    #[test]
    fn an_image_that_takes_as_much_as_the_archive_is_in_vain() {
        let effort = |archived, thawed| Effort { archived, thawed }.is_in_vain();
        assert!(effort(0.1, 0.1) && effort(0.1, 0.2) && !effort(0.2, 0.1));
    }
}
