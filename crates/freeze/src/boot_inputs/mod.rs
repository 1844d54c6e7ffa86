//! What the boot depended on: files, and the answers of directories; and whether all of it stayed the same during the
//! boot.
//!
//! The recorder has every access of the boot ([`recorder::Accesses`]); the front end reports what was loaded, and what
//! Python's importers looked up ([`importers`]). Some accesses are not inputs ([`ignored`]); the others are collapsed
//! by directory ([`dependencies`]).

pub mod attributes;
mod dependencies;
pub mod elsewhere;
pub mod everyday_forms;
pub mod home;
mod ignored;
mod importers;
pub mod kernel_files;
pub mod other_start_inputs;
mod relative;
pub mod search_path;
mod shared;
pub mod start_facts;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use failure::{Failure, Result};
use image::{answer_kind, directory_flag, Directory, FileLookup, Input, MappedFile, Section, Tables};
use image_file::content_digest;
use image_file::directory_answers::{self, list_value, selects_names, DirectoryAnswer, DirectoryAnswers};
use image_writer::{AnswersWriter, TablesWriter};
use recorder::{Accesses, Identity, PathAccess, State};

use dependencies::{Dependencies, List};
use relative::Relative;

pub use ignored::{Ignored, Reason};
pub use importers::Importer;
pub use relative::looked_up_below;

/// Times younger than this cannot tell two changes apart: the kernel's clock for file times ticks more slowly.
const TICK: Duration = Duration::from_millis(20);
/// No change made during a freeze has a time so far beyond the clock (ns).
const FAR_AHEAD: i64 = 24 * 3_600_000_000_000;

/// The known facts about a boot.
pub struct Booted<'a> {
    /// Its accesses.
    pub accesses: &'a Accesses,
    /// Files that the front end reported as loaded.
    pub loaded: &'a [PathBuf],
    /// What Python's importers looked up.
    pub importers: &'a [Importer],
    /// Which accesses are not inputs.
    pub ignored: &'a Ignored,
    /// The main script, if there is one.
    pub script: Option<&'a Path>,
    /// The start directory of the program.
    pub start: &'a Path,
    /// When the freeze began (ns since 1970).
    pub begun: i64,
}

/// Files and directories, and their state.
#[derive(Debug)]
pub struct Inputs {
    /// The name of the image, which lists leave out.
    image: OsString,
    /// When the freeze began (ns since 1970).
    begun: i64,
    /// Files whose content counts.
    files: BTreeMap<PathBuf, Identity>,
    /// Libraries and other files that the freezer recorded as mapped.
    mapped: Vec<(PathBuf, Identity)>,
    /// Answers by directory.
    directories: BTreeMap<PathBuf, DirectoryAnswers>,
    /// Directories that count themselves.
    known: BTreeSet<PathBuf>,
    /// Files and answers by names relative to the start directory.
    relative: Relative,
    /// What was looked up in files that the machine shares.
    questions: BTreeMap<PathBuf, Vec<shared::Lookup>>,
}

