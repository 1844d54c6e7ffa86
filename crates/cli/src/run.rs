//! `snapboot run`: starts an image, or a command from its image of the store; without one, starts it the ordinary way and asks for an
//! image.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use archive::Application;
use failure::{Failure, Result};
use freeze::Content;
use image_file::kind::Kind;
use image_file::on_noexec_mount;
use installation::Installation;
use runtime::search_path;
use rustix::fs::{access, Access};
use store::command::BootArchive;
use store::fallback::{Next, Start};
use store::tools::{self, Dormant};
use store::{background, eviction, fit, Command, Folder, Shims, Store};

use crate::render::log;
use crate::{ordinary, render};

/// The option by which a start of an enabled environment names its file of starts (python/snapboot/archive/images.py).
pub const STARTS: &str = "--starts";

/// Executes the program; returns only if that fails. `words`: the image or the command, and its arguments; at least one. `limit`: of the
/// store (bytes). `no_freeze`: do not use the store. `starts`: beside this file, a link to the program's folder of the store is wanted.
pub fn main(words: &[OsString], limit: u64, no_freeze: bool, starts: Option<&Path>) -> Result<u8> {
    let named = Path::new(&words[0]);
    // A word without a slash is looked up in PATH alone, as a shell does: files here may be anybody's.
    if is_path(named) && Kind::is_image(named) {
        return run_image(named, words, trust::check_open);
    }
    let store = Store::find();
    let shims = store.as_ref().map(Shims::in_store);
    let Ok(line) = Command::split(words, &search_path(), shims.as_ref()) else { return Ok(not_runnable(named)) };
    // Installed, and so in front of PATH.
    if Kind::is_image(&line.program) {
        // As a shell would start it, whoever put it there: PATH is the user's choice.
        return run_image(&line.program, words, |_, _| Ok(()));
    }
    // Who says --no-freeze asks for the archive.
    if !no_freeze && std::env::var_os("SNAPBOOT").is_some_and(|value| value == "off") {
        return ordinary::start(&line.program, words, BootArchive::None);
    }
    let Some((command, arguments)) = line.command else {
        if !no_freeze && !line.is_interpreter {
            log("this is no Python or Ruby command that could have an image; starting the ordinary way");
        }
        return ordinary::start(&line.program, words, line.archive);
    };
    let mut archive = line.archive;
    match store {
        _ if no_freeze => {}
        None => log("there is no store (SNAPBOOT_STORE, HOME); starting the ordinary way"),
        Some(store) => {
            let folder = store.folder(&command);
            if let Some(starts) = starts {
                folder.link_from(&starts.with_extension("folder"));
            }
            let is_first = !folder.path().exists();
            let seen = folder.images().len();
            if let Some((image, file)) = image_for(&folder) {
                store::learn::before_start(&folder, &image, limit);
                execute_with(&image, &file, &words[0], &arguments);
            } else {
                if let Some(said) = store::remote::last_said(&folder) {
                    log(&format!("the remote store, when an image was last wanted ({}): {}", said.about, said.text));
                }
                let why = background::ask_for_new(&folder, &command, seen, limit);
                if let Some((image, file)) = image_for(&folder.with(Content::Libraries)) {
                    execute_with(&image, &file, &words[0], &arguments);
                } else if let Some(why) = why {
                    log(&format!(
                        "there is no image for this start, and none is made: {why}; starting the ordinary way"
                    ));
                } else {
                    log("there is no image for this start yet, and one is being made; starting the ordinary way");
                    if is_first && !gains_at_once(archive, &line.program) {
                        archive = BootArchive::None;
                    }
                }
            }
        }
    }
    ordinary::start(&line.program, words, archive)
}

/// Whether the first start with an archive is faster than one without. Filling the archive adds a quarter to the time of a short
/// program, and is wasted if an image is being made. Bundler's set-up alone becomes much faster even so.
fn gains_at_once(archive: BootArchive, program: &Path) -> bool {
    let gemfile = std::env::var_os("BUNDLE_GEMFILE");
    archive == BootArchive::Ruby
        && std::env::current_dir()
            .is_ok_and(|cwd| Application::find(gemfile.as_deref(), Some(program), &cwd).has_gemfile())
}

/// Executes an image with these arguments; returns only if that fails. `typed`: the first word of the command line; a name without a path
/// is for the launcher, which shows it as that of the interpreter if it is.
fn execute_with(image: &Path, file: &File, typed: &OsStr, arguments: &[OsString]) {
    let name = if is_path(Path::new(typed)) { image.as_os_str() } else { typed };
    let words = [&[name.to_owned()], arguments].concat();
    log(&format!("cannot execute {}: {}", image.display(), execute_image(image, file, &words)));
}

/// The image that a start uses, open: it is the one that was checked. A single image need not fit: it hands over a start that it cannot
/// serve.
fn image_for(folder: &Folder) -> Option<(PathBuf, File)> {
    let mut images = folder.images();
    images.retain(|image| Kind::is_image(image));
    let image = match images.as_slice() {
        [] => return None,
        [only] => only.clone(),
        _ => images.into_iter().find(|image| fit::fits(image))?,
    };
    match trust::open(&image) {
        Ok(file) => Some((image, file)),
        Err(refusal) => {
            log(&format!("an image in {} is not used: {refusal}", folder.path().display()));
            None
        }
    }
}

