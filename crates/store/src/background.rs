//! Starts builders, which make images in the background.

use std::ffi::{OsStr, OsString};
use std::io::{stderr, stdin, stdout, IsTerminal};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use image_file::this_process::ThisProcess;
use inputs::environment::is_volatile;
use runtime::terminal::Terminal;

use crate::attempt::Attempts;
use crate::changes::{differing, is_being_edited};
use crate::{builder_limits, sys, Command, Folder, NoImageReason, PutOff};

/// The subcommand that makes an image.
pub const SUBCOMMAND: &str = "build-image";

/// Asks for an image of a command that has none for this environment. Returns the reason if none will be made.
///
/// `seen`: how many images there were; `limit`: of the store (bytes).
pub fn ask_for_new(folder: &Folder, command: &Command, seen: usize, limit: u64) -> Option<NoImageReason> {
    ask(folder, &Asked::New { seen }, limit, || folder.make(command).err().map(NoImageReason::NoFolder))
}

/// Asks for an image that replaces an unusable one. Returns the reason if none will be made.
pub fn ask_again(folder: &Folder, image: &Path, limit: u64) -> Option<NoImageReason> {
    ask(folder, &Asked::Again(image), limit, || None)
}

/// Does the same where another image serves meanwhile: not while somebody edits the program.
pub fn ask_once_edits_pause(folder: &Folder, image: &Path, limit: u64) -> Option<NoImageReason> {
    let is_edited = || is_being_edited(&differing(image, &ThisProcess::ITSELF));
    ask(folder, &Asked::Again(image), limit, || is_edited().then_some(NoImageReason::BeingEdited))
}

/// Asks for an image, unless one is being made. `prepare`: returns the reason if that is impossible.
fn ask(
    folder: &Folder,
    asked: &Asked<'_>,
    limit: u64,
    prepare: impl FnOnce() -> Option<NoImageReason>,
) -> Option<NoImageReason> {
    if folder.is_building() {
        return None;
    }
    let environment = environment_number();
    let fruitless = || Attempts::load(folder).why_none(&environment).map(NoImageReason::Attempts);
    let why = in_the_way(folder).or_else(fruitless).or_else(prepare);
    if why.is_none() {
        start(folder, asked, &environment, Terminal::of_this_process(), limit);
    }
    why
}

/// Why no builder could make an image in this folder now, whatever the program; None if one could.
pub(crate) fn in_the_way(folder: &Folder) -> Option<NoImageReason> {
    let put_off = || PutOff::load(folder).filter(PutOff::waits).map(|put_off| NoImageReason::PutOff(put_off.why));
    builder_limits::lacks().or_else(|| folder.cannot_write()).or_else(put_off)
}

/// Which image is asked for.
pub enum Asked<'a> {
    /// One more than this many; nothing is done if another builder has already made it.
    New {
        /// How many there were.
        seen: usize,
    },
    /// One that replaces this image.
    Again(&'a Path),
    /// One that replaces this image, because starts have reported more modules.
    ForNews(&'a Path),
}

impl<'a> Asked<'a> {
    /// As words of a command line.
    fn words(&self) -> [OsString; 2] {
        match self {
            Asked::New { seen } => ["new".into(), seen.to_string().into()],
            Asked::Again(image) => ["again".into(), image.into()],
            Asked::ForNews(image) => ["news".into(), image.into()],
        }
    }

    /// Reads such words.
    pub fn parse(words: &'a [OsString]) -> Option<Self> {
        let [kind, what] = words else { return None };
        Some(match kind.to_str()? {
            "new" => Asked::New { seen: what.to_str()?.parse().ok()? },
            "again" => Asked::Again(Path::new(what)),
            "news" => Asked::ForNews(Path::new(what)),
            _ => return None,
        })
    }
}

/// Starts a builder. `environment`: the number of the environment of the starts that the image is for; `terminal`: their terminal.
pub fn start(folder: &Folder, asked: &Asked<'_>, environment: &str, terminal: Option<Terminal>, limit: u64) {
    let Ok(program) = std::env::current_exe() else { return };
    let (pid, limit) = (std::process::id().to_string(), limit.to_string());
    let terminal = terminal_word(terminal);
    let words: [&OsStr; 7] = [
        program.as_os_str(),
        SUBCOMMAND.as_ref(),
        pid.as_ref(),
        limit.as_ref(),
        environment.as_ref(),
        terminal.as_ref(),
        folder.path().as_os_str(),
    ];
    let argv: Vec<OsString> = words.iter().map(|word| word.to_os_string()).chain(asked.words()).collect();
    sys::leave_behind(&program, &argv);
}

/// Encodes a terminal as one word of a command line.
pub fn terminal_word(terminal: Option<Terminal>) -> String {
    terminal.map_or_else(|| "none".to_owned(), |terminal| terminal.to_string())
}

/// Decodes such a word. Returns None also if no terminal can be opened.
pub fn parse_terminal(word: &OsStr) -> Option<Terminal> {
    word.to_str().and_then(Terminal::parse).filter(Terminal::is_available)
}

/// A number for everything in the environment that an image could depend on: the variables except those of a session, the working
/// directory, and which standard streams are a terminal.
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
