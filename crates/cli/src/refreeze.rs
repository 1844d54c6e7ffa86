//! `snapboot refreeze`: makes images again, each as it was made, with the words in its info.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use failure::{Failure, Result};
use image_file::info::{Info, Origin};
use image_file::ImageFile;
use inputs::environment::{differences, Difference, ALL, LOCALE};
use store::Folder;

use crate::arguments::Refreeze;
use crate::freeze::Reporting;
use crate::human;
use crate::install;
use crate::run;

/// The option that names the image; the last one counts.
const OUTPUT: &str = "-o";

/// Runs the subcommand; returns the exit status.
pub fn main(arguments: &Refreeze) -> Result<u8> {
    let mut status = 0;
    for image in &arguments.images {
        match refreeze(image, arguments.verbosity.quiet) {
            Ok(0) => {}
            Ok(other) => status = other,
            Err(failure) => status = crate::report_failure(&failure),
        }
    }
    Ok(status)
}

/// Makes one image again; returns the exit status of its freeze.
fn refreeze(image: &Path, is_quiet: bool) -> Result<u8> {
    // Replaces the image itself, and not a link to it.
    let place = image.canonicalize().map_err(|error| Failure::io("read", image, &error))?;
    let opened = ImageFile::open(&place)?;
    // Its words are executed.
    trust::check_open(&place, &opened.file).map_err(|refusal| run::not_to_be_run(&refusal))?;
    let info = Info::read(&opened.tables());
    if let Some(folder) = Folder::containing(&place).filter(|folder| folder.command().is_some()) {
        return install::refreeze(&folder, &place, &Reporting::new(is_quiet, false));
    }
    let Some(origin) = info.origin.filter(|_| !info.typed.is_empty()) else {
        return Err(Failure::refusal(format!(
            "{} does not say how it was made: an older version made it, or its command has bytes that are not UTF-8. Freeze it again, with \
             `snapboot freeze -o {0}` and its options and command.",
            image.display()
        )));
    };
    same_environment(image, &opened, &origin, &info.typed)?;
    if !Path::new(&origin.directory).is_dir() {
        return Err(Failure::refusal(format!(
            "{} was made in {}, where refreeze looks for its command and preloads, and that directory is gone. Freeze it again where \
             they are now.",
            image.display(),
            origin.directory
        )));
    }
    let program = std::env::current_exe().map_err(|error| Failure::io("start", Path::new("/proc/self/exe"), &error))?;
    let mut command = Command::new(&program);
    command.args(["freeze", "--no-remote"]).args(without_output(&origin.options)).args(is_quiet.then_some("--quiet"));
    command.arg(OUTPUT).arg(&place).arg("--").args(&info.typed);
    command.current_dir(&origin.directory).env("PWD", &origin.directory).env("PATH", &origin.search_path);
    let status = command.stdin(Stdio::null()).status().map_err(|error| Failure::io("start", &program, &error))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::FAILED))
}

/// The options without the output path that an earlier `refreeze` has added.
fn without_output(options: &[String]) -> &[String] {
    match options {
        [rest @ .., option, _] if option == OUTPUT => rest,
        _ => options,
    }
}

/// Fails if a variable that the image depends on has changed. PATH will be set again.
fn same_environment(image: &Path, opened: &ImageFile, origin: &Origin, typed: &[String]) -> Result<()> {
    let entry = |name: &[u8], value: &[u8]| [name, b"=", value].concat();
    let entries: Vec<Vec<u8>> = std::env::vars_os()
        .filter(|(name, _)| name != "PATH")
        .map(|(name, value)| entry(name.as_bytes(), value.as_bytes()))
        .chain([entry(b"PATH", origin.search_path.as_bytes())])
        .collect();
    let tables = opened.tables();
    let mut names = Vec::new();
    for difference in differences(&tables, entries.iter().map(Vec::as_slice))? {
        let (name, what) = match difference? {
            Difference::Changed(ALL) => (&b"the environment"[..], "is larger now"),
            Difference::Changed(name) => (name, "has another value now"),
            Difference::Appeared(name) => (name, "was not set"),
            Difference::Gone(name) => (name, "was set"),
        };
        let name = if name == LOCALE { b"the locale of text (LC_ALL, LC_CTYPE, LANG)" } else { name };
        names.push(format!("{} {what}", String::from_utf8_lossy(name)));
    }
    if names.is_empty() {
        return Ok(());
    }
    Err(Failure::refusal(format!(
        "{} cannot be made again as it was made, because the environment differs: {}. Set it as it was then (values are not kept), or \
         freeze again with `snapboot freeze -o {0}{} -- {}`.",
        image.display(),
        names.join(", "),
        without_output(&origin.options).iter().map(|word| format!(" {word}")).collect::<String>(),
        human::command(typed.iter().map(String::as_str))
    )))
}
