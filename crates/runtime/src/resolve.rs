//! Resolves a command to the program that the shell and the kernel finally start, through shebangs, `env` and shims.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use image_file::kind::Kind;

use super::locate::{image_refusal, locate};
use super::shebang::{env_command, Shebang};
use super::shell::{self, KnownShims};

/// A command as the kernel would start it.
#[derive(Debug)]
pub struct Resolved {
    /// The interpreter's file; absolute, symbolic links kept.
    pub program: PathBuf,
    /// Its argv.
    pub argv: Vec<OsString>,
    /// The path by which starts call it: an entry in its place (crates/entry), otherwise the interpreter's own.
    pub called: PathBuf,
    /// The file that the command names. The default image name comes from it.
    pub named: PathBuf,
    /// The file that the kernel executes last, which gives the process its name (comm): a script whose first line names
    /// the interpreter itself; otherwise the interpreter, if `env`, a shell or a shim starts it.
    pub executed: PathBuf,
    /// The files on the way, the command itself first.
    pub followed: Vec<PathBuf>,
    /// The shim that was followed, if any.
    pub shim: Option<Shim>,
}

/// A program of a version manager that starts another one, such as `python` of pyenv.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shim {
    /// The shim.
    pub script: PathBuf,
    /// The program that it currently starts.
    pub program: PathBuf,
}

impl Shim {
    /// The message to the user about it.
    pub fn message(&self) -> String {
        format!(
            "{} is a shim; the image always starts the program that the shim leads to now, {}",
            self.script.display(),
            self.program.display()
        )
    }
}

/// The kernel follows five scripts; `env` and shims add further steps.
const MAX_STEPS: usize = 12;
/// Enough for a first line and for the lines of a shell trick (bytes).
const START: u64 = 4096;

/// Resolves `command` to the executable that is finally started. `search_path` is the value of PATH.
pub fn resolve(command: &[OsString], search_path: &OsStr) -> Result<Resolved> {
    resolve_knowing(command, search_path, &|_, _| None)
}

/// Like [`resolve`], for a caller that caches shims. `known` gets a shim and its text, and returns the program if it is
/// cached. Otherwise the shim's manager is run, which takes time.
pub fn resolve_knowing(command: &[OsString], search_path: &OsStr, known: &KnownShims<'_>) -> Result<Resolved> {
    let mut argv = command.to_vec();
    let mut program = locate(&argv[0], search_path)?;
    let mut resolved = Resolved {
        program: PathBuf::new(),
        argv: Vec::new(),
        called: PathBuf::new(),
        named: program.clone(),
        executed: program.clone(),
        followed: Vec::new(),
        shim: None,
    };
    for _ in 0..MAX_STEPS {
        let start = start_of(&program)?;
        resolved.followed.push(program.clone());
        if start.starts_with(b"#!") {
            let Some(shebang) = Shebang::parse(&start) else {
                return Err(Failure::refusal(format!(
                    "the first line of {} names no interpreter, or its path is longer than the kernel reads (256 bytes). \
                     Name the interpreter yourself: python {0}, ruby {0}.",
                    program.display()
                )));
            };
            let script = std::mem::replace(&mut program, PathBuf::from(&shebang.interpreter)).into_os_string();
            locate(program.as_os_str(), search_path).map_err(|failure| {
                Failure::refusal(format!("the first line of {}: {}", script.display(), failure.message))
            })?;
            let arguments = argv.split_off(1);
            argv = [Some(shebang.interpreter), shebang.argument, Some(script)].into_iter().flatten().collect();
            argv.extend(arguments);
        } else if !start.starts_with(b"\x7fELF") {
            return Err(Failure::refusal(format!(
                "{0} is neither a program nor a script with a #! line, so Snapboot cannot find out which interpreter runs it. \
                 Name the interpreter: python {0}, ruby {0}.",
                program.display()
            )));
        } else if entry::is_entry(&start) {
            let Some(behind) = entry::interpreter_behind(&program) else { return Err(entry_refusal(&program)) };
            resolved.called = absolute(&program)?;
            program = behind;
        } else if program.file_name() == Some(OsStr::new("env")) {
            argv = env_command(&argv[1..]).map_err(|argument| env_refusal(&argument))?;
            program = locate(&argv[0], search_path)?;
            resolved.executed.clone_from(&program);
        } else if program.file_name().is_some_and(shell::is_shell) {
            if argv.iter().skip(1).map_while(|argument| argument.to_str()?.strip_prefix('-')).any(runs_text) {
                return Err(shell_refusal(&program));
            }
            let script = argv.iter().skip(1).position(|argument| !argument.as_encoded_bytes().starts_with(b"-"));
            let Some(script) = script.map(|position| position + 1) else { return Err(shell_refusal(&program)) };
            let path = PathBuf::from(&argv[script]);
            let followed = shell::follow(&path, &start_of(&path)?, known)?;
            if followed.is_shim {
                resolved.shim = Some(Shim { script: path, program: PathBuf::from(&followed.argv[0]) });
            }
            argv = followed.argv.into_iter().chain(argv.drain(script + 1..).collect::<Vec<_>>()).collect();
            program = locate(&argv[0], search_path)?;
            resolved.executed.clone_from(&program);
        } else {
            if Kind::is_image(&program) {
                return Err(image_refusal(&program));
            }
            resolved.program = absolute(&program)?;
            resolved.argv = argv;
            if resolved.called.as_os_str().is_empty() {
                resolved.called.clone_from(&resolved.program);
            }
            return Ok(resolved);
        }
    }
    Err(Failure::refusal(format!(
        "{} leads from script to script without end (or in more than {MAX_STEPS} steps). Check the first lines of: {}.",
        resolved.named.display(),
        resolved.followed.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )))
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Failure::io("find", path, &error))
}

