//! The entry: stands where an enabled environment's `bin/python` was, or `bin/ruby`. It executes `snapboot run` where the store has an image for the
//! program, and otherwise the interpreter that was there.
//!
//! It leaves everything as the kernel gave it: words, environment, descriptors, signals, and the name of the process. What is not certain
//! goes to the interpreter, whose file of `snapboot enable` looks once more (python/snapboot/archive/images.py, ruby/lib/snapboot/enabled.rb).
//! The rules, and the files in the store's cache, are the same there.
#![no_main]

mod sys;

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{symlink, MetadataExt};
use std::path::{Path, PathBuf};

use snapboot_entry::starts::Starts;
use snapboot_entry::{
    beginning, command_line, interpreters_elsewhere, is_entry, python, ruby, COMMAND, FOLDER, MARK, NAMES,
};

use sys::Start;

/// Exit statuses of a shell for a program that cannot be executed.
const CANNOT_EXECUTE: i32 = 126;

/// What tells that this is an entry, as a note of ELF (elf(5)): lengths of name and contents, a type, the name. Notes lie at the beginning.
#[repr(C, align(4))]
struct Note([u32; 3], [u8; MARK.len()]);

// SAFETY: nothing else is in a section of that name, and nobody reads it while the program runs.
#[unsafe(link_section = ".note.snapboot")]
#[used]
static NOTE: Note = Note([MARK.len() as u32, 0, 1], MARK);

/// Executes what the start leads to. Returns the exit status if that fails.
fn enter(start: &Start) -> i32 {
    let Some(entry) = own_path(start) else { return fail("this entry cannot find its own path. Mount /proc.") };
    let Some(environment) = entry.parent().and_then(Path::parent) else { return fail("this entry is in no folder") };
    let folder = environment.join(FOLDER);
    if let Some(starts) = starts_with_image(start, &entry) {
        let words = [Path::new("snapboot"), Path::new("run"), Path::new("--starts"), &starts, Path::new("--")];
        let words: Option<Vec<CString>> = words.into_iter().map(c_string).collect();
        if let (Some(command), Some(words)) = (c_string(&folder.join(COMMAND)), words) {
            let script = own_name().and_then(|name| command_line::executed_script(&start.words, &name));
            start.execute(&command, &words, script.unwrap_or_default());
        }
    }
    let name = name_of(start, &folder, &entry);
    let kept = folder.join(name);
    let mut error = std::io::Error::from(std::io::ErrorKind::InvalidInput);
    // All but the first two are for an environment in which something is missing, or that is being disabled.
    let interpreters = [named_as_the_process(&folder, name), Some(kept.clone()), put_back(&entry)];
    for path in interpreters.into_iter().flatten().chain(interpreters_elsewhere(&entry, name)) {
        if let Some(path) = c_string(&path) {
            error = start.execute(&path, &[], 0);
        }
    }
    fail(&format!(
        "cannot execute {}: {error}. It is what this environment had here before `snapboot enable`, or what that leads to. Make the \
         environment anew, or put it back.",
        kept.display()
    ))
}

/// The path of this file, or the one that it had until somebody put another file there.
fn own_path(start: &Start) -> Option<PathBuf> {
    if let Ok(path) = fs::read_link("/proc/self/exe") {
        let path = path.as_os_str().as_bytes();
        return Some(PathBuf::from(OsStr::from_bytes(path.strip_suffix(b" (deleted)").unwrap_or(path))));
    }
    let name = Path::new(start.words.first()?);
    let called = if name.components().count() > 1 {
        name.to_owned()
    } else {
        std::env::split_paths(start.variable("PATH")?).map(|folder| folder.join(name)).find(|path| path.exists())?
    };
    Some(fs::canonicalize(called.parent()?).ok()?.join(name.file_name()?))
}

/// The path of this entry, where another program is there by now, as after `snapboot disable`.
fn put_back(entry: &Path) -> Option<PathBuf> {
    (!is_entry(&beginning(entry)?)).then(|| entry.to_owned())
}

/// The file of starts of a program that has an image and was not handed over before. None otherwise, and if anything is not as expected.
fn starts_with_image(start: &Start, entry: &Path) -> Option<PathBuf> {
    let variable = |name: &str| start.variable(name);
    if variable("SNAPBOOT").is_some_and(|value| value == "off") || variable("SNAPBOOT_FREEZE_DIR").is_some() {
        return None;
    }
    let (name, words) = start.words.split_first()?;
    let search_path = variable("PATH");
    let (executable, program) = if ruby::is_ruby(entry) {
        (ruby::executable(name, search_path, entry)?, ruby::program(words)?)
    } else {
        (python::executable(name, search_path, entry)?, python::program(words)?)
    };
    let starts = Starts::find(executable.as_os_str(), &program, &variable)?;
    (starts.have_image() && !starts.were_handed_over()).then(|| starts.path().to_owned())
}

/// The name by which this start calls the interpreter.
fn name_of<'a>(start: &'a Start, folder: &Path, entry: &'a Path) -> &'a OsStr {
    let called = start.words.first().and_then(|word| Path::new(word).file_name());
    let own = entry.file_name().unwrap_or_default();
    called.filter(|name| folder.join(name).is_file()).unwrap_or(own)
}

/// The name of this process.
fn own_name() -> Option<OsString> {
    rustix::thread::name().ok().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned())
}

/// A path of the interpreter that ends with the name of this process, which it keeps that way: a script that the kernel executes gives its
/// own name to the process. None if the interpreter's own name does, or there is no such path.
fn named_as_the_process(folder: &Path, name: &OsStr) -> Option<PathBuf> {
    let own = own_name()?;
    if own == name || Path::new(&own).file_name() != Some(&own) {
        return None;
    }
    let names = folder.join(NAMES);
    let owner = names.symlink_metadata().ok().filter(|status| status.is_dir())?.uid();
    let (link, target) = (names.join(&own), Path::new("..").join(name));
    let is_it = || fs::read_link(&link).is_ok_and(|led| led == target);
    if !is_it() && owner == rustix::process::geteuid().as_raw() {
        // Fails where the name leads to another interpreter of the folder.
        let _ = symlink(&target, &link);
    }
    is_it().then_some(link)
}

fn c_string(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

fn fail(what: &str) -> i32 {
    sys::say(&format!("snapboot: {what}\n"));
    CANNOT_EXECUTE
}
