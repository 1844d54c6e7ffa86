//! The boot that goes into the image.

use std::path::Path;

use failure::Failure;
use judge::findings::{add_origins, Finding};

use super::boot::{BootRequest, Ended, Watch};
use super::leftovers::{self, Temporary};
use super::{report, Freeze};
use crate::boot::Boot;
use crate::outcome::{Result, Stop};
use crate::progress::Step;

/// Boots once, and once more if something was left behind, to find out whether every start creates its own; then to
/// find out where in the program the findings come from. Also returns whether the user has seen the program print
/// something.
pub fn boot(boot: &BootRequest<'_>) -> Result<(Boot, bool)> {
    let Freeze { dir, interrupt, progress, .. } = boot.freeze;
    let first = boot.run(&Watch::Inputs)?;
    let was_seen = first.outcome.as_ref().is_ok_and(|report| report.said);
    let temporary = Temporary::new(boot.environment);
    let mut left = leftovers::find(&first.accesses, dir);
    let mut made = left.clone();
    let mut findings = match &first.outcome {
        Ok(_) if left.is_empty() => return Ok((first.written()?, was_seen)),
        Ok(_) if left.iter().any(|it| temporary.is_for_one_start(it)) => Vec::new(),
        Ok(_) => {
            progress.step(&Step::BootForFiles);
            let again = boot.run(&Watch::InputsAgain);
            interrupt.check()?;
            match again {
                Ok(again) => {
                    left = leftovers::find(&again.accesses, dir);
                    made.extend_from_slice(&left);
                    if again.outcome.is_ok() && left.is_empty() {
                        return Ok((again.written()?, was_seen));
                    }
                    again.outcome.err().unwrap_or_default()
                }
                // It does not start while the first one's still exists.
                Err(_) => Vec::new(),
            }
        }
        Err(findings) => {
            left.retain(|it| temporary.is_for_one_start(it));
            findings.clone()
        }
    };
    if !left.is_empty() || findings.iter().any(Finding::has_origin) {
        progress.step(&Step::BootForOrigins);
        let folders = left.iter().filter_map(|it| it.path.parent()).map(Path::to_owned).collect();
        leftovers::clean_up(&left, &temporary);
        // Whatever the result of this boot is, the findings stand.
        let last = boot.run(&Watch::Origins(folders));
        interrupt.check()?;
        add_origins(&mut findings, &report::origins(dir));
        let others = last.map(|Ended { accesses, .. }| leftovers::find(&accesses, dir)).unwrap_or_default();
        findings.extend(leftovers::findings(&left, &others, dir));
        leftovers::clean_up(&others, &temporary);
        made.extend(others);
    }
    if let Some(message) = leftovers::still_there(made, &findings) {
        progress.message(&message.to_string());
    }
    Err(Stop::Refused(findings))
}

/// Fails if a boot has printed something before the place that a recipe names: nobody has asked for starts that leave it out. `was_seen`:
/// whether it has.
pub fn check_quiet(freeze: &Freeze<'_>, was_seen: bool) -> Result<()> {
    let places = &freeze.recipe.at;
    if !was_seen || places.is_empty() {
        return Ok(());
    }
    let places = places.join(" or ");
    Err(Stop::Failed(Failure::failed(format!(
        "the program prints something before it calls {places}, which its thaws would not print."
    ))))
}
