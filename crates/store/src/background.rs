//! Has an image made while nobody waits for it.

use std::ffi::{OsStr, OsString};
use std::io::{stderr, stdin, stdout, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use inputs::environment::is_volatile;
use runtime::terminal::Terminal;

use crate::attempt::Attempt;
use crate::{room, sys, Command, Folder};

/// The subcommand that makes an image.
pub const SUBCOMMAND: &str = "build-image";

/// Asks for an image of a command that has none for this environment. Returns why none will be made, if none will.
///
/// `seen`: how many images there were; `limit`: of the store (bytes).
pub fn ask_for_new(folder: &Folder, command: &Command, seen: usize, limit: u64) -> Option<String> {
    if let Some(why) = room::lacks() {
        return Some(why);
    }
    let mut attempt = Attempt::of(folder);
    if !attempt.may_follow() {
        let otherwise = || "the last attempt has not led to one, and nothing that it read has changed".to_owned();
        return Some(attempt.in_vain_because().unwrap_or_else(otherwise));
    }
    let has_images = seen > 0;
    if has_images && !attempt.try_environment(&environment_number()) {
        return Some("an image was made for this environment, and does not fit it either".to_owned());
    }
    if let Err(failure) = folder.make(command) {
        return Some(failure.message);
    }
    if has_images {
        attempt.keep(folder);
    }
    start(folder, Asked::New { seen }, Terminal::of_this_process(), limit);
    None
}

/// Asks for an image in the place of one that cannot be used any more. Returns why none will be made, if none will.
pub fn ask_again(folder: &Folder, image: &Path, limit: u64) -> Option<String> {
    if let Some(why) = room::lacks() {
        return Some(why);
    }
    let mut attempt = Attempt::of(folder);
    if !attempt.may_follow() {
        return Some("the last attempts have not led to one that could be used".to_owned());
    }
    if attempt.learnt > 0 {
        attempt.learnt = 0;
        attempt.keep(folder);
    }
    start(folder, Asked::Again(image), Terminal::of_this_process(), limit);
    None
}

/// Which image is asked for.
pub enum Asked<'a> {
    /// One more than this many; nothing is to be done where somebody else has made it.
    New {
        /// How many there were.
        seen: usize,
    },
    /// One in the place of this one.
    Again(&'a Path),
}

/// Starts a builder. `terminal`: of the starts that the image is for.
pub fn start(folder: &Folder, asked: Asked<'_>, terminal: Option<Terminal>, limit: u64) {
    let Ok(program) = std::env::current_exe() else { return };
    let (seen, image) = match asked {
        Asked::New { seen } => (seen, None),
        Asked::Again(image) => (0, Some(image)),
    };
    let numbers = [u64::from(std::process::id()), limit, seen as u64].map(|number| number.to_string());
    let [pid, limit, seen] = numbers.each_ref().map(AsRef::as_ref);
    let terminal = terminal_word(terminal);
    let words =
        [program.as_os_str(), SUBCOMMAND.as_ref(), pid, limit, seen, terminal.as_ref(), folder.path().as_os_str()];
    let mut argv: Vec<OsString> = words.iter().map(|word| word.to_os_string()).collect();
    argv.extend(image.map(|image| image.as_os_str().to_owned()));
    sys::leave_behind(&program, &argv);
}

/// A terminal as one word of a command line.
pub fn terminal_word(terminal: Option<Terminal>) -> String {
    terminal.map_or_else(|| "none".to_owned(), |terminal| terminal.to_string())
}

/// Reads such a word. None also where no terminal can be had.
pub fn parse_terminal(word: &OsStr) -> Option<Terminal> {
    word.to_str().and_then(Terminal::parse).filter(Terminal::is_available)
}

/// A number for all in the environment that an image could depend on: the variables but for those of a session, the working directory,
/// and which of the standard streams are a terminal.
pub fn environment_number() -> String {
    let mut entries: Vec<Vec<u8>> = std::env::vars_os()
        .filter(|(name, _)| !is_volatile(name.as_bytes()))
        .map(|(name, value)| [name.as_bytes(), b"=", value.as_bytes()].concat())
        .collect();
    entries.sort();
    entries.push(std::env::current_dir().unwrap_or_default().into_os_string().as_bytes().to_vec());
    let streams = [stdin().is_terminal(), stdout().is_terminal(), stderr().is_terminal()];
    entries.push(streams.map(u8::from).to_vec());
    format!("{:016x}", image::checksum(&entries.join(&0)))
}
