//! The program that is frozen, as its command resolves here and now.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use image_file::starts::Starts;
use judge::environment::Environment;
use runtime::{Language, Main, Runtime};

use crate::own_files::OwnFiles;
use crate::request::{Content, Cpu};

/// A program, its environment, and the place of its image.
pub struct Program {
    pub runtime: Runtime,
    /// The path by which starts call the runtime: an entry in its place, otherwise its own.
    pub called: PathBuf,
    pub main: Main,
    /// The file that the kernel executes last for the command.
    pub executed: PathBuf,
    /// The file that gives an image its name.
    pub named: PathBuf,
    /// The CPUs on which the image thaws.
    pub cpu: Cpu,
    /// Why they are those with all features of this one, if nobody has asked for that.
    pub only_native: Option<String>,
    /// What a boot sees of the environment.
    pub environment: Environment,
    /// The path of the image.
    pub output: PathBuf,
    /// Identifies the image that is replaced, with how its starts went.
    pub replaced: Option<(u64, Option<Starts>)>,
    /// Which files are the user's own. This installation, the store and the runtime are not.
    pub own_files: OwnFiles,
    /// Whether the image leaves those to each start, and the script with them.
    pub leaves_own_files: bool,
    pub leaves_script: bool,
    /// Messages to the user about what is frozen.
    pub messages: Vec<String>,
}

impl Program {
    /// Has the image made for CPUs with all features of this one, for this reason.
    pub fn keep_to_native(&mut self, why: String) {
        self.cpu = Cpu::Native;
        self.only_native = Some(why);
        self.environment = self.environment.clone().with_for_libraries(Vec::new());
    }

    /// Decides which of the user's own files the image holds. `content`: what is asked for, in a store; `boots_application`:
    /// whether an application of the user's is booted by a script of others.
    pub fn decide_about_own_files(&mut self, content: Option<Content>, boots_application: bool) {
        let is_own = self.own_files.contains_program(&self.main);
        self.leaves_own_files = match content {
            None => false,
            Some(Content::Libraries) => true,
            Some(Content::Program) => !is_own && !boots_application,
        };
        self.leaves_script = self.leaves_own_files && is_own && self.main.script.is_some();
    }

    /// How the image depends on this CPU, for the user; None if that was asked for, or is not so.
    pub fn depends_on_cpu(&self) -> Option<String> {
        self.only_native.as_ref().map(|why| format!("all features of this CPU, since {why}"))
    }

    /// Whether the runtime is named by a relative path, so that it is not found from another folder.
    pub fn is_named_from_here(&self) -> bool {
        let name = &self.main.argv[0];
        Path::new(name).is_relative() && name.as_encoded_bytes().contains(&b'/')
    }

    /// The program, anchor and argv that the fallback executes.
    ///
    /// CPython finds its library from argv[0], and in PATH if that has no slash; PATH and the directory may differ
    /// later. So the fallback gives it the path found now. The anchor makes an image work from any directory although
    /// its script was named by a relative path: if that leads elsewhere, the launcher uses the absolute path.
    pub fn fallback_command(&self) -> Vec<OsString> {
        let (program, argv) = (self.called.clone().into_os_string(), &self.main.argv);
        let first = match self.runtime.language {
            Language::Python if !Path::new(&argv[0]).is_absolute() => program.clone(),
            _ => argv[0].clone(),
        };
        let anchor = self.anchor().unwrap_or_default();
        [program, anchor, first].into_iter().chain(argv.iter().skip(1).cloned()).collect()
    }

    /// None for an absolute path, and for a script that was found in PATH.
    fn anchor(&self) -> Option<OsString> {
        let (script, named) = (self.main.script.as_ref()?, Path::new(self.main.argv.get(self.main.index)?));
        if named.is_absolute() || std::path::absolute(named).ok()? != *script {
            return None;
        }
        let mut anchor = OsString::from(format!("{}=", self.main.index));
        anchor.push(script);
        Some(anchor)
    }
}