impl Inputs {
    /// Collects what counts, including the mapped files with the identity that the freezer saw.
    ///
    /// A file that changed after the freeze began, and that was not recorded before it was loaded, may have been loaded
    /// in its old or its new form. So the freeze is void: fails and names the file. A list that changed meanwhile also
    /// makes the freeze void.
    pub fn record(booted: &Booted<'_>, mapped: Vec<(PathBuf, Identity)>) -> Result<Self> {
        let names = mapped.iter().map(|it| it.0.as_path()).collect();
        let Dependencies { mut files, mut directories, lists, known, .. } = Dependencies::collect(booted, &names);
        drop_written(&mut files, booted.accesses);
        let names: BTreeSet<&Path> = booted.loaded.iter().filter_map(|path| existing(path)).collect();
        let mut unseen = Vec::new();
        for path in names.into_iter().filter(|path| !files.contains_key(*path)) {
            unseen.push((path.to_owned(), Identity::read(path).map_err(|_| changed(path))?));
        }
        // A time far ahead was set before the freeze began, by a clock that was set back since, or by an unpacked
        // archive.
        let meanwhile = booted.begun..=booted.begun.saturating_add(FAR_AHEAD);
        let young = |(_, identity): &&(PathBuf, Identity)| {
            meanwhile.contains(&identity.mtime) || meanwhile.contains(&identity.ctime)
        };
        if let Some((path, _)) = unseen.iter().chain(&mapped).find(young) {
            return Err(changed(path));
        }
        let is_mapped = |path: &Path| mapped.iter().any(|(mapped, _)| mapped == path);
        files.extend(unseen.into_iter().filter(|(path, _)| !is_mapped(path)));
        let image = booted.ignored.image_name();
        let mut relative = Relative::collect(booted.accesses, booted.ignored, booted.script, booted.start);
        let fact = |list: &List| {
            let path = &list.directory;
            let now = directory_answers::names_in(path, list.kind).map_err(|_| changed(path))?;
            if list.changed(&now, booted.ignored, booted.accesses) {
                return Err(listed_otherwise(path));
            }
            let digest = list_value(path, list.kind, &list.selection, image).map_err(|_| changed(path))?;
            Ok(DirectoryAnswer::Listing(list.kind, digest))
        };
        for list in lists {
            let answer = fact(&list)?;
            directories.entry(list.directory).or_default().insert((list.selection, answer));
        }
        for (name, path, before) in std::mem::take(&mut relative.lists) {
            let answer = fact(&List::whole(&path, &before))?;
            relative.directories.entry(name).or_default().insert((OsString::new(), answer));
        }
        files.extend(shared::beside(booted.accesses));
        let questions = files.keys().map(|path| (path.clone(), shared::lookups(path, booted.accesses)));
        let questions = questions.filter(|(_, lookups)| !lookups.is_empty()).collect();
        let image = image.to_owned();
        Ok(Inputs { image, begun: booted.begun, files, mapped, directories, known, relative, questions })
    }

    /// Fails if anything differs from its recorded state.
    pub fn still_unchanged(&self) -> Result<()> {
        let differs =
            |(path, identity): &(&PathBuf, &Identity)| Identity::read(path).unwrap_or(Identity::ABSENT) != **identity;
        let mapped = self.mapped.iter().map(|(path, identity)| (path, identity));
        let relative = self.relative.files.values().map(|(path, identity)| (path, identity));
        if let Some((path, _)) = self.files.iter().chain(mapped).chain(relative).find(differs) {
            return Err(changed(path));
        }
        // A directory that has not changed since the freeze began still gives the same answers.
        let is_old = |directory: &Path| {
            Identity::read(directory).is_ok_and(|now| now.mtime.max(now.ctime) < self.begun - TICK.as_nanos() as i64)
        };
        let relative = self.relative.directories.iter().map(|(name, answers)| (self.relative.place(name), answers));
        let all = self.directories.iter().map(|(directory, answers)| (directory.clone(), answers)).chain(relative);
        for (directory, answers) in all.filter(|(directory, _)| !is_old(directory)) {
            if let Some((name, fact)) =
                answers.iter().find(|(name, fact)| !fact.is_still_given(&directory, name, &self.image))
            {
                let is_list = matches!(fact, DirectoryAnswer::Listing(..));
                return Err(if is_list { listed_otherwise(&directory) } else { changed(&directory.join(name)) });
            }
        }
        Ok(())
    }

