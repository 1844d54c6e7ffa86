//! An ordinary start of a command, with the boot archive of its runtime.

use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use failure::{reason, Result};
use installation::{set_up, Installation};
use runtime::search_path;
use store::command::BootArchive;
use store::{Command, Shims};

use crate::render;

/// Exit statuses of a shell for a program that cannot be executed, and for a missing one.
pub const CANNOT_EXECUTE: u8 = 126;
pub const NOT_THERE: u8 = 127;
/// ENOEXEC: neither a program nor a script with a shebang.
const NO_FORMAT: i32 = 8;

/// Executes the program; returns only if that fails. `words`: the program's, its name first. `archive`: the one to switch on. A missing or
/// damaged part of Snapboot keeps no program from starting: then there is no archive.
pub fn start(program: &Path, words: &[OsString], archive: BootArchive) -> Result<u8> {
    let spans = file_of_spans();
    let changed = switch(archive, spans.is_some()).unwrap_or_else(|failure| {
        render::log(&format!("no archive: {failure}"));
        None
    });
    if let (Some(file), Some(_)) = (spans, &changed) {
        record_run(&file);
    }
    let changed = changed.as_ref().map(|(name, value)| (*name, value.as_os_str()));
    let mut error = store::execute(program, words, changed);
    if error.raw_os_error() == Some(NO_FORMAT) && is_text(program) {
        // As execvp(3) and shells do.
        let shell = [Path::new("/bin/sh").as_os_str().to_owned(), program.as_os_str().to_owned()];
        let words = [&shell, words.get(1..).unwrap_or_default()].concat();
        error = store::execute(Path::new("/bin/sh"), &words, changed);
    }
    render::message(&format!("snapboot: cannot execute {}: {}", program.display(), reason(&error)));
    Ok(if error.kind() == io::ErrorKind::NotFound { NOT_THERE } else { CANNOT_EXECUTE })
}

/// The variable that switches an archive on, and its value; None where there is none, or the program could notice. `recording`: whether
/// `snapboot explain` has this start record where its time goes.
fn switch(archive: BootArchive, recording: bool) -> Result<Option<(&'static str, OsString)>> {
    let installation = match archive {
        BootArchive::None => return Ok(None),
        BootArchive::Python | BootArchive::Ruby => Installation::find()?,
    };
    if archive == BootArchive::Ruby {
        installation.check_ruby_archive()?;
        let recording = recording.then(|| installation.ruby_explain().ok()).flatten();
        return Ok(Some(("RUBYOPT", set_up::ruby_option(&installation.ruby_run()?, recording.as_deref())?)));
    }
    installation.check_python_archive()?;
    let recording = recording.then(|| installation.python_explain().ok()).flatten();
    Ok(set_up::python_path(&installation.python_run()?, recording.as_deref()).map(|path| ("PYTHONPATH", path)))
}

/// The file in which `snapboot explain` has this start record where its time goes.
fn file_of_spans() -> Option<OsString> {
    std::env::var_os(explain::FILE)
}

/// Records that this command is done and the program's own start begins. What cannot be recorded, is missed by `explain` alone.
fn record_run(file: &OsStr) {
    if let Ok(mut file) = OpenOptions::new().append(true).create(true).mode(0o600).open(file) {
        let _ = file.write_all(&explain::has_run());
    }
}

/// Whether a file may be a script without a first line that names its interpreter: binary programs have a NUL in their first lines.
fn is_text(program: &Path) -> bool {
    let mut start = Vec::new();
    let read = trust::look::open(program).and_then(|file| file.take(128).read_to_end(&mut start));
    read.is_ok() && !start.contains(&0)
}

/// The archive of a program with those arguments.
pub fn archive_of(program: &Path, words: &[OsString], shims: Option<&Shims>) -> BootArchive {
    let words = [&[program.as_os_str().to_owned()], words.get(1..).unwrap_or_default()].concat();
    Command::split(&words, &search_path(), shims).map_or(BootArchive::None, |line| line.archive)
}
