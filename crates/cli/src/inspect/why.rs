//! `snapboot inspect --why`: whether an image would be used here and now, and what differs if not.
//!
//! It compares everything that the launcher compares, without stopping at the first difference, and shows both values. The launcher decides
//! in the end: that of this installation, which runs nothing of the image, goes through everything up to the jump, in a process as it would
//! be started from here, with these limits and descriptors. Conditions on arguments (guards) or streams are left out: `SNAPBOOT_LOG=1 IMAGE
//! ARGS` shows them.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use failure::{Failure, Result};
use image_file::differences::{self, Line, Seen};
use image_file::info::{Decision, Info, Verdict};
use image_file::this_process::ThisProcess;
use image_file::{rotation, ImageFile};
use inputs::on_stale::{self, OnStale};
use installation::Installation;
use runtime::deadline;
use rustix::fs::{access, Access};
use serde::Serialize;

use crate::render;
use crate::spinner::Spinner;

/// The launcher answers within this time; it compares the contents of files whose times differ.
const LIMIT: Duration = Duration::from_secs(60);

/// The answer, in the words of `snapboot list --json`.
#[derive(Serialize)]
struct Answer<'a> {
    path: &'a Path,
    state: &'a str,
    why: &'a [String],
}

/// Prints the answer; returns the exit status: 0 when the image would be used, 1 when not.
pub fn answer(image: &ImageFile, is_json: bool) -> Result<u8> {
    let spinner = Spinner::start(false);
    spinner.phase("comparing the image with what it was made of");
    let mut found = rotation::exceeded_limits(&image.settings()?, &image.path, image.head().image_id());
    let decisions = Info::read(&image.tables()).decisions;
    let lines = differences::lines_for_start(image, &ThisProcess::ITSELF, &Seen::default())?;
    found.extend(lines.into_iter().map(|line| with_decision(line, &decisions)));
    let mut state = if found.is_empty() { "fresh" } else { "stale" };
    if found.is_empty() {
        if let Some(reason) = launchers_reason(image)? {
            state = "not used";
            found.push(reason.to_string());
        }
    }
    spinner.stop();
    if let Some(warning) = unknown_on_stale() {
        render::message(&format!("snapboot: warning: {warning}."));
    }
    if is_json {
        render::print_json(&Answer { path: &image.path, state, why: &found })?;
    } else {
        let lines: String = found.iter().map(|line| format!("  {line}\n")).collect();
        render::print(&format!("{}: {state}\n{lines}", image.path.display()))?;
    }
    Ok(u8::from(!found.is_empty()))
}

/// A difference, and why the image depends on it.
fn with_decision(line: Line, decisions: &[Decision]) -> String {
    let what = line.subject.name();
    match decisions.iter().find(|it| Some(&it.what) == what.as_ref() && it.verdict == Verdict::Input) {
        Some(decision) => format!("{}; {}", line.text, decision.why),
        None => line.text,
    }
}

/// Why the launcher would not use an image.
enum NotUsed<'a> {
    /// The file is not executable.
    NotExecutable(&'a Path),
    /// The launcher gave no answer in time.
    NoAnswer,
    /// It ended like this, and said nothing.
    Ended(ExitStatus),
    /// What it has said.
    Said(String),
}

impl fmt::Display for NotUsed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotUsed::NotExecutable(image) => {
                write!(f, "it is not executable: chmod +x {0}, or snapboot run {0}", image.display())
            }
            NotUsed::NoAnswer => f.write_str("the launcher gave no answer"),
            NotUsed::Ended(status) => write!(f, "the launcher ended with {status}"),
            NotUsed::Said(reason) => f.write_str(reason),
        }
    }
}

/// Why the launcher would not use the image; None if it would.
fn launchers_reason(image: &ImageFile) -> Result<Option<NotUsed<'_>>> {
    if access(&image.path, Access::EXEC_OK).is_err() {
        return Ok(Some(NotUsed::NotExecutable(&image.path)));
    }
    let launcher = Installation::find()?.launcher()?;
    let mut command = Command::new(&launcher);
    command.arg(&image.path).env("SNAPBOOT_REHEARSE", "check");
    let answer = deadline::run(&mut command, LIMIT).map_err(|error| Failure::io("start", &launcher, &error))?;
    let Some(answer) = answer else { return Ok(Some(NotUsed::NoAnswer)) };
    if answer.status.success() {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&answer.stderr);
    let reason = said.trim().trim_start_matches("snapboot: ");
    Ok(Some(match reason {
        "" => NotUsed::Ended(answer.status),
        reason => NotUsed::Said(reason.to_owned()),
    }))
}

/// A value of SNAPBOOT_ON_STALE that images do not know.
pub struct UnknownOnStale(OsString);

impl fmt::Display for UnknownOnStale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={} should be fallback or error; images take it for fallback", on_stale::NAME, self.0.display())
    }
}

/// The value of SNAPBOOT_ON_STALE, if images do not know it.
pub fn unknown_on_stale() -> Option<UnknownOnStale> {
    let value = std::env::var_os(on_stale::NAME)?;
    matches!(OnStale::parse(Some(value.as_bytes())), OnStale::Unknown(_)).then_some(UnknownOnStale(value))
}
