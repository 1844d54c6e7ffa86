//! Runs a probe in an interpreter to identify its language, implementation and version, and to find out what in it
//! cannot be frozen yet.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use failure::{Failure, Result};

use super::arch;
use super::elf::{machine_name, Executable};
use super::jit;
use crate::deadline;

/// The languages that can be frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// CPython.
    Python,
    /// CRuby.
    Ruby,
}

/// An interpreter that can be frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Its language.
    pub language: Language,
    /// Name and version, such as `CPython 3.11.7`.
    pub label: String,
    /// The file to execute.
    pub program: PathBuf,
}

/// Tested CPython versions, `major.minor`; others are refused. Before adding one, check how its start, its end and its
/// main part differ from the last one's (`sys.version_info` in the front end), and run CPython's own tests
/// (tests/runtimes). tests/repository/test_signposts.py compares the other lists of versions with this one.
pub const PYTHONS: [&str; 8] = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15"];
/// Those of which free-threaded builds were tested as well.
pub const FREE_THREADED: [&str; 1] = ["3.13"];
/// Tested CRuby versions; others are refused. Before adding one, check `RUBY_VERSION` in the front end (with Prism:
/// prism_script.rb), the length of texts embedded in objects (`LONG_NAME` in main_script.rb and crates/installation
/// lib.rs), and run tests/runtimes. tests/repository/test_signposts.py
/// compares the other lists with this one.
pub const RUBIES: [&str; 4] = ["3.1", "3.2", "3.3", "3.4"];

/// An interpreter answers within this time.
const LIMIT: Duration = Duration::from_secs(20);

/// Works in Python 2.7 and in every implementation. It imports nothing, so it is fast and reads no files of the user.
const PYTHON_PROBE: &str = r#"
import sys
try:
    from posix import readlink
    exe = readlink("/proc/self/exe")
except Exception:
    exe = ""
name = getattr(getattr(sys, "implementation", None), "name", "cpython")
jit = getattr(getattr(sys, "_jit", None), "is_enabled", lambda: False)()
version = ".".join(str(part) for part in sys.version_info[:3])
threads = "free-threaded" if "t" in getattr(sys, "abiflags", "") else ""
sys.stdout.write("\0".join(["python", name, version, threads, "JIT" if jit else "", exe, sys.executable or ""]))
"#;

const RUBY_PROBE: &str = r#"
require 'rbconfig'
engine = defined?(RUBY_ENGINE) ? RUBY_ENGINE : 'ruby'
exe = File.readlink('/proc/self/exe') rescue ''
jit = defined?(RubyVM::YJIT) && RubyVM::YJIT.enabled? ? 'YJIT' : ''
$stdout.write(['ruby', engine, RUBY_VERSION, '', jit, exe, RbConfig.ruby].join("\0"))
"#;

/// Runs the probe in the interpreter at `program`. `environment` is that of the freeze.
///
/// Refuses a file that is not an interpreter, or one that cannot be frozen; the message says which.
pub fn probe(program: &Path, environment: &[(OsString, OsString)]) -> Result<Runtime> {
    let file = trust::look::read(program).map_err(|error| Failure::io("read", program, &error))?;
    check_executable(program, &file)?;
    let language = language_of(program, &file)?;
    let answer = answer(program, language, environment)?;
    // A wrapper (a shim that is a program) answers for another file. Freeze that one.
    let real = PathBuf::from(&answer.exe);
    let own = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let program =
        if !answer.exe.is_empty() && real != own { PathBuf::from(&answer.executable) } else { program.to_owned() };
    answer.check(&program)?;
    if language == Language::Ruby {
        let rubyopt = environment.iter().find(|(name, _)| name == "RUBYOPT");
        if let Some(why) = rubyopt.and_then(|(_, value)| jit::refused_in_rubyopt(value, answer.minor())) {
            return Err(not_yet(&answer.label(), &why.to_string()));
        }
    }
    Ok(Runtime { language, label: answer.label(), program })
}

/// The loader that starts a program, such as `/lib64/ld-linux-x86-64.so.2`.
pub fn loader_of(program: &Path) -> Result<PathBuf> {
    let file = trust::look::read(program).map_err(|error| Failure::io("read", program, &error))?;
    check_executable(program, &file)
}

