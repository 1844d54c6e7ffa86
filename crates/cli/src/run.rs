//! `snapboot run`: executes an image, also where the kernel would not (on a file system mounted noexec, or without mode x), or a
//! Ruby command with its boot archive switched on.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use failure::{reason, Failure, Result};
use image_file::kind::Kind;
use installation::Installation;
use runtime::search_path;
use runtime::{leads_to_ruby, locate};
use rustix::fs::{access, statvfs, Access, StatVfsMountFlags};

use crate::arguments::Run;

/// Becomes the program; returns only when that fails.
pub fn main(run: &Run) -> Result<u8> {
    let (named, arguments) = run.words.split_first().expect("the command line has at least one word");
    if !Kind::is_image(Path::new(named)) && leads_to_ruby(&run.words) {
        return run_ruby(named, arguments);
    }
    run_image(Path::new(named), arguments)
}

/// Fails for what is no image. Of what cannot be read nothing is known.
fn check(named: &Path) -> Result<()> {
    let bare = named.as_os_str();
    let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
    let found = match Kind::of(named) {
        Ok(Kind::Image) => return Ok(()),
        Ok(kind) => kind.words().to_owned(),
        Err(error) if is_missing(&error) => match locate(bare, &search_path()) {
            Ok(command) if !bare.as_bytes().contains(&b'/') => format!("the command {}", command.display()),
            _ => "no such file".to_owned(),
        },
        Err(_) => return Ok(()),
    };
    let image = Path::new(named.file_name().unwrap_or(bare)).with_extension("img");
    Err(Failure::refusal(format!(
        "cannot run {}: expected an image that snapboot freeze wrote, or a Ruby command, and found {found}. To start a program \
         from an image, freeze it first (snapboot freeze -o {1} -- COMMAND), then run that image (./{1}).",
        named.display(),
        image.display()
    )))
}

fn run_image(named: &Path, arguments: &[OsString]) -> Result<u8> {
    // Without a slash, execvp would look in PATH.
    let image = std::path::absolute(named).map_err(|error| Failure::io("run", named, &error))?;
    if image.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Failure::refusal(format!("{} is no regular file, and an image is one.", named.display())));
    }
    check(named)?;
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

/// Starts a Ruby command as it would start by itself, but for RUBYOPT.
fn run_ruby(named: &OsStr, arguments: &[OsString]) -> Result<u8> {
    let program = locate(named, &search_path())?;
    let set_up = Installation::find()?.ruby_run()?;
    if set_up.as_os_str().as_bytes().iter().any(u8::is_ascii_whitespace) {
        return Err(Failure::refusal(format!(
            "RUBYOPT cannot name {}, because of the blank in it. Install Snapboot in a directory without blanks in its path, or \
             put require \"snapboot/setup\" into the program.",
            set_up.display()
        )));
    }
    // It takes this out again, and leaves what there was before.
    let mut option = OsString::from("-r");
    option.push(&set_up);
    if let Some(before) = std::env::var_os("RUBYOPT") {
        option.push(" ");
        option.push(before);
    }
    let error = Command::new(&program).arg0(named).args(arguments).env("RUBYOPT", option).exec();
    Err(Failure::refusal(format!("cannot execute {}: {}.", program.display(), reason(&error))))
}

/// Whether nothing on the file system can be executed.
pub fn on_noexec_mount(path: &Path) -> bool {
    statvfs(path).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::NOEXEC))
}