/// `snapboot fallback`, which a launcher executes: continues a start that an image of the store has handed over.
pub fn fallback(words: &[OsString]) -> Result<u8> {
    let Some(start) = Start::parse(words) else {
        return Err(Failure::refusal("snapboot fallback is for images of the store alone. See snapboot --help."));
    };
    let arguments = start.arguments().unwrap_or_default();
    if let Some(Dormant { installed, other }) =
        Folder::containing(&start.image).and_then(|folder| tools::dormant(&folder))
    {
        let Some(other) = other else {
            // In the words of a shell.
            let (name, program) = (&installed.name, installed.program.display());
            render::message(&format!(
                "snapboot: {name}: command not found: {program} is gone. Its image waits for it to come back; snapboot uninstall {name} \
                 removes that."
            ));
            return Ok(ordinary::NOT_THERE);
        };
        let words = [&[other.clone().into_os_string()], arguments].concat();
        return ordinary::start(&other, &words, BootArchive::None);
    }
    match start.next(eviction::size_limit()) {
        Next::Other(image) => {
            log(&format!("another image fits this start: {}", image.display()));
            match trust::open(&image) {
                Ok(file) => execute_with(&image, &file, &start.argv[0], arguments),
                Err(refusal) => log(&format!("cannot execute {}: {refusal}", image.display())),
            }
        }
        Next::Asked => log("the image is being made again; starting the ordinary way"),
        Next::None(why) => log(&format!("no image is being made: {why}; starting the ordinary way")),
    }
    let archive =
        ordinary::archive_of(&start.program, &start.argv, Store::find().as_ref().map(Shims::in_store).as_ref());
    ordinary::start(&start.program, &start.argv, archive)
}

/// Executes an image that was opened and checked, also where the kernel would not: on a file system mounted noexec, or without mode x.
/// Returns the reason, and only if that fails.
fn execute_image(image: &Path, file: &File, words: &[OsString]) -> Failure {
    let cannot = |error: io::Error| Failure::io("execute", image, &error);
    // The launcher only reads an image; a mode that a copy has lost must not prevent the start.
    if on_noexec_mount(image) || access(image, Access::EXEC_OK).is_err() {
        let launcher = match Installation::find().and_then(|installation| installation.launcher()) {
            Ok(launcher) => launcher,
            Err(failure) => return failure,
        };
        let all = [launcher.clone().into_os_string(), image.as_os_str().to_owned()];
        return cannot(store::execute(&launcher, &[&all, &words[1..]].concat(), None));
    }
    // A link of the user's own to an installed image: the name of the link counts (crates/launcher/src/link.rs), and nobody else can
    // redirect it.
    if image.is_symlink() && trust::open(image).is_ok() {
        return cannot(store::execute(image, words, None));
    }
    cannot(store::execute_open(file, words))
}

/// `check`: whether the file may be executed.
fn run_image(
    named: &Path,
    words: &[OsString],
    check: impl Fn(&Path, &File) -> std::result::Result<(), trust::Refusal>,
) -> Result<u8> {
    // Without a slash, it would be looked up in PATH.
    let image = std::path::absolute(named).map_err(|error| Failure::io("run", named, &error))?;
    let file = trust::look::open(&image).map_err(|error| Failure::io("run", named, &error))?;
    check(&image, &file).map_err(|refusal| not_to_be_run(&refusal))?;
    let failure = execute_image(&image, &file, words);
    // It may have lost its executable part, and still know what it was made from.
    if let Ok([program, own @ ..]) = image_file::command_of(&image).as_deref() {
        log(&format!("cannot use the image: {failure} Starting the ordinary way"));
        let words = [own, &words[1..]].concat();
        return ordinary::start(Path::new(program), &words, BootArchive::None);
    }
    Err(Failure::refusal(format!(
        "{failure} {} should be an image that snapboot freeze wrote; snapboot verify {0} says whether it is whole.",
        named.display(),
    )))
}

/// The failure for a named image that is not executed.
pub fn not_to_be_run(refusal: &trust::Refusal) -> Failure {
    Failure::refusal(format!(
        "{refusal}. An image is code of whoever can write to it: start it by its path, without snapboot, if that is what you want."
    ))
}

/// Says why there is nothing to start. Returns a shell's exit status.
fn not_runnable(named: &Path) -> u8 {
    // Without a slash, it was looked up in PATH.
    let is_path = is_path(named);
    let (found, status) = match Kind::detect(named) {
        Ok(Kind::Image) if !is_path => {
            ("no such command, but an image of that name here (write ./ before it)", ordinary::NOT_THERE)
        }
        _ if named.is_dir() && is_path => ("a directory", ordinary::CANNOT_EXECUTE),
        Ok(kind) if is_path => (kind.words(), ordinary::CANNOT_EXECUTE),
        Ok(kind) => (kind.words(), ordinary::NOT_THERE),
        Err(_) if !is_path => ("no such command", ordinary::NOT_THERE),
        Err(_) if !named.exists() => ("no such file", ordinary::NOT_THERE),
        Err(_) => ("a file that cannot be read", ordinary::CANNOT_EXECUTE),
    };
    let image = Path::new(named.file_name().unwrap_or(named.as_os_str())).with_extension("img");
    render::message(&format!(
        "snapboot: cannot run {}: expected a command or an image that snapboot freeze wrote, and found {found}. To start a program \
         from an image, freeze it first (snapboot freeze -o {1} -- COMMAND), then run that image (./{1}).",
        named.display(),
        image.display()
    ));
    status
}

/// Whether a word is the path of a file, and not the name of a command.
fn is_path(named: &Path) -> bool {
    named.as_os_str().as_bytes().contains(&b'/')
}