/// Refuses a program into which the freezer cannot be preloaded; returns the loader of any other.
fn check_executable(program: &Path, file: &[u8]) -> Result<PathBuf> {
    let path = program.display();
    match Executable::parse(file) {
        Executable::Dynamic { loader } if loader.contains("musl") => {
            Err(not_yet(&path.to_string(), "it is linked against musl, and Snapboot knows only glibc"))
        }
        Executable::Dynamic { loader } => Ok(PathBuf::from(loader)),
        Executable::Static => Err(Failure::refusal(format!(
            "{path} is a static binary: the freezer cannot be loaded into it. Use a Python or Ruby that is linked \
             dynamically (ldd {path} lists its libraries then)."
        ))),
        Executable::Other { machine } => Err(not_yet(
            &path.to_string(),
            &format!("it is for {}, and this Snapboot is for {}", machine_name(machine), arch::NAME),
        )),
        Executable::Unknown => Err(Failure::refusal(format!("{path} is not a program that Linux can start."))),
    }
}

/// Guesses the language for the probe from the file name, or from a function that an interpreter's `main` calls.
fn language_of(program: &Path, file: &[u8]) -> Result<Language> {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let names = [program, &real].map(|path| path.file_name().unwrap_or_default().as_bytes().to_owned());
    let named =
        |starts: &[&str]| names.iter().any(|name| starts.iter().any(|start| name.starts_with(start.as_bytes())));
    let calls = |symbols: &[&str]| symbols.iter().any(|symbol| contains(file, symbol.as_bytes()));
    if named(&["python", "pypy", "graalpy"]) || calls(&["Py_BytesMain", "_Py_UnixMain"]) {
        Ok(Language::Python)
    } else if named(&["ruby", "jruby", "truffleruby"]) || calls(&["ruby_run_node"]) {
        Ok(Language::Ruby)
    } else {
        Err(Failure::refusal(format!(
            "{} is neither Python nor Ruby, and only programs of these two can be frozen. Name python or ruby with \
             arguments, or a script whose first line names one of them.",
            program.display()
        )))
    }
}

fn contains(file: &[u8], symbol: &[u8]) -> bool {
    // NUL-terminated, as in a symbol table.
    file.split(|&byte| byte == 0).any(|word| word == symbol)
}

/// An interpreter's answer to the probe.
struct ProbeReply {
    language: Language,
    implementation: String,
    version: String,
    threads: String,
    jit: String,
    exe: OsString,
    executable: OsString,
}

