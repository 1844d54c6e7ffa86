//! Just-in-time compilers, and whose code an image can hold.

use std::ffi::OsStr;
use std::fmt;

/// CRuby versions whose YJIT can be frozen. tests/ruby/yjit_test.rb has run on 3.3; run it on each new version. The
/// front end has the first of them (`YJIT_SINCE` in compilers.rb).
pub const YJIT: [&str; 2] = ["3.3", "3.4"];

/// CPython versions whose compiler can be frozen. Run tests/images/test_jit_python.py on each new version, and the
/// behaviour table with PYTHON_JIT=1 (tests/behaviour/README.md).
pub const CPYTHON: [&str; 2] = ["3.14", "3.15"];

/// The compiler that an option requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitOption {
    /// YJIT, or any compiler that Ruby chooses (`--jit`).
    Yjit,
    /// YJIT, with a log of the code that it generates.
    WritesOfCode,
    /// MJIT or RJIT.
    Other,
}

impl JitOption {
    /// Why no version can be frozen with it.
    pub fn refused(self) -> Option<JitRefusal> {
        match self {
            JitOption::Yjit => None,
            JitOption::WritesOfCode => Some(JitRefusal::WritesOfCode),
            JitOption::Other => Some(JitRefusal::OtherCompiler),
        }
    }
}

/// Why Ruby cannot be frozen with a compiler, worded to continue the message about an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitRefusal {
    /// It logs the code that it generates.
    WritesOfCode,
    /// It is MJIT or RJIT.
    OtherCompiler,
    /// This version's YJIT was not tried.
    OldYjit,
}

impl fmt::Display for JitRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JitRefusal::WritesOfCode => {
                f.write_str("it writes about the code that this process compiles, under its own pid")
            }
            JitRefusal::OtherCompiler => {
                f.write_str("code of MJIT and RJIT cannot be frozen; YJIT's can, from CRuby 3.3 on")
            }
            JitRefusal::OldYjit => write!(f, "YJIT's code can be frozen from CRuby {} on", YJIT[0]),
        }
    }
}

/// An option in RUBYOPT with which no image can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RubyoptRefusal {
    word: String,
    why: JitRefusal,
}

impl fmt::Display for RubyoptRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RUBYOPT has {}, and {}; take that out of RUBYOPT", self.word, self.why)
    }
}

/// The compiler that a word of a command line or of RUBYOPT requests; None for other options, and for those that turn a
/// compiler off.
pub fn option(word: &OsStr) -> Option<JitOption> {
    let text = word.to_string_lossy();
    let long = text.strip_prefix("--")?;
    if let Some(features) = long.strip_prefix("enable=") {
        return features.split(',').find_map(compiler);
    }
    compiler(long.strip_prefix("enable-").unwrap_or(long))
}

/// `option` comes without its leading dashes.
fn compiler(option: &str) -> Option<JitOption> {
    let name = option.split('=').next().unwrap_or_default();
    let (compiler, setting) = name.split_once('-').unwrap_or((name, ""));
    match compiler {
        "yjit" if ["perf", "log", "dump"].iter().any(|writes| setting.starts_with(writes)) => {
            Some(JitOption::WritesOfCode)
        }
        "yjit" | "jit" => Some(JitOption::Yjit),
        "mjit" | "rjit" => Some(JitOption::Other),
        _ => None,
    }
}

/// Why no image can be made with this value of RUBYOPT. `minor` is the version of Ruby, such as `3.3`.
pub fn refused_in_rubyopt(value: &OsStr, minor: &str) -> Option<RubyoptRefusal> {
    let text = value.to_string_lossy();
    text.split_whitespace().find_map(|word| {
        let option = option(OsStr::new(word))?;
        let old = (!YJIT.contains(&minor)).then_some(JitRefusal::OldYjit);
        Some(RubyoptRefusal { word: word.to_owned(), why: option.refused().or(old)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_compilers_are_told_from_others() {
        use JitOption::*;
        let cases = [
            ("--yjit", Some(Yjit)),
            ("--jit", Some(Yjit)),
            ("--enable=gems,yjit", Some(Yjit)),
            ("--enable-yjit", Some(Yjit)),
            ("--yjit-exec-mem-size=8", Some(Yjit)),
            ("--yjit-stats", Some(Yjit)),
            ("--yjit-perf=codegen", Some(WritesOfCode)),
            ("--yjit-log=/tmp", Some(WritesOfCode)),
            ("--yjit-dump-disasm", Some(WritesOfCode)),
            ("--mjit", Some(Other)),
            ("--mjit-wait", Some(Other)),
            ("--enable=rjit", Some(Other)),
            ("--disable=yjit", None),
            ("--disable-yjit", None),
            ("--enable=gems", None),
            ("-W:no-jit", None),
            ("-rjit", None),
        ];
        for (word, expected) in cases {
            assert_eq!(option(OsStr::new(word)), expected, "{word}");
        }
    }

    #[test]
    fn what_rubyopt_turns_on_is_refused_by_version_and_name() {
        let refused = |value, minor| refused_in_rubyopt(OsStr::new(value), minor).map(|refusal| refusal.to_string());
        for minor in YJIT {
            assert_eq!(refused("-W0 --yjit --yjit-call-threshold=5", minor), None);
            assert!(refused("--yjit --yjit-perf", minor).unwrap().contains("--yjit-perf"));
            assert!(refused("--rjit", minor).unwrap().contains("MJIT and RJIT"));
        }
        assert!(refused("-W0 --yjit", "3.2").unwrap().contains("from CRuby 3.3 on"));
        assert_eq!(refused("-rbundler/setup -W:no-jit", "3.1"), None);
    }
}