fn start_of(path: &Path) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    trust::look::open(path)
        .and_then(|file| file.take(START).read_to_end(&mut start))
        .map_err(|error| Failure::io("read", path, &error))?;
    Ok(start)
}

fn env_refusal(argument: &OsStr) -> Failure {
    Failure::refusal(format!(
        "an image cannot do what env does for \"{}\". Set variables before the freeze and pass them in \
         (NAME=VALUE snapboot freeze --env NAME ...), and name the program itself.",
        argument.display()
    ))
}

fn entry_refusal(program: &Path) -> Failure {
    Failure::refusal(format!(
        "{} is the program that `snapboot enable` puts in the place of an environment's interpreter, and the interpreter that was there is \
         not in the folder {} beside it. Name the interpreter of an environment (.venv/bin/python), or make the environment anew.",
        program.display(),
        entry::FOLDER
    ))
}

/// Whether an option of a shell, without its dash, means that the text of a command follows.
fn runs_text(option: &str) -> bool {
    !option.starts_with('-') && option.contains('c')
}

fn shell_refusal(program: &Path) -> Failure {
    Failure::refusal(format!(
        "{} is a shell, and a shell cannot be frozen: expected the Python or Ruby program that it starts. Name that \
         (snapboot freeze -- python app.py). What the shell does besides is for the freeze and for each start: `cd` before both; variables \
         set before both, and named by --env for the freeze; pipes and redirections around the image.",
        program.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{set_permissions, write, Permissions};
    use std::os::unix::fs::{symlink, PermissionsExt};

    fn script(path: &Path, text: &str) {
        write(path, text).unwrap();
        set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }

    fn argv(resolved: &Resolved) -> Vec<&str> {
        resolved.argv.iter().map(|argument| argument.to_str().unwrap()).collect()
    }

    /// A directory with an "interpreter" (any ELF file that is neither env nor a shell) linked as `bin/python3`.
    fn scene() -> (tempfile::TempDir, PathBuf, OsString) {
        let top = tempfile::tempdir().unwrap();
        let bin = top.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        symlink(std::env::current_exe().unwrap(), bin.join("python3")).unwrap();
        let path = OsString::from(format!("{}:/usr/bin:/bin", bin.display()));
        (top, bin, path)
    }

    #[test]
    fn links_are_kept_since_a_virtual_environment_is_told_by_its_link() {
        let (_top, bin, path) = scene();
        let resolved = resolve(&["python3".into(), "-c".into(), "pass".into()], &path).unwrap();
        assert_eq!(resolved.program, bin.join("python3"));
        assert_eq!(argv(&resolved), ["python3", "-c", "pass"]);
    }

    #[test]
    fn scripts_are_followed_as_the_kernel_does() {
        let (top, bin, path) = scene();
        let python = bin.join("python3");
        let (direct, env, nested) = (top.path().join("direct"), top.path().join("env-s"), top.path().join("nested"));
        script(&direct, &format!("#!{} -I -E\n", python.display()));
        script(&env, "#!/usr/bin/env -S python3 -I -E\n");
        script(&nested, &format!("#!{} x\n", env.display()));
        let [direct, env, nested] = [&direct, &env, &nested].map(|path| path.to_str().unwrap());
        let resolved = resolve(&[direct.into(), "a".into()], &path).unwrap();
        assert_eq!(argv(&resolved), [python.to_str().unwrap(), "-I -E", direct, "a"]);
        assert_eq!(resolved.program, python);
        assert_eq!(argv(&resolve(&[env.into(), "a".into()], &path).unwrap()), ["python3", "-I", "-E", env, "a"]);
        assert_eq!(argv(&resolve(&[nested.into()], &path).unwrap()), ["python3", "-I", "-E", env, "x", nested]);
    }

    #[test]
    fn a_long_shebang_is_followed_through_the_shell() {
        let (top, bin, path) = scene();
        let tool = top.path().join("tool");
        script(&tool, &format!("#!/bin/sh\n'''exec' \"{}\" \"$0\" \"$@\"\n' '''\n", bin.join("python3").display()));
        let resolved = resolve(&[tool.clone().into(), "--version".into()], &path).unwrap();
        let expected = [bin.join("python3").into_os_string(), tool.into(), "--version".into()];
        assert_eq!(resolved.argv, expected);
    }

    #[test]
    fn a_shim_is_followed_and_named() {
        let (top, bin, path) = scene();
        let (shims, manager) = (top.path().join("shims"), top.path().join("manager"));
        std::fs::create_dir(&shims).unwrap();
        script(&manager, &format!("#!/bin/sh\necho {}/\"$2\"\n", bin.display()));
        let shim = shims.join("python3");
        script(&shim, &format!("#!/bin/sh\nexec \"{}\" exec \"$program\" \"$@\"\n", manager.display()));
        let resolved = resolve(&[shim.clone().into(), "a.py".into()], &path).unwrap();
        assert_eq!(resolved.shim, Some(Shim { script: shim, program: bin.join("python3") }));
        assert_eq!(argv(&resolved), [bin.join("python3").to_str().unwrap(), "a.py"]);
        assert_eq!(resolve(&["python3".into()], &path).unwrap().shim, None);
    }

    #[test]
    fn what_leads_nowhere_is_refused_with_the_reason() {
        let (top, _bin, path) = scene();
        let cases = [
            ("loop", format!("#!{}/loop\n", top.path().display()), "without end"),
            ("missing", "#!/nowhere/python\n".to_owned(), "first line of"),
            ("plain", "print(1)\n".to_owned(), "neither a program nor a script"),
            ("shell", "#!/bin/sh\necho\n".to_owned(), "shell script"),
            ("env-i", "#!/usr/bin/env -S -i python3\n".to_owned(), "--env NAME"),
        ];
        for (name, text, expected) in cases {
            let file = top.path().join(name);
            script(&file, &text);
            let message = resolve(&[file.into()], &path).unwrap_err().message;
            assert!(message.contains(expected), "{name}: {message}");
        }
        assert!(resolve(&["/bin/sh".into()], &path).unwrap_err().message.contains("is a shell"));
    }
}
