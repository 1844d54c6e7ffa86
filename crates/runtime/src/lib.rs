//! Resolves a command as the user types it to a runtime, its options and the program's main part.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod arch;
pub mod deadline;
mod elf;
mod jit;
pub mod listener;
mod locate;
mod options;
mod probe;
pub mod python;
mod resolve;
mod ruby;
mod shebang;
mod shell;
pub mod shims;
pub mod terminal;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};

pub use jit::YJIT;
pub use locate::{locate, search_path};
pub use probe::{loader_of, looks_like_interpreter, probe, range, Language, Runtime, PYTHONS, RUBIES};
pub use resolve::{resolve, resolve_knowing, Shim};
pub use shell::KnownShims;

/// The kind of a command's main part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MainKind {
    /// None: the interpreter alone, or `-` for a program on standard input.
    Bare,
    /// A file.
    Script,
    /// `-m NAME`.
    Module,
    /// `-c CODE` or `-e CODE`.
    Code,
}

impl MainKind {
    /// The word for it in the request.
    pub fn word(self) -> &'static str {
        match self {
            MainKind::Bare => "bare",
            MainKind::Script => "script",
            MainKind::Module => "module",
            MainKind::Code => "code",
        }
    }
}

/// A parsed argv.
#[derive(Debug, PartialEq, Eq)]
pub struct Main {
    /// The kind of the main part.
    pub kind: MainKind,
    /// The whole argv. Equals the kernel's, except that combined flags such as `-Im` are separated.
    pub argv: Vec<OsString>,
    /// Index in `argv` of the first element after the interpreter's options.
    pub index: usize,
    /// Absolute path of the script, if that is the main part.
    pub script: Option<PathBuf>,
}

impl Main {
    /// Parses `argv` by the rules of the language's interpreter.
    ///
    /// Fails for options that an image cannot honour, and for a script that cannot be read.
    pub fn split(language: Language, argv: Vec<OsString>, search_path: &OsStr) -> Result<Main> {
        match language {
            Language::Python => python::split(argv),
            Language::Ruby => ruby::split(argv, search_path),
        }
    }

    /// The interpreter's options.
    pub fn options(&self) -> &[OsString] {
        &self.argv[1..self.index]
    }

    /// The module of `-m`, as a file name.
    pub fn module(&self) -> Option<OsString> {
        let (first, more) = self.rest().split_first()?;
        let name = match first.as_encoded_bytes().strip_prefix(b"-m") {
            _ if self.kind != MainKind::Module => return None,
            Some(b"") => more.first()?.as_os_str(),
            Some(name) => OsStr::from_bytes(name),
            None => return None,
        };
        Some([name, OsStr::new(".py")].into_iter().collect())
    }

    /// The code of `-c CODE` or of the first `-e CODE`.
    pub fn code(&self) -> Option<&OsStr> {
        let (first, more) = self.rest().split_first().filter(|_| self.kind == MainKind::Code)?;
        match first.as_bytes().get(2..) {
            Some([]) => more.first().map(OsString::as_os_str),
            attached => attached.map(OsStr::from_bytes),
        }
    }

    /// The arguments of the script or module; None if there is none.
    pub fn arguments(&self) -> Option<&[OsString]> {
        let own = match self.kind {
            MainKind::Script => 1,
            MainKind::Module if self.rest()[0].as_bytes() == b"-m" => 2,
            MainKind::Module => 1,
            MainKind::Bare | MainKind::Code => return None,
        };
        self.rest().get(own..)
    }

    /// The arguments after the interpreter's options.
    pub fn rest(&self) -> &[OsString] {
        &self.argv[self.index..]
    }
}

/// The language of a command that is an interpreter or leads to one. A command that cannot be resolved, such as the
/// shell script that starts JRuby, is judged by its name.
pub fn language_of(command: &[OsString]) -> Option<Language> {
    let search_path = std::env::var_os("PATH").unwrap_or_default();
    match resolve(command, &search_path) {
        Ok(resolved) => named_for(&resolved.program).or_else(|| named_for(&resolved.named)),
        Err(_) => named_for(Path::new(&command[0])),
    }
}

/// The language in the name of an interpreter's file.
fn named_for(path: &Path) -> Option<Language> {
    let name = path.file_name().unwrap_or_default();
    let is_ruby = name.to_string_lossy().contains("ruby");
    looks_like_interpreter(name).then_some(if is_ruby { Language::Ruby } else { Language::Python })
}

/// Whether a file is named like a Ruby of some kind.
pub fn is_ruby(path: &Path) -> bool {
    named_for(path) == Some(Language::Ruby)
}

/// The absolute path of a script, if it can be read.
fn readable_script(path: &OsStr) -> Result<PathBuf> {
    let path = Path::new(path);
    let metadata = path.metadata().map_err(|error| Failure::io("read the script", path, &error))?;
    if metadata.is_file() {
        trust::look::open(path).map_err(|error| Failure::io("read the script", path, &error))?;
    }
    std::path::absolute(path).map_err(|error| Failure::io("find the script", path, &error))
}
