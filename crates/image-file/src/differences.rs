//! What differs between the state that an image recorded and what is here and now, in words: all of it, and from what to what.
//!
//! The launcher checks the same, stops at the first difference, and has the last word.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use failure::{Failure, Result};
use image::{directory_flag, policy, Directory, FileLookup, Input, MappedFile, Section, Settings, Tables, Text};
use inputs::cpu;
use inputs::environment::{Difference, ALL, LOCALE};
use inputs::facts::Value;
use inputs::lookups;
use recorder::Identity;

use crate::directory_answers::DirectoryAnswer;
use crate::this_process::ThisProcess;
use crate::{content_digest, ImageFile, Variant};

/// What is at places, for who compares many images in a moment: most depend on the same files.
#[derive(Default)]
pub struct Seen {
    places: RefCell<HashMap<PathBuf, Identity>>,
    digests: RefCell<HashMap<PathBuf, [u8; 16]>>,
    contents: RefCell<HashMap<PathBuf, Rc<Vec<u8>>>>,
    process: ProcessFiles,
}

/// What the kernel tells of this process, read once.
#[derive(Default)]
struct ProcessFiles {
    environment: OnceCell<Vec<u8>>,
}

impl ProcessFiles {
    fn environment(&self) -> Result<&[u8]> {
        read_once(&self.environment, environment, "/proc/self/environ")
    }
}

fn read_once<'a>(cell: &'a OnceCell<Vec<u8>>, read: fn() -> io::Result<Vec<u8>>, path: &str) -> Result<&'a [u8]> {
    if cell.get().is_none() {
        let _ = cell.set(read().map_err(|error| Failure::io("read", Path::new(path), &error))?);
    }
    Ok(cell.get().map_or(&[], Vec::as_slice))
}

impl Seen {
    fn identity(&self, path: &Path) -> io::Result<Identity> {
        if let Some(known) = self.places.borrow().get(path) {
            return Ok(*known);
        }
        let now = Identity::read(path)?;
        self.places.borrow_mut().insert(path.to_owned(), now);
        Ok(now)
    }

    fn digest(&self, path: &Path) -> io::Result<[u8; 16]> {
        if let Some(known) = self.digests.borrow().get(path) {
            return Ok(*known);
        }
        let now = content_digest(path)?;
        self.digests.borrow_mut().insert(path.to_owned(), now);
        Ok(now)
    }

    /// For files of which single answers count: there are few.
    fn content(&self, path: &Path) -> io::Result<Rc<Vec<u8>>> {
        if let Some(known) = self.contents.borrow().get(path) {
            return Ok(Rc::clone(known));
        }
        let now = Rc::new(trust::look::read(path)?);
        self.contents.borrow_mut().insert(path.to_owned(), Rc::clone(&now));
        Ok(now)
    }

    /// Whether a directory has the times that were recorded of it. Those that meant nothing were not.
    fn has_times(&self, directory: &Path, row: &Directory) -> bool {
        row.ctime != 0 && self.identity(directory).is_ok_and(|now| (now.mtime, now.ctime) == (row.mtime, row.ctime))
    }
}

/// What the fact of an image's locale is called.
pub const LOCALE_OF_TEXT: &str = "the locale of text";

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// This variable.
    Variable(OsString),
    /// What is at this place.
    Place(PathBuf),
    /// This fact of machine, user, process or locale, in words.
    Fact(String),
    /// The same of its terminal.
    Terminal(String),
    /// The CPU, the kernel, or one of many answers that a file or directory gives.
    Other,
}

impl Subject {
    /// The variable or fact; None of what many images share.
    pub fn name(&self) -> Option<String> {
        match self {
            Subject::Variable(name) => Some(name.to_string_lossy().into_owned()),
            Subject::Fact(name) | Subject::Terminal(name) => Some(name.clone()),
            Subject::Place(_) | Subject::Other => None,
        }
    }
}

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What differs.
    pub subject: Subject,
    /// From what to what.
    pub text: String,
}

impl Line {
    fn other(text: String) -> Line {
        Line { subject: Subject::Other, text }
    }
}

