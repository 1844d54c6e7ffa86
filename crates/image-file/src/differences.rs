//! All differences between the state that an image recorded and the present one, as text.
//!
//! crates/inputs compares and words them, for the launcher as well, which stops at the first difference.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use failure::{Failure, Result};
use image::{policy, Tables};
use inputs::differences::{self, Difference};
use inputs::environment::{self, LOCALE};
use inputs::system::Check;
use inputs::{directories, facts, files};

pub use crate::machine::Seen;

use crate::machine::Machine;
use crate::this_process::ThisProcess;
use crate::ImageFile;

/// The name of the fact about an image's locale.
pub const LOCALE_OF_TEXT: &str = "the locale of text";

/// The subject of a difference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A variable.
    Variable(OsString),
    /// A path.
    Place(PathBuf),
    /// A fact about machine, user, process or locale, by its name.
    Fact(String),
    /// A fact about the terminal, by its name.
    Terminal(String),
    /// The CPU.
    Cpu,
    /// The kernel, or one of a file's or directory's many answers.
    Other,
}

impl Subject {
    fn new(difference: &Difference<'_, '_>) -> Subject {
        let path = |path: &[u8]| PathBuf::from(OsStr::from_bytes(path));
        let variable = |name: &[u8]| Subject::Variable(OsStr::from_bytes(name).to_owned());
        match difference {
            Difference::Variable(difference) if difference.name() == LOCALE => Subject::Fact(LOCALE_OF_TEXT.to_owned()),
            Difference::Variable(environment::Difference::Changed(environment::ALL)) => Subject::Other,
            Difference::Variable(difference) => variable(difference.name()),
            Difference::Fact(facts::Difference { fact, recorded }) => match fact.kind {
                facts::fact_kind::SEARCHED => variable(facts::searched::variable(recorded)),
                kind if facts::is_of_terminal(kind) => Subject::Terminal(facts::name(kind, fact.of).to_owned()),
                kind => Subject::Fact(facts::name(kind, fact.of).to_owned()),
            },
            Difference::Cpu(_) => Subject::Cpu,
            Difference::File(files::Difference::Answer { .. }) => Subject::Other,
            Difference::Directory(directories::Difference::Answer { answer, .. }) if image::is_list(answer.kind) => {
                Subject::Other
            }
            Difference::Directory(difference) => {
                let (directory, name) = (path(difference.path()), difference.name());
                Subject::Place(if name.is_empty() { directory } else { directory.join(path(name)) })
            }
            Difference::File(difference) => Subject::Place(path(difference.path())),
        }
    }

    /// The name of the variable or fact; None for subjects that many images share.
    pub fn name(&self) -> Option<String> {
        match self {
            Subject::Variable(name) => Some(name.to_string_lossy().into_owned()),
            Subject::Fact(name) | Subject::Terminal(name) => Some(name.clone()),
            Subject::Place(_) | Subject::Cpu | Subject::Other => None,
        }
    }
}

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its subject.
    pub subject: Subject,
    /// The recorded and the present state.
    pub text: String,
}

/// All differences between this process and what the variants of an image recorded, one a line.
pub fn all_lines(image: &ImageFile) -> Result<Vec<String>> {
    Ok(lines_for_start(image, &ThisProcess::ITSELF, &Seen::default())?.into_iter().map(|line| line.text).collect())
}

/// The same for a start by another process, as far as `process` describes it, with the subject of each line. `seen`
/// caches the files of images compared before.
pub fn lines_for_start(image: &ImageFile, process: &ThisProcess, seen: &Seen) -> Result<Vec<Line>> {
    lines_under(image.settings()?.policy, image, process, seen)
}

/// The same for an image that another machine has made: files are compared by content, whatever its policy says.
pub fn lines_by_content(image: &ImageFile, process: &ThisProcess, seen: &Seen) -> Result<Vec<Line>> {
    lines_under(policy::CONTENT, image, process, seen)
}

fn lines_under(policy: u32, image: &ImageFile, process: &ThisProcess, seen: &Seen) -> Result<Vec<Line>> {
    let mut variants = Vec::new();
    let name = image.name();
    for variant in &image.variants {
        let machine = Machine { seen, answers: &variant.answers, image: &name };
        let mut lines = Lines { process, machine: &machine, found: Vec::new() };
        let tables = variant.tables();
        lines.compare_process(&tables, seen.environment()?)?;
        differences::compare_files(&tables, policy, &machine, &mut lines)?;
        differences::compare_libraries(&tables, policy, &machine, &mut lines)?;
        variants.push(lines.found);
    }
    Ok(merge(variants))
}

