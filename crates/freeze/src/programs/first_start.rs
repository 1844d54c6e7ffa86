//! The first start of a finished image, before it is renamed into place: with the environment and the directory of the
//! freeze, through all checks and the jump, to the end of an empty main part. It catches an image that would never
//! thaw, which nobody would notice otherwise.
//!
//! As in a rehearsal, nothing of the program runs: no hooks, and no exit handlers either.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use failure::{Failure, Result};
use image_file::{differences, on_noexec_mount, ImageFile};

use super::rehearse::ways_to_start;
use crate::boot::StartKind;

/// Time limit of the first start, which may have to compare the contents of all inputs.
const LIMIT: Duration = Duration::from_secs(60);

/// Makes a start of this kind, and returns how long it took. `said` is a file for its output.
///
/// Fails with all reasons why it did not thaw.
pub fn first_start(image: &Path, said: &Path, kind: &StartKind) -> Result<Duration> {
    let cannot = |error| Failure::io("write", said, &error);
    for mut way in ways_to_start(image) {
        way.command.env("SNAPBOOT_REHEARSE", "1").stderr(File::create(said).map_err(cannot)?);
        for (name, value) in &kind.variables {
            match value {
                Some(value) => way.command.env(name, value),
                None => way.command.env_remove(name),
            };
        }
        if let Some(((), took)) = way.run(LIMIT, kind.terminal.as_ref(), |_| ()) {
            return Ok(took);
        }
    }
    if on_noexec_mount(image) {
        return Err(Failure::refusal(
            "the image was made, but not kept: its directory is on a file system that is mounted noexec, so nothing can be started \
             there. Choose another directory with -o.",
        ));
    }
    let said = fs::read(said).unwrap_or_default();
    let mut reasons = differences::all_lines(&ImageFile::open(image)?)?;
    if reasons.is_empty() {
        reasons.push(
            last_word(&said).unwrap_or_else(|| "it ended, or took longer than a minute, and gave no reason".to_owned()),
        );
    }
    Err(Failure::refusal(format!(
        "the image was made, but it does not thaw even here and now, so it was not kept:\n  {}\nMost likely the program reads something \
         while it boots that is never the same twice. Read it after the freeze point (see snapboot.defer), or take the module that reads \
         it out of --preload.",
        reasons.join("\n  ")
    )))
}

/// The reason from the launcher or the front end.
fn last_word(said: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(said);
    let line = text.lines().rfind(|line| !line.trim().is_empty())?;
    let reason = line.trim_start_matches("snapboot: ").trim_start_matches("the rehearsal of a new image failed: ");
    Some(reason.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_told_without_what_goes_before_it() {
        let said = b"a warning\nsnapboot: the rehearsal of a new image failed: stale: this file has changed: /a\n";
        assert_eq!(last_word(said).as_deref(), Some("stale: this file has changed: /a"));
        assert_eq!(last_word(b"\n"), None);
    }
}