/// Every difference between what the variants of an image recorded and what is there, a line each.
pub fn stale(image: &ImageFile) -> Result<Vec<String>> {
    Ok(lines(image, &ThisProcess::ITSELF, None)?.into_iter().map(|line| line.text).collect())
}

/// The same for a start of another process, as far as `process` tells of it, with what each line is about. `seen`: what other images have looked
/// at; with it, a directory whose times are the recorded ones is not looked into, as in a thaw.
pub fn lines(image: &ImageFile, process: &ThisProcess, seen: Option<&Seen>) -> Result<Vec<Line>> {
    let own = Seen::default();
    let process_files = &seen.unwrap_or(&own).process;
    let environment = process_files.environment()?;
    let mut variants = Vec::new();
    let tables: Vec<Tables<'_>> = image.variants.iter().map(Variant::tables).collect();
    for (tables, variant) in tables.iter().zip(&image.variants) {
        let mut lines: Vec<Line> = machine(tables)?.into_iter().map(Line::other).collect();
        lines.extend(self::differences(tables, environment, process, seen)?);
        lines.extend(directories(image, variant, seen)?);
        variants.push(lines);
    }
    Ok(of_all(variants))
}

/// What keeps a start from each variant. Those for another terminal or another locale say nothing where there are others.
fn of_all(mut variants: Vec<Vec<Line>>) -> Vec<Line> {
    let is_of_terminal = |line: &Line| matches!(line.subject, Subject::Terminal(_));
    let is_of_locale = |line: &Line| line.subject == Subject::Fact(LOCALE_OF_TEXT.to_owned());
    for is_of_kind in [&is_of_terminal as &dyn Fn(&Line) -> bool, &is_of_locale] {
        if !variants.iter().all(|lines| lines.iter().any(is_of_kind)) {
            variants.retain(|lines| !lines.iter().any(is_of_kind));
        }
    }
    let mut found: Vec<Line> = Vec::new();
    for line in variants.into_iter().flatten() {
        // What differs for one variant mostly differs for all.
        if !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

/// Every difference between what an image recorded and what is there, a line each. `environment`: entries with NUL between.
fn differences<'a>(
    tables: &Tables<'a>,
    environment: &'a [u8],
    process: &ThisProcess,
    seen: Option<&Seen>,
) -> Result<Vec<Line>> {
    let mut found = Vec::new();
    let entries = environment.split(|&byte| byte == 0);
    for difference in inputs::environment::differences(tables, entries)? {
        found.push(variable(difference?));
    }
    for fact in tables.rows::<image::HostFact>(Section::Facts)? {
        found.extend(self::fact(tables, &fact, process)?);
    }
    let policy = tables.rows::<Settings>(Section::Settings)?.next().unwrap_or_default().policy;
    for (number, row) in tables.rows::<Input>(Section::Inputs)?.enumerate().filter(|_| policy != policy::TRUST) {
        let Input { path, size, mtime, ctime, digest } = row;
        if let Some(difference) = file(tables, path, Identity { size, mtime, ctime }, digest, policy, seen)? {
            let answers = answers(tables, number, path, seen)?;
            found.extend(answers.map_or(vec![difference], |lines| lines.into_iter().map(Line::other).collect()));
        }
    }
    for row in tables.rows::<MappedFile>(Section::Files)? {
        let MappedFile { path, size, mtime, ctime, digest } = row;
        found.extend(file(tables, path, Identity { size, mtime, ctime }, digest, policy, seen)?);
    }
    Ok(found)
}

/// Answers that a changed file gives no longer; None for one in which nothing was looked up, so that all of it counts.
fn answers(tables: &Tables<'_>, input: usize, path: Text, seen: Option<&Seen>) -> Result<Option<Vec<String>>> {
    let questions: Vec<FileLookup> =
        tables.rows::<FileLookup>(Section::Lookups)?.filter(|question| question.input as usize == input).collect();
    let path = Path::new(OsStr::from_bytes(tables.text(path)?));
    if questions.is_empty() {
        return Ok(None);
    }
    let content = match seen.map_or_else(|| fs::read(path).map(Rc::new), |seen| seen.content(path)) {
        Ok(content) => content,
        // It answers as an empty one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Rc::default(),
        Err(_) => return Ok(None),
    };
    let mut found = Vec::new();
    for question in questions {
        let text = tables.text(question.text)?;
        if lookups::answer(question.kind, text, &content) != Some(question.answer) {
            found.push(format!("{}: says something else of {}", path.display(), String::from_utf8_lossy(text)));
        }
    }
    Ok(Some(found))
}

/// Answers that the directories of a variant give no longer. Without `seen` no times count: these would only save time.
fn directories(image: &ImageFile, variant: &Variant, seen: Option<&Seen>) -> Result<Vec<Line>> {
    let mut found = Vec::new();
    let (tables, policy) = (variant.tables(), image.settings()?.policy);
    let name = image.path.file_name().unwrap_or_default();
    for row in tables.rows::<Directory>(Section::Directories)?.filter(|_| policy != policy::TRUST) {
        let directory = Path::new(OsStr::from_bytes(tables.text(row.path)?));
        if policy == policy::CHECK
            && directory.is_absolute()
            && seen.is_some_and(|seen| seen.has_times(directory, &row))
        {
            continue;
        }
        let may_be_absent = row.flags & directory_flag::MAY_BE_ABSENT != 0;
        if !directory.is_dir() && !may_be_absent {
            let text = format!("{}: directory -> gone", directory.display());
            found.push(Line { subject: Subject::Place(directory.to_owned()), text });
            continue;
        }
        for (asked, fact) in variant.answers(&row)? {
            if !fact.holds(directory, &asked, name) {
                let subject = match fact {
                    DirectoryAnswer::Listing(..) => Subject::Other,
                    _ => Subject::Place(directory.join(&asked)),
                };
                found.push(Line { subject, text: fact.difference(directory, &asked) });
            }
        }
    }
    Ok(found)
}

fn machine(tables: &Tables<'_>) -> Result<Vec<String>> {
    Ok(cpu::differences(tables)?.flat_map(|difference| cpu_lines(&difference)).collect())
}

/// A line for each feature that differs.
fn cpu_lines(difference: &cpu::Difference) -> Vec<String> {
    let line = |bit| {
        let unnamed = || {
            let register = ["eax", "ebx", "ecx", "edx"][difference.register];
            format!("bit {bit} of {register} in leaf {:#x}.{}", difference.leaf, difference.subleaf)
        };
        let name = difference.name(bit).map_or_else(unnamed, str::to_owned);
        format!("CPU: {name}: {}", if difference.wants(bit) { "there -> gone" } else { "not there -> there" })
    };
    difference.bits().map(line).collect()
}

/// What differs in a fact: `hostname: a -> b`.
fn fact(tables: &Tables<'_>, fact: &image::HostFact, process: &ThisProcess) -> Result<Option<Line>> {
    let recorded = tables.text(fact.value)?;
    if fact.kind == image::fact_kind::SEARCHED {
        return Ok(Value::of_obstacle(process, recorded).map(|obstacle| {
            let name = inputs::facts::searched::variable(recorded);
            let text = format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(obstacle.bytes()));
            Line { subject: Subject::Variable(OsStr::from_bytes(name).to_owned()), text }
        }));
    }
    let now = Value::now(process, fact, recorded);
    if now.as_ref().is_some_and(|now| now.bytes() == recorded) {
        return Ok(None);
    }
    let now = now.as_ref().map_or("unknown".into(), |now| String::from_utf8_lossy(now.bytes()));
    let name = inputs::facts::name(fact.kind, fact.of);
    let text = format!("{name}: {} -> {now}", String::from_utf8_lossy(recorded));
    let subject = match fact.kind {
        kind if inputs::facts::is_of_terminal(kind) => Subject::Terminal(name.to_owned()),
        _ => Subject::Fact(name.to_owned()),
    };
    Ok(Some(Line { subject, text }))
}