    /// Writes the digests of the mapped files, whose rows the freezer wrote, and all other files by directory. Returns
    /// the answers, which lie outside the tables.
    pub fn write(&self, dumped: &Tables<'_>, tables: &mut TablesWriter) -> Result<Vec<u8>> {
        let digest = |path: &Path| content_digest(path).map_err(|error| Failure::io("read", path, &error));
        let mut files: Vec<MappedFile> = dumped.rows(Section::Files)?.collect();
        for (row, (path, _)) in files.iter_mut().zip(&self.mapped) {
            row.digest = digest(path)?;
        }
        tables.replace_all(Section::Files, &files);
        let mut rows: BTreeMap<&Path, Row<'_>> = BTreeMap::new();
        for (path, identity) in &self.files {
            rows.entry(path.parent().unwrap_or(path)).or_default().files.push((path, path, identity));
        }
        for (directory, answers) in self.directories.iter().chain(&self.relative.directories) {
            rows.entry(directory).or_default().answers = Some(answers);
        }
        for (name, (path, identity)) in &self.relative.files {
            rows.entry(Path::new(".")).or_default().files.push((name, path, identity));
        }
        let mut writer = AnswersWriter::default();
        let mut count = 0;
        for (directory, Row { files, answers }) in rows {
            // Its times say nothing about another directory.
            let may_be_absent = |(_, fact): &(OsString, DirectoryAnswer)| matches!(fact, DirectoryAnswer::Listing(kind, _) if selects_names(*kind));
            let is_missed = files.is_empty()
                && answers.is_some_and(|answers| answers.iter().all(may_be_absent))
                && directory.is_absolute()
                && State::read(directory) == State::Absent;
            // Names that were absent in it are absent if the whole directory is gone.
            let is_absent = |(_, fact): &(OsString, DirectoryAnswer)| {
                matches!(fact, DirectoryAnswer::Absent | DirectoryAnswer::Below | DirectoryAnswer::Unlinked)
            };
            let is_only_way = files.is_empty()
                && answers.is_some_and(|answers| answers.iter().all(is_absent))
                && directory.is_absolute()
                && !self.known.contains(directory);
            let (mtime, ctime) = if directory.is_absolute() { settled_times(directory) } else { (0, 0) };
            let is_of_files = |(_, fact): &(OsString, DirectoryAnswer)| {
                matches!(fact, DirectoryAnswer::Listing(answer_kind::FEATURES, _))
            };
            let is_deep = answers.is_some_and(|answers| answers.iter().any(is_of_files));
            let flag = |is, flag| if is { flag } else { 0 };
            for (name, fact) in answers.into_iter().flatten() {
                let (kind, value) = fact.record();
                writer.push(kind, name.as_bytes(), value);
            }
            let (answers_offset, answers_size, answers_sum) = writer.end_directory();
            let path = tables.text(directory.as_os_str().as_bytes());
            let row = Directory {
                path,
                mtime,
                ctime,
                inputs: files.len() as u32,
                flags: flag(is_missed || is_only_way, directory_flag::MAY_BE_ABSENT)
                    | flag(is_deep, directory_flag::DEEP),
                answers_offset,
                answers_size,
                answers_sum,
            };
            tables.push(Section::Directories, &row);
            for (name, place, identity) in files {
                let digest = if *identity == Identity::ABSENT { [0; 16] } else { digest(place)? };
                let path = tables.text(name.as_os_str().as_bytes());
                let Identity { size, mtime, ctime } = *identity;
                tables.push(Section::Inputs, &Input { path, size, mtime, ctime, digest });
                for (kind, text, answer) in self.questions.get(name).into_iter().flatten() {
                    let text = tables.text(text);
                    tables.push(Section::Lookups, &FileLookup { input: count, kind: *kind, text, answer: *answer });
                }
                count += 1;
            }
        }
        Ok(writer.finish())
    }
}

/// The contents of a directory: files by name and path, and answers.
#[derive(Default)]
struct Row<'a> {
    files: Vec<(&'a Path, &'a Path, &'a Identity)>,
    answers: Option<&'a DirectoryAnswers>,
}

/// Removes files that the boot wrote to under another name: through a link, or the other way round.
fn drop_written(files: &mut BTreeMap<PathBuf, Identity>, accesses: &Accesses) {
    let own = accesses.places.iter().filter(|(_, access)| access.written || access.made);
    let own: BTreeSet<PathBuf> = own.filter_map(|(path, _)| path.canonicalize().ok()).collect();
    files.retain(|path, identity| {
        Identity::read(path).ok() == Some(*identity) || path.canonicalize().map_or(true, |real| !own.contains(&real))
    });
}

/// The times of a directory; zeros if they are too recent to detect later changes.
fn settled_times(directory: &Path) -> (i64, i64) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos() as i128;
    match Identity::read(directory) {
        Ok(Identity { mtime, ctime, .. }) if is_settled(ctime.into(), now) => (mtime, ctime),
        _ => (0, 0),
    }
}

/// Whether a change after `now` would show if the last change was at `ctime` (ns since 1970). A time far ahead comes
/// from a clock that was set back since; the next change gets the current time.
fn is_settled(ctime: i128, now: i128) -> bool {
    ctime + TICK.as_nanos() as i128 <= now || ctime > now + i128::from(FAR_AHEAD)
}

