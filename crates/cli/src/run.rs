//! `snapboot run`: executes an image, also where the kernel would not: on a file system mounted noexec, or without mode x.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::{access, statvfs, Access, StatVfsMountFlags};

use crate::arguments::Run;
use crate::failure::{reason, Failure, Result};
use crate::installation::Installation;

/// Becomes the program of the image; returns only when that fails.
pub fn main(run: &Run) -> Result<u8> {
    let (named, arguments) = run.words.split_first().expect("the command line has at least one word");
    let named = Path::new(named);
    // Without a slash, execvp would look in PATH.
    let image = std::path::absolute(named).map_err(|error| Failure::io("run", named, &error))?;
    let metadata = image.metadata().map_err(|error| Failure::io("run", named, &error))?;
    if !metadata.is_file() {
        return Err(Failure::refusal(format!("{} is no regular file, and an image is one.", named.display())));
    }
    // The launcher needs to read an image only; a mode that a copy has lost is no reason not to do what was asked for.
    let mut command = if on_noexec_mount(&image) || access(&image, Access::EXEC_OK).is_err() {
        let mut launcher = Command::new(Installation::find()?.launcher()?);
        launcher.arg(&image);
        launcher
    } else {
        let mut command = Command::new(&image);
        command.arg0(named);
        command
    };
    let error = command.args(arguments).exec();
    Err(Failure::refusal(format!(
        "cannot execute {}: {}. It should be an image that snapboot freeze wrote; snapboot verify {0} says whether it is whole.",
        named.display(),
        reason(&error)
    )))
}

fn on_noexec_mount(path: &Path) -> bool {
    statvfs(path).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::NOEXEC))
}
