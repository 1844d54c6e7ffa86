//! `snapboot archive build`: fills an archive without running the program, with the builder script of the runtime's front end.

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use archive::{Application, Archive, Error};
use failure::{Failure, Result};
use freeze::Readers;
use image_file::this_process::umask;
use installation::Installation;
use runtime::{language_of, locate, resolve, Language, Main};

use super::{place, refusal};
use crate::arguments::ArchiveBuild;
use crate::human;
use crate::render;
use crate::spinner::Spinner;

/// How the interpreter of the command is started.
struct Interpreter {
    language: Language,
    program: PathBuf,
    options: Vec<OsString>,
    script: Option<PathBuf>,
}

/// An unfinished file, which is removed unless it is finished.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Runs the subcommand.
pub fn main(arguments: &ArchiveBuild) -> Result<u8> {
    let interpreter = Interpreter::find(&arguments.command)?;
    let directories = directories(arguments)?;
    let application = interpreter.application(&directories[0]);
    let path = match &arguments.output {
        Some(output) => std::path::absolute(output).map_err(|error| Failure::io("find", output, &error))?,
        None => interpreter.place(&application)?,
    };
    let parent = path.parent().unwrap_or(&path);
    fs::create_dir_all(parent).map_err(|error| Failure::io("make", parent, &error))?;
    let mut draft = path.clone().into_os_string();
    draft.push(".building");
    let draft = PathBuf::from(draft);
    may_be_overwritten(&path)?;
    may_be_overwritten(&draft)?;
    // A killed process may have left it behind.
    let _ = fs::remove_file(&draft);
    let draft = Draft(draft);

    let spinner = Spinner::start(arguments.verbosity.quiet);
    spinner.phase(format!("starting {}", interpreter.program.display()));
    let (status, messages) = interpreter.run(&directories, &draft.0, &spinner)?;
    spinner.stop();
    if !status.success() {
        return Err(Failure::failed(format!(
            "{} ended with {status} while it was filling the archive; its output is above. Nothing was written.",
            interpreter.program.display()
        )));
    }
    let archive = Archive::open(&draft.0, &application.root).map_err(|error| {
        if error.is_absence() {
            Failure::failed(format!(
                "{} stored nothing in the archive, because all parts of the archive are off in this interpreter. Run it with \
                 SNAPBOOT_LOG=1 for the reason.",
                interpreter.program.display()
            ))
        } else {
            refusal(error)
        }
    })?;
    // Another process may have created it meanwhile.
    may_be_overwritten(&path)?;
    // The umask decides who gets an archive that a person asks for, among those who could read the sources; only the owner may write it.
    let readers = readers(&archive, &application.root, &draft.0)?;
    let allowed = 0o644 & !umask();
    let mode = readers.permitted_bits(allowed) | 0o600;
    fs::set_permissions(&draft.0, fs::Permissions::from_mode(mode))
        .and_then(|()| fs::rename(&draft.0, &path))
        .map_err(|error| Failure::io("write", &path, &error))?;
    if arguments.verbosity.quiet {
        return Ok(0);
    }
    if let Some(closed) = readers.restrictive_file().filter(|_| mode & 0o077 != allowed & 0o077) {
        render::message(&format!(
            "snapboot: the archive has mode {mode:04o}: not everybody may read {}",
            closed.display()
        ));
    }
    for line in messages {
        render::message(&format!("snapboot: {line}"));
    }
    let (entries, size) = (archive.live().len(), human::size(archive.size()));
    render::print(&format!("{}: {entries} entries, {size}\n", path.display()))?;
    Ok(0)
}

/// Who may read all files from which the archive has contents.
fn readers(archive: &Archive, root: &Path, file: &Path) -> Result<Readers> {
    let group = file.metadata().map_err(|error| Failure::io("read", file, &error))?.gid();
    let mut readers = Readers::new(group);
    archive.sources(root).iter().filter(|path| path.exists()).for_each(|path| readers.add(path));
    Ok(readers)
}

/// Refuses a path with a file that is no boot archive.
fn may_be_overwritten(path: &Path) -> Result<()> {
    archive::is_replaceable(path).map_err(|error| {
        let reason = match error {
            Error::NotAnArchive(_) => "it starts with something else".to_owned(),
            Error::NotAFile(_) => "it is not a regular file".to_owned(),
            error => format!("its type is unknown ({error})"),
        };
        Failure::refusal(format!(
            "{} should be a boot archive, or not exist yet, but {reason}. Nothing was written and the file is unchanged: name another \
             file with -o, or move this one away.",
            path.display()
        ))
    })
}