/// The file of a loaded name: the path itself or, for a module in a zip archive, the archive. None for names that are
/// not absolute paths (built-in features). A missing path is kept, and reported as missing later.
fn existing(path: &Path) -> Option<&Path> {
    if !path.is_absolute() {
        return None;
    }
    path.ancestors().find(|above| above.is_file()).or(Some(path))
}

/// A directory for temporary files that the boot has listed: no start finds the same names in it.
pub struct ListedTemporary<'a>(&'a Path);

impl fmt::Display for ListedTemporary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "depends on the names in {}, because the program listed that directory while it booted. Other programs change these names \
             all the time, so the image will hardly ever be used. Do not load early what lists that directory: leave it to the main part",
            self.0.display()
        )
    }
}

/// The directory for temporary files that the boot has listed, if it has.
pub fn listed_temporary<'a>(
    accesses: &'a Accesses,
    importers: &[Importer],
    is_temporary: impl Fn(&Path) -> bool,
) -> Option<ListedTemporary<'a>> {
    let importer = |path: &Path| importers.iter().find(|importer| importer.directory == path);
    let is_listed = |(path, access): &(&PathBuf, &PathAccess)| {
        is_temporary(path) && dependencies::is_listed_whole(access, importer(path))
    };
    accesses.places.iter().find(is_listed).map(|(path, _)| ListedTemporary(path))
}

fn listed_otherwise(directory: &Path) -> Failure {
    Failure::passing(format!(
        "the program listed {} while it booted, and files came or went there meanwhile. The image would be stale from the start, so it \
         was not written. Freeze again while nothing makes or removes files there. If that is never the case, leave the code that lists \
         the directory to the main part: do not preload it.",
        directory.display()
    ))
}

fn changed(path: &Path) -> Failure {
    Failure::passing(format!(
        "{} changed (or was removed) while the program booted. The image would be stale from the start, so it was not written. Freeze \
         again while nothing edits or generates that file.",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn booted<'a>(loaded: &'a [PathBuf], accesses: &'a Accesses, ignored: &'a Ignored, begun: i64) -> Booted<'a> {
        Booted { accesses, loaded, importers: &[], ignored, begun, script: None, start: Path::new("/") }
    }

    fn nothing() -> Ignored {
        Ignored::new(Path::new("/nowhere/app.img"), Vec::new(), None)
    }

    #[test]
    fn a_file_younger_than_the_freeze_makes_it_void() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("lib.py");
        std::fs::write(&file, "a").unwrap();
        let identity = Identity::read(&file).unwrap();
        let (accesses, ignored) = (Accesses::default(), nothing());
        let record = |loaded: &[PathBuf], begun| {
            Inputs::record(&booted(loaded, &accesses, &ignored, begun), Vec::new()).map(drop).map_err(|it| it.message)
        };
        let loaded = [file.clone(), PathBuf::from("enumerator.so")];
        assert!(record(&loaded, identity.ctime + 1).is_ok());
        assert!(record(&loaded, identity.ctime).unwrap_err().contains("lib.py changed"));
        assert!(record(&loaded, identity.ctime - FAR_AHEAD - 1).is_ok(), "the clock was set back");
        assert!(record(&[top.path().join("gone.py")], i64::MAX).unwrap_err().contains("gone.py"));
    }

    #[test]
    fn an_edit_after_recording_is_noticed() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("lib.py");
        std::fs::write(&file, "a").unwrap();
        let (accesses, ignored, loaded) = (Accesses::default(), nothing(), [file.clone()]);
        let booted = booted(&loaded, &accesses, &ignored, i64::MAX);
        let inputs = Inputs::record(&booted, Vec::new()).unwrap();
        inputs.still_unchanged().unwrap();
        std::fs::write(&file, "longer").unwrap();
        assert!(inputs.still_unchanged().is_err());
    }

    #[test]
    fn a_module_in_an_archive_depends_on_the_archive() {
        let top = tempfile::tempdir().unwrap();
        let archive = top.path().join("lib.zip");
        std::fs::write(&archive, "PK").unwrap();
        assert_eq!(existing(&archive.join("pkg/mod.py")), Some(archive.as_path()));
    }
}
