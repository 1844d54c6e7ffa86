//! Shell scripts that only start a Python or Ruby program: the long-shebang trick of installers, and the shims of pyenv
//! and rbenv.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use failure::{Failure, Result};

use super::shebang::words;
use super::shims::shim_manager;
use crate::deadline;

/// A shim may start several shells.
const LIMIT: Duration = Duration::from_secs(20);

/// Looks up the program behind a shim, given the shim and its text; see [`crate::resolve_knowing`].
pub type KnownShims<'a> = dyn Fn(&Path, &[u8]) -> Option<PathBuf> + 'a;

/// The program that a shell script starts.
#[derive(Debug, PartialEq, Eq)]
pub struct Followed {
    /// The argv that replaces the script's own, up to the script's arguments.
    pub argv: Vec<OsString>,
    /// Whether the script is a shim, whose program depends on the version that the user chooses.
    pub is_shim: bool,
}

/// Whether a program of this file name is a shell.
pub fn is_shell(name: &OsStr) -> bool {
    ["sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"].iter().any(|shell| name == *shell)
}

/// Finds the program that `script`, with content `text`, starts. `known`: see [`crate::resolve_knowing`].
pub fn follow(script: &Path, text: &[u8], known: &KnownShims<'_>) -> Result<Followed> {
    let name = script.file_name().unwrap_or(OsStr::new(""));
    if let Some(mut argv) = exec_trick(script, text) {
        argv.push(script.as_os_str().to_owned());
        return Ok(Followed { argv, is_shim: false });
    }
    if let Some(program) = known(script, text) {
        return Ok(Followed { argv: vec![program.into_os_string()], is_shim: true });
    }
    let command = if let Some(manager) = shim_manager(text) {
        let mut which = Command::new(manager);
        which.arg("which").arg(name);
        Some(which)
    } else if name.as_bytes().starts_with(b"python") {
        let mut python = Command::new(script);
        python.args(["-c", "import sys; sys.stdout.write(sys.executable)"]);
        Some(python)
    } else if name.as_bytes().starts_with(b"ruby") {
        let mut ruby = Command::new(script);
        ruby.args(["-e", "require 'rbconfig'; print RbConfig.ruby"]);
        Some(ruby)
    } else {
        None
    };
    let Some(mut command) = command else {
        return Err(Failure::refusal(format!(
            "{} is a shell script, and a shell cannot be frozen. Name the Python or Ruby program that it starts.",
            script.display()
        )));
    };
    let program = answer(script, &mut command)?;
    Ok(Followed { argv: vec![program.into_os_string()], is_shim: true })
}

/// Runs a command that prints the path of the real program on its first line.
fn answer(script: &Path, command: &mut Command) -> Result<PathBuf> {
    let failed = |why: &str| {
        Failure::refusal(format!(
            "{} is a shell script that should lead to an interpreter, but running it did not show which one: {why}. \
             Name the interpreter itself.",
            script.display()
        ))
    };
    let answer = deadline::run(command, LIMIT).map_err(|error| failed(&error.to_string()))?;
    let answer = answer.ok_or_else(|| failed("it gave no answer within 20 s"))?;
    let line = answer.stdout.split(|&byte| byte == b'\n').next().unwrap_or(b"");
    let path = PathBuf::from(OsString::from_vec(line.to_vec()));
    if answer.status.success() && path.is_absolute() && path != script {
        return Ok(path);
    }
    let said = String::from_utf8_lossy(&answer.stderr);
    Err(failed(said.lines().next().unwrap_or("it did not name a program")))
}

/// The argv before `"$0" "$@"` in an `exec` of a script's first lines.
///
/// pip, conda and uv write `#!/bin/sh` and `'''exec' "/long path/python" "$0" "$@"` if the path is too long for the
/// kernel or contains a blank: a shell runs the second line, and Python reads it as a string.
fn exec_trick(script: &Path, text: &[u8]) -> Option<Vec<OsString>> {
    let line =
        text.split(|&byte| byte == b'\n').skip(1).take(3).find(|line| {
            [b"'''exec' ".as_slice(), b"\"exec\" ", b"'exec' "].iter().any(|start| line.starts_with(start))
        })?;
    let line = std::str::from_utf8(line).ok()?;
    let (before, _) = line.split_once("\"$0\" \"$@\"")?;
    let mut argv = match words(before.as_bytes()) {
        Some(argv) => argv,
        None => relocatable(script, before)?,
    };
    // `"exec"` itself.
    argv.remove(0);
    (!argv.is_empty()).then_some(argv)
}

/// The same for a relocatable virtual environment, whose scripts find the interpreter in their own directory: `'''exec'
/// "$(dirname -- "$(realpath -- "$0")")"/'python' "$0" "$@"`.
fn relocatable(script: &Path, line: &str) -> Option<Vec<OsString>> {
    let (exec, rest) = line.split_once("\"$(dirname")?;
    let (finding, rest) = rest.split_once(")\"/")?;
    let script = if finding.contains("realpath") { script.canonicalize().ok()? } else { script.to_owned() };
    let mut argv = words(exec.as_bytes())?;
    let mut rest = words(rest.as_bytes())?.into_iter();
    argv.push(script.parent()?.join(rest.next()?).into_os_string());
    argv.extend(rest);
    Some(argv)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(followed: &Followed) -> Vec<&str> {
        followed.argv.iter().map(|it| it.to_str().unwrap()).collect()
    }

    #[test]
    fn the_long_shebang_trick_of_pip_conda_and_uv() {
        let cases = [
            (
                "#!/bin/sh\n'''exec' \"/a b/bin/python\" \"$0\" \"$@\"\n' '''\nimport re\n",
                vec!["/a b/bin/python", "/v/tool"],
            ),
            ("#!/bin/sh\n'''exec' /long/python3.11 \"$0\" \"$@\" #'''\n", vec!["/long/python3.11", "/v/tool"]),
            ("#!/bin/sh\n\"exec\" \"/v/python\" -I \"$0\" \"$@\"\n", vec!["/v/python", "-I", "/v/tool"]),
        ];
        for (text, expected) in cases {
            assert_eq!(argv(&follow(Path::new("/v/tool"), text.as_bytes(), &|_, _| None).unwrap()), expected);
        }
    }

    #[test]
    fn relocatable_scripts_look_beside_themselves() {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().canonicalize().unwrap().join("tool");
        let text = "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python3' \"$0\" \"$@\"\n";
        std::fs::write(&script, text).unwrap();
        let followed = follow(&script, text.as_bytes(), &|_, _| None).unwrap();
        assert_eq!(followed.argv, [script.with_file_name("python3"), script.clone()]);
    }

    #[test]
    fn other_shell_scripts_are_refused() {
        let refused = follow(Path::new("/bin/deploy"), b"#!/bin/sh\nexec python app.py\n", &|_, _| None).unwrap_err();
        assert!(refused.message.contains("/bin/deploy is a shell script"), "{}", refused.message);
    }
}