/// Absolute paths of the directories; the first is the program's.
fn directories(arguments: &ArchiveBuild) -> Result<Vec<PathBuf>> {
    let given = if arguments.directories.is_empty() { &vec![PathBuf::from(".")] } else { &arguments.directories };
    given
        .iter()
        .map(|directory| {
            let path = directory.canonicalize().map_err(|error| Failure::io("read", directory, &error))?;
            if path.is_dir() {
                return Ok(path);
            }
            Err(Failure::refusal(format!(
                "{} should be a directory with the program or with its code, but it is a file. Name its directory, or put the \
                 command behind --.",
                directory.display()
            )))
        })
        .collect()
}

impl Interpreter {
    fn find(command: &[OsString]) -> Result<Self> {
        let command = if command.is_empty() { &[OsString::from("ruby")] } else { command };
        let Some(language) = language_of(command) else {
            return Err(Failure::refusal(format!(
                "{} should be a Ruby or Python command, but it leads to something else. Name the program that will be booted, such as \
                 snapboot archive build -- bin/rails server.",
                command[0].display()
            )));
        };
        let search_path = std::env::var_os("PATH").unwrap_or_default();
        let resolved = match resolve(command, &search_path) {
            Ok(resolved) => resolved,
            // A shell script that starts the real one, such as JRuby's.
            Err(_) if language == Language::Ruby => {
                let program = locate(&command[0], &search_path)?;
                return Ok(Interpreter { language, program, options: Vec::new(), script: None });
            }
            Err(failure) => return Err(failure),
        };
        let main = Main::split(language, resolved.argv, &search_path)?;
        Ok(Interpreter { language, program: resolved.program, options: main.options().to_vec(), script: main.script })
    }

    /// The program, whose own directory is `directory`.
    fn application(&self, directory: &Path) -> Application {
        match self.language {
            Language::Ruby => {
                Application::find(std::env::var_os("BUNDLE_GEMFILE").as_deref(), self.script.as_deref(), directory)
            }
            Language::Python => Application::of_program(self.script.as_deref().unwrap_or(&self.program)),
        }
    }

    /// The path at which boots look for its archive.
    fn place(&self, application: &Application) -> Result<PathBuf> {
        let is_named = std::env::var_os("SNAPBOOT_ARCHIVE").is_some_and(|named| !named.is_empty());
        if self.language == Language::Python && self.script.is_none() && !is_named {
            return Err(Failure::refusal(
                "An archive for all programs of a Python needs a place: write it with -o FILE, and have starts use it with \
                 SNAPBOOT_ARCHIVE=FILE. Or name one program behind --, such as snapboot archive build -- python app.py.",
            ));
        }
        place(application)
    }

    fn builder(&self) -> Result<PathBuf> {
        let installation = Installation::find()?;
        match self.language {
            Language::Ruby => installation.ruby_archive_builder(),
            Language::Python => installation.python_archive_builder(),
        }
    }

    /// Runs the builder. Returns its exit status and its messages.
    fn run(&self, directories: &[PathBuf], archive: &Path, spinner: &Spinner) -> Result<(ExitStatus, Vec<String>)> {
        let cannot = |error| Failure::io("run", &self.program, &error);
        let (_, stderr, output) = spinner.output().map_err(cannot)?;
        let mut command = Command::new(&self.program);
        command.args(&self.options).arg(self.builder()?);
        command.arg(self.script.as_deref().unwrap_or(Path::new(""))).args(directories);
        command.current_dir(&directories[0]).env("SNAPBOOT_ARCHIVE", archive);
        for name in ["SNAPBOOT_ARCHIVE_POLICY", "SNAPBOOT_ARCHIVE_READONLY", "SNAPBOOT_STATS"] {
            command.env_remove(name);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).spawn().map_err(cannot)?;
        drop(command);
        let mut messages = Vec::new();
        let stdout = child.stdout.take().expect("standard output is a pipe");
        for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
            match line.split_once(' ') {
                Some(("phase", phase)) => spinner.phase(phase),
                Some(("note", note)) => messages.push(note.to_owned()),
                _ => {}
            }
        }
        let status = child.wait().map_err(cannot)?;
        output.finish();
        Ok((status, messages))
    }
}