/// A difference in the environment. Values are kept as digests, so they cannot be shown.
fn variable(difference: Difference<'_>) -> Line {
    if difference.name() == LOCALE {
        let text =
            "locale of text (the first of LC_ALL, LC_CTYPE, LANG that is set): another one (only digests are kept)";
        return Line { subject: Subject::Fact(LOCALE_OF_TEXT.to_owned()), text: text.to_owned() };
    }
    let (name, what) = match difference {
        Difference::Changed(ALL) => {
            return Line::other("environment: larger than any with which the program was tried".to_owned());
        }
        Difference::Changed(name) => (name, "another value (only digests are kept)"),
        Difference::Appeared(name) => (name, "unset -> set"),
        Difference::Gone(name) => (name, "set -> unset"),
    };
    let text = format!("{}: {what}", String::from_utf8_lossy(name));
    Line { subject: Subject::Variable(OsStr::from_bytes(name).to_owned()), text }
}

/// The environment as the kernel gave it to this process: what an image that is run beside it would get.
fn environment() -> io::Result<Vec<u8>> {
    let mut entries = fs::read("/proc/self/environ")?;
    // Without the last NUL, behind which there is no entry.
    entries.pop();
    Ok(entries)
}

/// What differs in a file; None when it has the recorded content.
fn file(
    tables: &Tables<'_>,
    path: Text,
    recorded: Identity,
    digest: [u8; 16],
    policy: u32,
    seen: Option<&Seen>,
) -> Result<Option<Line>> {
    let bytes = tables.text(path)?;
    let path = Path::new(OsStr::from_bytes(bytes));
    let shown = String::from_utf8_lossy(bytes);
    let differs = |text| Ok(Some(Line { subject: Subject::Place(path.to_owned()), text }));
    let now = match seen.map_or_else(|| Identity::read(path), |seen| seen.identity(path)) {
        Ok(now) => now,
        Err(error) => return differs(format!("{shown}: there -> {}", reason(&error))),
    };
    let times = format!("modified {} -> {}", time(recorded.mtime), time(now.mtime));
    if now.size != recorded.size {
        return differs(format!("{shown}: {} -> {} bytes, {times}", recorded.size, now.size));
    }
    if policy == policy::TRUST || (policy == policy::CHECK && now == recorded) {
        return Ok(None);
    }
    match seen.map_or_else(|| content_digest(path), |seen| seen.digest(path)) {
        Ok(content) if content == digest => Ok(None),
        Ok(_) => differs(format!("{shown}: another content of the same size, {times}")),
        Err(error) => differs(format!("{shown}: readable -> {}", reason(&error))),
    }
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "gone".to_owned(),
        _ => error.to_string(),
    }
}