fn answer(program: &Path, language: Language, environment: &[(OsString, OsString)]) -> Result<ProbeReply> {
    let mut command = Command::new(program);
    let environment = environment.iter().filter(|(name, _)| name != "RUBYOPT").map(|(name, value)| (name, value));
    command.env_clear().envs(environment);
    match language {
        Language::Python => command.args(["-E", "-s", "-S", "-c", PYTHON_PROBE]),
        Language::Ruby => command.args(["--disable=gems", "-e", RUBY_PROBE]),
    };
    let failed = |why: &str| {
        Failure::refusal(format!(
            "{} should be a Python or Ruby interpreter, but it did not say so: {why}. Check that it starts by itself.",
            program.display()
        ))
    };
    let answer = deadline::run(&mut command, LIMIT)
        .map_err(|error| failed(&error.to_string()))?
        .ok_or_else(|| failed("no answer within 20 s"))?;
    let fields: Vec<&[u8]> = answer.stdout.split(|&byte| byte == 0).collect();
    let &[_, implementation, version, threads, jit, exe, executable] = fields.as_slice() else {
        let said = String::from_utf8_lossy(&answer.stderr);
        return Err(failed(said.lines().next().unwrap_or(&format!("it ended with {}", answer.status))));
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let path = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    Ok(ProbeReply {
        language,
        implementation: text(implementation),
        version: text(version),
        threads: text(threads),
        jit: text(jit),
        exe: path(exe),
        executable: path(executable),
    })
}

impl ProbeReply {
    fn label(&self) -> String {
        let name = match self.implementation.as_str() {
            "cpython" => "CPython",
            "ruby" => "CRuby",
            "pypy" => "PyPy",
            "graalpy" => "GraalPy",
            "jruby" => "JRuby",
            "truffleruby" => "TruffleRuby",
            other => other,
        };
        format!("{name} {}", self.version)
    }

    /// Such as `3.3`.
    fn minor(&self) -> &str {
        self.version.rsplit_once('.').map_or(self.version.as_str(), |(minor, _)| minor)
    }

    /// Refuses an untested interpreter by name.
    fn check(&self, program: &Path) -> Result<()> {
        let label = self.label();
        let (own, tried): (_, &[&str]) = match self.language {
            Language::Python => ("cpython", &PYTHONS),
            Language::Ruby => ("ruby", &RUBIES),
        };
        let minor = self.minor();
        let is_yjit = self.jit == "YJIT";
        let is_cpythons = own == "cpython" && jit::CPYTHON.contains(&minor);
        let why = if self.implementation != own {
            "only CPython and CRuby can be frozen".to_owned()
        } else if !self.threads.is_empty() && !FREE_THREADED.contains(&minor) {
            let tried = range(&FREE_THREADED);
            format!("it is a free-threaded build, and Snapboot was tried with those of {tried}; use an ordinary build of the same version")
        } else if is_yjit && tried.contains(&minor) && !jit::YJIT.contains(&minor) {
            format!("YJIT is enabled, and its code can be frozen from CRuby {} on; turn it off", jit::YJIT[0])
        } else if !self.jit.is_empty() && !is_yjit && !is_cpythons {
            format!("{} is enabled, and its code cannot be frozen; turn it off", self.jit)
        } else if !tried.contains(&minor) {
            format!("Snapboot was tried with {}", range(tried))
        } else {
            return Ok(());
        };
        Err(not_yet(&format!("{label} ({})", program.display()), &why))
    }
}

/// `3.8 to 3.15`, or the only version.
pub fn range(versions: &[&str]) -> String {
    match versions {
        [only] => (*only).to_owned(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    }
}

fn not_yet(what: &str, why: &str) -> Failure {
    Failure::refusal(format!("{what} cannot be frozen: not yet. Here {why}. The program itself runs as before."))
}

/// Whether a file is named like an interpreter, such as `python3.13`, or `python3.13t` of a free-threaded build.
pub fn looks_like_interpreter(name: &OsStr) -> bool {
    let text = name.to_string_lossy();
    let is_version = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    ["python", "pypy", "ruby", "jruby", "truffleruby"].iter().any(|start| {
        text.strip_prefix(start).is_some_and(|rest| match rest.strip_suffix('t') {
            Some(version) => *start == "python" && !version.is_empty() && is_version(version),
            None => is_version(rest),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(implementation: &str, version: &str, threads: &str, jit: &str) -> Option<String> {
        let language = if implementation.contains("ruby") { Language::Ruby } else { Language::Python };
        let [implementation, version, threads, jit] = [implementation, version, threads, jit].map(str::to_owned);
        let (exe, executable) = (OsString::new(), OsString::new());
        let answer = ProbeReply { language, implementation, version, threads, jit, exe, executable };
        answer.check(Path::new("/bin/x")).err().map(|failure| failure.message)
    }

    #[test]
    fn what_was_not_tried_gets_a_plain_not_yet() {
        assert_eq!(message("cpython", "3.11.7", "", ""), None);
        assert_eq!(message("ruby", "3.1.2", "", ""), None);
        assert_eq!(message("ruby", "3.3.8", "", "YJIT"), None);
        assert_eq!(message("cpython", "3.13.5", "free-threaded", ""), None);
        assert_eq!(message("cpython", "3.14.10", "", "JIT"), None);
        assert_eq!(message("ruby", "3.4.1", "", "YJIT"), None);
        let cases = [
            (message("pypy", "3.10.14", "", ""), "PyPy 3.10.14"),
            (message("jruby", "3.1.4", "", ""), "JRuby 3.1.4"),
            (message("truffleruby", "3.3.7", "", ""), "TruffleRuby"),
            (
                message("cpython", "3.14.1", "free-threaded", ""),
                "free-threaded build, and Snapboot was tried with those of 3.13;",
            ),
            (message("cpython", "3.13.1", "free-threaded", "JIT"), "JIT is enabled"),
            (message("cpython", "3.7.17", "", ""), "3.8 to 3.15"),
            (message("cpython", "3.80.1", "", ""), "3.8 to 3.15"),
            (message("ruby", "3.0.7", "", ""), "tried with 3.1 to 3.4"),
            (message("ruby", "3.1.2", "", "YJIT"), "YJIT is enabled"),
            (message("ruby", "3.2.0", "", "YJIT"), "from CRuby 3.3 on"),
            (message("ruby", "3.5.0", "", "YJIT"), "tried with 3.1 to 3.4"),
            (message("cpython", "3.13.1", "", "JIT"), "JIT is enabled"),
        ];
        for (message, expected) in cases {
            let message = message.expect(expected);
            assert!(message.contains(expected) && message.contains("not yet"), "{message}");
        }
    }

    #[test]
    fn programs_that_are_no_interpreter_are_refused() {
        let refused = probe(Path::new("/bin/ls"), &[]).unwrap_err();
        assert!(refused.message.contains("neither Python nor Ruby"), "{}", refused.message);
    }

    #[test]
    fn interpreters_are_told_by_their_names() {
        for name in ["python", "python3", "python3.11", "python3.13t", "ruby", "ruby3.1", "pypy3"] {
            assert!(looks_like_interpreter(OsStr::new(name)), "{name}");
        }
        for name in ["python3-config", "pythonw", "pythont", "ruby3.1t", "ruby-lsp", "py"] {
            assert!(!looks_like_interpreter(OsStr::new(name)), "{name}");
        }
    }
}
