//! The entry: stands where an enabled environment's `bin/python` was. It executes `snapboot run` where the store has an image for the
//! program, and otherwise the interpreter that was there.
//!
//! It leaves everything as the kernel gave it: words, environment, descriptors, signals, and the name of the process. What is not certain
//! goes to the interpreter, whose file of `snapboot enable` looks once more (python/snapboot/archive/images.py). The rules, and the files in
//! the store's cache, are the same there.
#![no_main]

mod sys;

use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use snapboot_entry::starts::Starts;
use snapboot_entry::{command_line, COMMAND, FOLDER, MARK, NAMES};

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
    let Ok(entry) = fs::read_link("/proc/self/exe") else { return fail("/proc/self/exe cannot be read. Mount /proc.") };
    let Some(environment) = entry.parent().and_then(Path::parent) else { return fail("it is in no folder") };
    let folder = environment.join(FOLDER);
    if let Some(starts) = starts_with_image(start, &entry) {
        let words = [
            Some(c"snapboot".to_owned()),
            Some(c"run".to_owned()),
            Some(c"--starts".to_owned()),
            c_string(&starts),
            Some(c"--".to_owned()),
        ];
        if let (Some(command), Some(words)) =
            (c_string(&folder.join(COMMAND)), words.into_iter().collect::<Option<Vec<_>>>())
        {
            start.execute(&command, &words);
        }
    }
    let name = name_of(start, &folder, &entry);
    let error = match c_string(&named_as_the_process(&folder, name)) {
        Some(interpreter) => start.execute(&interpreter, &[]),
        None => std::io::ErrorKind::InvalidInput.into(),
    };
    fail(&format!(
        "cannot execute {}: {error}. It is what this environment had here before `snapboot enable`, or what that leads to. Make the \
         environment anew, or put it back.",
        folder.join(name).display()
    ))
}

/// The file of starts of a program that has an image and was not handed over before. None otherwise, and if anything is not as expected.
fn starts_with_image(start: &Start, entry: &Path) -> Option<PathBuf> {
    let variable = |name: &str| start.variable(name);
    if variable("SNAPBOOT").is_some_and(|value| value == "off") || variable("SNAPBOOT_FREEZE_DIR").is_some() {
        return None;
    }
    let (name, words) = start.words.split_first()?;
    let executable = command_line::executable(name, variable("PATH"), entry)?;
    let program = command_line::program(words)?;
    let starts = Starts::find(executable.as_os_str(), &program, &variable)?;
    (starts.have_image() && !starts.were_handed_over()).then(|| starts.path().to_owned())
}

/// The name by which this start calls the interpreter.
fn name_of<'a>(start: &'a Start, folder: &Path, entry: &'a Path) -> &'a OsStr {
    let called = start.words.first().and_then(|word| Path::new(word).file_name());
    let own = entry.file_name().unwrap_or_default();
    called.filter(|name| folder.join(name).is_file()).unwrap_or(own)
}

/// A path of the interpreter that ends with the name of this process, which it keeps that way: a script that the kernel executes gives its
/// own name to the process.
fn named_as_the_process(folder: &Path, name: &OsStr) -> PathBuf {
    let interpreter = folder.join(name);
    let Ok(own) = rustix::thread::name() else { return interpreter };
    let own = OsStr::from_bytes(own.to_bytes());
    if own == name || Path::new(own).file_name() != Some(own) {
        return interpreter;
    }
    let (link, target) = (folder.join(NAMES).join(own), Path::new("..").join(name));
    let is_it = |link: &Path| fs::read_link(link).is_ok_and(|led| led == target);
    if !is_it(&link) {
        // Fails where this user may not write, and where the name led to another interpreter of the folder.
        let _ = symlink(&target, &link);
        if !is_it(&link) {
            return interpreter;
        }
    }
    link
}

fn c_string(path: &Path) -> Option<CString> {
    CString::new(path.as_os_str().as_bytes()).ok()
}

fn fail(what: &str) -> i32 {
    sys::say(&format!("snapboot: {what}\n"));
    CANNOT_EXECUTE
}