/// A time in ns since 1970, as RFC 3339 has it.
fn time(ns: i64) -> String {
    jiff::Timestamp::from_nanosecond(ns.into()).map_or_else(|_| ns.to_string(), |time| time.to_string())
}

#[cfg(test)]
mod tests {
    use image::{Item, Platform, Variable};
    use image_writer::TablesWriter;

    use super::*;

    fn lines(change: impl FnOnce(&mut TablesWriter), environment: &[(&str, &str)]) -> Vec<String> {
        let platform = Platform { vdso: [1; 16], vdso_size: 4096 };
        let mut writer = TablesWriter::new();
        writer.push(Section::Platform, &platform);
        cpu::native().for_each(|leaf| writer.push(Section::Cpu, &leaf));
        change(&mut writer);
        let bytes = writer.finish();
        let entries: Vec<String> = environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let tables = Tables::parse_unchecked_sum(&bytes).unwrap();
        let mut found = machine(&tables).unwrap();
        let differences = differences(&tables, entries.join("\0").as_bytes(), &ThisProcess::ITSELF, None).unwrap();
        found.extend(differences.into_iter().map(|line| line.text));
        found
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
    fn of_several_variants_those_for_this_terminal_count() {
        let terminal = Line { subject: Subject::Terminal("output".to_owned()), text: "output".to_owned() };
        let [one, two] = ["one", "two"].map(|text| Line::other(text.to_owned()));
        let found = |variants: &[&[&Line]]| {
            of_all(variants.iter().map(|lines| lines.iter().map(|line| (*line).clone()).collect()).collect())
                .into_iter()
                .map(|line| line.text)
                .collect::<Vec<_>>()
        };
        assert_eq!(found(&[&[&terminal], &[]]), [""; 0]);
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
