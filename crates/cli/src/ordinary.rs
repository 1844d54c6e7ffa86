//! An ordinary start of a command, with the boot archive of its runtime.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use failure::{reason, Result};
use installation::{set_up, Installation};
use runtime::search_path;
use store::command::BootArchive;
use store::{Command, Shims};

use crate::render;

/// Exit statuses of a shell for a program that cannot be executed, and for one that is not there.
pub const CANNOT_EXECUTE: u8 = 126;
pub const NOT_THERE: u8 = 127;
/// ENOEXEC: neither a program nor a script with a shebang.
const NO_FORMAT: i32 = 8;

/// Becomes the program; returns only when that fails. `words`: the program's, its name first. `archive`: the one to switch on.
pub fn start(program: &Path, words: &[OsString], archive: BootArchive) -> Result<u8> {
    let changed = match archive {
        BootArchive::Ruby => Some(("RUBYOPT", set_up::ruby_option(&Installation::find()?.ruby_run()?)?)),
        BootArchive::Python => {
            set_up::python_path(&Installation::find()?.python_run()?).map(|path| ("PYTHONPATH", path))
        }
        BootArchive::None => None,
    };
    let changed = changed.as_ref().map(|(name, value)| (*name, value.as_os_str()));
    let mut error = store::execute(program, words, changed);
    if error.raw_os_error() == Some(NO_FORMAT) && is_text(program) {
        // As execvp(3) and shells do.
        let shell = [Path::new("/bin/sh").as_os_str().to_owned(), program.as_os_str().to_owned()];
        let words = [&shell, words.get(1..).unwrap_or_default()].concat();
        error = store::execute(Path::new("/bin/sh"), &words, changed);
    }
    render::tell(&format!("snapboot: cannot execute {}: {}", program.display(), reason(&error)));
    Ok(if error.kind() == io::ErrorKind::NotFound { NOT_THERE } else { CANNOT_EXECUTE })
}

/// Whether a file may be a script without a first line that names its interpreter: nobody else's program has a NUL in its first lines.
fn is_text(program: &Path) -> bool {
    let mut start = Vec::new();
    let read = File::open(program).and_then(|file| file.take(128).read_to_end(&mut start));
    read.is_ok() && !start.contains(&0)
}

/// The archive of a program with those arguments.
pub fn archive_of(program: &Path, words: &[OsString], shims: Option<&Shims>) -> BootArchive {
    let words = [&[program.as_os_str().to_owned()], words.get(1..).unwrap_or_default()].concat();
    Command::split(&words, &search_path(), shims).map_or(BootArchive::None, |line| line.archive)
}
