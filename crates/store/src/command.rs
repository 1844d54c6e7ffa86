//! Which words of a command line name the program that is frozen, and which are its arguments.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use failure::Result;
use runtime::{is_ruby, locate, looks_like_interpreter, python::runs_site, resolve_knowing, Language, Main};
use serde::{Deserialize, Serialize};

use crate::shims::Shims;

/// How much of its code is in the name of a program without a file (characters).
const CODE_IN_NAME: usize = 40;

/// A program that can have images in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Its name for people: that of its script or module, or the beginning of its code.
    pub name: String,
    /// The words that start it: without arguments, but for a program with a freeze point of a recipe, whose images are for one command line.
    /// For code, those of the interpreter alone.
    pub words: Vec<String>,
    /// Its file: the script, or the interpreter of a module or of code.
    pub file: PathBuf,
    /// Identifies it: one text for each program, wherever it is started.
    identity: String,
}

/// The boot archive that an ordinary start can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BootArchive {
    /// None: the runtime has none, or it reads nothing that could switch an archive on.
    None,
    /// That of CPython.
    Python,
    /// That of Ruby.
    Ruby,
}

/// A command line, taken apart.
#[derive(Debug)]
pub struct Line {
    /// The file that the kernel is to execute.
    pub program: PathBuf,
    /// Whether a Python or a Ruby runs in the end.
    pub is_interpreter: bool,
    /// The archive that an ordinary start can use.
    pub archive: BootArchive,
    /// Whether a shim of a version manager was followed, which may lead elsewhere in the next start.
    pub is_shim: bool,
    /// The program that is frozen, and its arguments; None for a command that cannot have an image, such as an interpreter alone.
    pub command: Option<(Command, Vec<OsString>)>,
}

impl Command {
    /// Splits a command line. `search_path`: the value of PATH; `shims`: where shims lead, as far as that is known.
    ///
    /// Fails if there is no such command. One that is no Python or Ruby program has no image.
    pub fn split(words: &[OsString], search_path: &OsStr, shims: Option<&Shims>) -> Result<Line> {
        let program = locate(&words[0], search_path)?;
        let known = |shim: &Path, text: &[u8]| shims?.target(shim, text);
        let Ok(resolved) = resolve_knowing(words, search_path, &known) else {
            // A shell script of a version manager or of JRuby is recognised by its name.
            let is_ruby = is_ruby(&program);
            let archive = if is_ruby { BootArchive::Ruby } else { BootArchive::None };
            return Ok(Line { program, is_interpreter: is_ruby, archive, is_shim: false, command: None });
        };
        if let (Some(shims), Some(shim)) = (shims, &resolved.shim) {
            shims.remember(shim);
        }
        let interpreter = resolved.program;
        let is_ruby = is_ruby(&interpreter) || is_ruby(&resolved.named);
        let is_interpreter = looks_like_interpreter(interpreter.file_name().unwrap_or_default());
        let language = if is_ruby { Language::Ruby } else { Language::Python };
        let main = is_interpreter.then(|| Main::split(language, resolved.argv, search_path).ok()).flatten();
        let archive = match &main {
            _ if is_ruby => BootArchive::Ruby,
            Some(main) if runs_site(main.options()) => BootArchive::Python,
            _ => BootArchive::None,
        };
        let executed = resolved.executed;
        let command = main.and_then(|main| split(words, &program, &executed, interpreter, language, main, search_path));
        let is_shim = resolved.shim.is_some();
        Ok(Line { program, is_interpreter: is_interpreter || is_ruby, archive, is_shim, command })
    }

    /// What identifies it: the same text wherever it is started.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The interpreter that runs it.
    pub fn interpreter(&self) -> &Path {
        Path::new(self.identity.split('\0').next().unwrap_or_default())
    }

    /// The name of its folder in the store: its name for people, and a digest that identifies it.
    pub fn key(&self) -> String {
        let plain: String = self.name.chars().filter(|it| it.is_ascii_alphanumeric() || "-_.".contains(*it)).collect();
        let digest = image::digest(self.identity.as_bytes());
        let number: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{number}", plain.trim_start_matches(['.', '-']))
    }
}