/// Collects all differences as text.
struct Lines<'a> {
    process: &'a ThisProcess,
    machine: &'a Machine<'a>,
    found: Vec<Line>,
}

impl Lines<'_> {
    /// Compares everything but files and directories. `environment` holds entries separated by NULs.
    fn compare_process<'t>(&mut self, tables: &Tables<'t>, environment: &'t [u8]) -> Result<()> {
        differences::compare_cpu(tables, self)?;
        differences::compare_start(tables, environment.split(|&byte| byte == 0), self.process, self)
    }
}

impl<'t> Check<'t> for Lines<'_> {
    type Stop = Failure;

    fn differs(&mut self, difference: Difference<'t, '_>) -> Result<()> {
        let mut text = String::new();
        difference
            .write_details(self.process, self.machine, write_time, &mut text)
            .map_err(|_| Failure::failed("cannot write a difference down"))?;
        let subject = Subject::new(&difference);
        // File names may contain line ends, so only the lines about a CPU are split.
        let lines = if matches!(difference, Difference::Cpu(_)) { text.lines().collect() } else { vec![&*text] };
        self.found.extend(lines.into_iter().map(|line| Line { subject: subject.clone(), text: line.to_owned() }));
        Ok(())
    }
}

/// Merges the differences of all variants. A variant for another CPU, terminal or locale is left out if there are others.
fn merge(mut variants: Vec<Vec<Line>>) -> Vec<Line> {
    let is_of_terminal = |line: &Line| matches!(line.subject, Subject::Terminal(_));
    let is_of_cpu = |line: &Line| line.subject == Subject::Cpu;
    let is_of_locale = |line: &Line| line.subject == Subject::Fact(LOCALE_OF_TEXT.to_owned());
    for is_of_kind in [&is_of_cpu as &dyn Fn(&Line) -> bool, &is_of_terminal, &is_of_locale] {
        if !variants.iter().all(|lines| lines.iter().any(is_of_kind)) {
            variants.retain(|lines| !lines.iter().any(is_of_kind));
        }
    }
    let mut found: Vec<Line> = Vec::new();
    for line in variants.into_iter().flatten() {
        // Most differences are those of all variants.
        if !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

/// Writes a time (ns since 1970) in the form of RFC 3339.
fn write_time(ns: i64, out: &mut dyn Write) -> fmt::Result {
    match jiff::Timestamp::from_nanosecond(ns.into()) {
        Ok(time) => write!(out, "{time}"),
        Err(_) => write!(out, "{ns}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use image::{policy, Directory, Input, Item, Platform, Section, Settings, Variable};
    use image_writer::TablesWriter;

    use inputs::cpu;
    use recorder::Identity;

    use super::*;
    use crate::content_digest;

    fn lines(change: impl FnOnce(&mut TablesWriter), environment: &[(&str, &str)]) -> Vec<String> {
        let platform = Platform { vdso: [1; 16], vdso_size: 4096 };
        let mut writer = TablesWriter::new();
        writer.push(Section::Platform, &platform);
        cpu::native().for_each(|leaf| writer.push(Section::Cpu, &leaf));
        change(&mut writer);
        let bytes = writer.finish();
        let entries: Vec<String> = environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let tables = Tables::parse_unchecked_sum(&bytes).unwrap();
        let seen = Seen::default();
        let machine = Machine { seen: &seen, answers: &[], image: OsStr::new("") };
        let mut lines = Lines { process: &ThisProcess::ITSELF, machine: &machine, found: Vec::new() };
        lines.compare_process(&tables, entries.join("\0").as_bytes()).unwrap();
        let policy = tables.rows::<Settings>(Section::Settings).unwrap().next().unwrap_or_default().policy;
        differences::compare_files(&tables, policy, &machine, &mut lines).unwrap();
        lines.found.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn nothing_differs_where_the_image_was_made() {
        assert_eq!(lines(|_| {}, &[("HOME", "/h")]), Vec::<String>::new());
    }

    #[test]
    fn another_machine_is_named() {
        let mut leaves: Vec<_> = cpu::native().collect();
        leaves[0].ecx_mask |= 1 << 28;
        leaves[0].ecx ^= 1 << 28;
        leaves[1].edx_mask |= 1;
        leaves[1].edx ^= 1;
        let change = |tables: &mut TablesWriter| {
            tables.replace_all(Section::Cpu, &leaves);
        };
        let found = lines(change, &[]);
        let wanted = leaves[0].ecx >> 28 & 1 != 0;
        assert_eq!(found[0], format!("CPU: avx: {}", if wanted { "there -> gone" } else { "not there -> there" }));
        assert!(found[1].starts_with("CPU: bit 0 of edx in leaf 0x7.0: "), "{found:?}");
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn of_several_variants_those_for_this_start_count() {
        let cpu = Line { subject: Subject::Cpu, text: "CPU".to_owned() };
        let terminal = Line { subject: Subject::Terminal("output".to_owned()), text: "output".to_owned() };
        let [one, two] = ["one", "two"].map(|text| Line { subject: Subject::Other, text: text.to_owned() });
        let found = |variants: &[&[&Line]]| {
            merge(variants.iter().map(|lines| lines.iter().map(|line| (*line).clone()).collect()).collect())
                .into_iter()
                .map(|line| line.text)
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&[&[&terminal], &[]]), [""; 0]);
        assert_eq!(found(&[&[&cpu], &[&one]]), ["one"]);
        assert_eq!(found(&[&[&cpu], &[&cpu]]), ["CPU"]);
        assert_eq!(found(&[&[&one, &terminal], &[&two]]), ["two"]);
        assert_eq!(found(&[&[&one, &two], &[&two]]), ["one", "two"]);
        assert_eq!(found(&[&[&terminal], &[&terminal]]), ["output"]);
    }

    #[test]
    fn variables_are_named_without_their_values() {
        let record = |tables: &mut TablesWriter| {
            for (name, value) in [("A", Some("1")), ("B", Some("1")), ("C", None)] {
                let name = tables.text(name.as_bytes());
                let (value, present) =
                    (value.map_or([0; 16], |it: &str| image::digest(it.as_bytes())), value.is_some().into());
                tables.push(Section::Variables, &Variable { name, value, present, reserved: 0 });
            }
            let text = tables.text(b"PYTHON*");
            tables.push(Section::Patterns, &Item { text });
        };
        let found = lines(record, &[("A", "2"), ("C", "x"), ("PYTHONPATH", "/p")]);
        let expected = [
            "A: another value (only digests are kept)",
            "B: set -> unset",
            "C: unset -> set",
            "PYTHONPATH: unset -> set",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_file_is_shown_from_what_to_what() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("a.py");
        fs::write(&file, "abc").unwrap();
        let Identity { size, mtime, ctime } = Identity::read(&file).unwrap();
        let digest = content_digest(&file).unwrap();
        let with = |size, mtime: i64, digest, policy| {
            let record = |tables: &mut TablesWriter| {
                let path = tables.text(file.as_os_str().as_bytes());
                tables.push(Section::Inputs, &Input { path, size, mtime, ctime, digest });
                let path = tables.text(top.path().as_os_str().as_bytes());
                tables.push(Section::Directories, &Directory { path, inputs: 1, ..Directory::default() });
                tables.push(Section::Settings, &Settings { policy, ..Settings::default() });
            };
            lines(record, &[]).join("")
        };
        assert_eq!(with(size, mtime, [0; 16], policy::CHECK), "", "the same times are believed");
        assert_eq!(with(size, mtime - 1, digest, policy::CHECK), "", "the same content under another time");
        assert!(with(size, 0, [0; 16], policy::CHECK)
            .contains("a.py: another content of the same size, modified 1970-01-01T00:00:00Z -> "));
        assert!(with(size, mtime, [0; 16], policy::CONTENT).contains("another content"));
        assert!(with(9, mtime, digest, policy::CHECK).contains("a.py: 9 -> 3 bytes, modified "));
        assert_eq!(with(9, mtime, digest, policy::TRUST), "");
        fs::remove_file(&file).unwrap();
        assert!(with(size, mtime, digest, policy::CHECK).ends_with("a.py: there -> gone"));
    }
}