/// `words`: the command line; `program`: the file that its first word leads to; `executed`: the file that names the process; `main`: what
/// `interpreter` runs in the end.
fn split(
    words: &[OsString],
    program: &Path,
    executed: &Path,
    interpreter: PathBuf,
    language: Language,
    main: Main,
    search_path: &OsStr,
) -> Option<(Command, Vec<OsString>)> {
    let code = main.code().filter(|_| language == Language::Python);
    // The image for code is one of the interpreter alone, and each start has its own code.
    let given = if code.is_some() { main.rest() } else { main.arguments()? };
    // A recipe that is invalid is reported by whoever makes an image.
    let _ = recipes::load_own();
    let is_of_arguments = recipes::freeze_point(language, &main).is_some();
    // Such an image is for one command line, and most often for the application of the current directory.
    let (own, arguments) = given.split_at(if is_of_arguments { given.len() } else { 0 });
    let here = is_of_arguments.then(std::env::current_dir).transpose().ok()?;
    let (named, tail) = words.split_at_checked(words.len().checked_sub(given.len())?)?;
    if code.is_some() && tail != given {
        return None; // options in the same word
    }
    // Words that the first lines of scripts have added cannot be arguments.
    let (words, file) = match (&main.script, named) {
        (Some(script), [first]) if !first.as_bytes().contains(&b'/') => (vec![text(program)?], script.clone()),
        (Some(script), _) => (all_text(named)?, script.clone()),
        (None, _) => (all_text(named)?, interpreter.clone()),
    };
    let words = words.into_iter().chain(all_text(own)?).collect();
    let module = main.module().map(|name| name.to_string_lossy().trim_end_matches(".py").to_owned());
    let name = match (&module, &main.script, code) {
        (Some(module), ..) => module.clone(),
        (None, Some(script), _) => script.file_name()?.to_str()?.to_owned(),
        (None, None, code) => format!("-c {}", code?.to_str()?.chars().take(CODE_IN_NAME).collect::<String>()),
    };
    // Another script of the same relative path is another program, and so is a module of another current directory.
    let mut identity: Vec<OsString> = vec![interpreter.into_os_string()];
    identity.extend_from_slice(main.options());
    identity.push(file.clone().into_os_string());
    // Each spelling of a script is another program: it is what the program finds in its words, and what names the process.
    if main.script.is_some() {
        identity.push(main.rest()[0].clone());
        identity.extend(executed.file_name().map(OsStr::to_owned));
    }
    if let Some(module) = module {
        let top = module.split('.').next().unwrap_or_default().to_owned();
        if Path::new(&top).exists() || Path::new(&(top.clone() + ".py")).exists() {
            identity.push(std::env::current_dir().ok()?.into_os_string());
        }
        identity.push(module.into());
    }
    if let Some(code) = code {
        identity.push(without_numbers(code.to_str()?).into());
        identity.push(std::env::current_dir().ok()?.into());
        identity.extend(parent_program(language, search_path));
    }
    identity.extend(here.map(PathBuf::into_os_string).into_iter().chain(own.iter().cloned()));
    let identity = identity.iter().map(|word| text(Path::new(word))).collect::<Option<Vec<_>>>()?.join("\0");
    let arguments = arguments.to_vec();
    Some((Command { name, words, file, identity }, arguments))
}

/// Code without the numbers in it. A program that starts others by code names descriptors and processes there, which differ each time.
fn without_numbers(code: &str) -> String {
    code.split(|it: char| it.is_ascii_digit()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("0")
}

/// The script or module of the process that has started this one, if the same language runs it. The code by which a program starts others
/// is the same in all programs, and what it loads then is not.
fn parent_program(language: Language, search_path: &OsStr) -> Option<OsString> {
    let parent = rustix::process::getppid()?.as_raw_nonzero();
    let line = std::fs::read(format!("/proc/{parent}/cmdline")).ok()?;
    let argv: Vec<OsString> =
        line.strip_suffix(b"\0")?.split(|byte| *byte == 0).map(|word| OsStr::from_bytes(word).to_owned()).collect();
    if !looks_like_interpreter(Path::new(&argv[0]).file_name()?) {
        return None;
    }
    let main = Main::split(language, argv, search_path).ok()?;
    main.module().or_else(|| main.script.map(PathBuf::into_os_string))
}

fn all_text(words: &[OsString]) -> Option<Vec<String>> {
    words.iter().map(|word| word.to_str().map(str::to_owned)).collect()
}

fn text(path: &Path) -> Option<String> {
    String::from_utf8(path.as_os_str().to_owned().into_vec()).ok()
}
