//! One attempt to make an image of a folder's command: freezes it, and records what came of it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use failure::{Failure, Result};
use freeze::{Changing, Finding, FreezeOutcome, FreezeRequest, InStore, Mark, ProgramOutput, Progress, Step};
use image_file::info::Info;
use image_file::starts::Starts;
use image_file::ImageFile;
use installation::Installation;
use runtime::terminal::Terminal;

use crate::attempt::{Attempts, FileState, Outcome};
use crate::changes::Changes;
use crate::folder::Lock;
use crate::{background, builder_limits, busy, eviction, hash_seed, Command, Effort, Folder, StartTimes};

/// How long a builder may take (seconds): the next one waits for it.
pub(crate) const LIMIT: u32 = 15 * 60;

/// The starts that an image is made for.
pub struct For<'a> {
    /// The number of their environment: see [`background::environment_number`].
    pub environment: &'a str,
    /// Their terminal, if they have one.
    pub terminal: Option<Terminal>,
    /// Whether somebody waits for it, who prefers an incomplete image to none.
    pub somebody_waits: bool,
}

/// Makes an image of the folder's command, and records the outcome. None if the folder does not say whose it is. `own`: its lock.
pub fn build(
    folder: &Folder,
    own: &Lock,
    output: &Path,
    whom: &For<'_>,
    progress: &dyn Progress,
) -> Option<FreezeOutcome> {
    attempt(folder, own, output, whom, None, progress)
}

/// Does the work of `build`. `for_news`: see [`Attempts::begin`].
pub(crate) fn attempt(
    folder: &Folder,
    own: &Lock,
    output: &Path,
    whom: &For<'_>,
    for_news: Option<bool>,
    progress: &dyn Progress,
) -> Option<FreezeOutcome> {
    let command = folder.command()?;
    // Kept open, so that no other file gets its inode number meanwhile.
    let known_by = File::open(folder.command_file()).ok()?;
    let marks = vec![own.mark().clone(), Mark::new(folder.command_file(), &known_by).ok()?];
    builder_limits::make();
    let mut attempts = Attempts::load(folder);
    if let Err(failure) = attempts.begin(folder, for_news) {
        return Some(FreezeOutcome::Failed(failure));
    }
    let progress = Recording { progress, files: RefCell::default() };
    let unused = is_unused(output);
    let mut changes = Changes::load(folder);
    let freeze = |changing: Changing| match request(folder, &command, &attempts, output, whom, changing, &marks) {
        Ok(request) => freeze::freeze(&request, &progress),
        Err(failure) => FreezeOutcome::Failed(failure),
    };
    let changing = changes.changing();
    let loaded = folder.images().iter().map(|image| loaded(image)).max().unwrap_or_default();
    let mut outcome = freeze(changing.clone());
    let is_removed = || !marks.iter().all(Mark::is_there);
    let mut made = Image::open(output);
    if is_removed() {
        // The cause of a failure went with the folder.
        return Some(without_folder(outcome, made));
    }
    if !changing.is_empty() && has_too_little(&outcome, loaded) {
        changes.need(&changing);
        changes.keep(folder);
        outcome = freeze(changes.changing());
        made = Image::open(output);
    } else if !changing.is_empty() {
        changes.settle(output);
        changes.keep(folder);
    }
    let came_of_it = match &outcome {
        FreezeOutcome::Written(written) => {
            attempts.count_made(unused, (written.learnt, written.learnt_in.clone()), written.lacks);
            // Without a terminal, starts at one cannot be measured.
            if whom.terminal.is_none() {
                let words: Vec<OsString> = command.words.iter().map(OsString::from).collect();
                attempts.times = written.prints_version.then(|| StartTimes::measure(&words, output)).flatten();
            }
            let is_measured = written.prints_version && whom.terminal.is_none() && !whom.somebody_waits;
            match is_measured.then(|| effort(folder, &command, output)).flatten().filter(Effort::is_in_vain) {
                Some(effort) if eviction::remove_image(output) => Outcome::Vain { effort },
                _ => Outcome::Made { image: output.to_owned() },
            }
        }
        FreezeOutcome::Refused(findings) => {
            let why: Vec<String> = findings.iter().map(|finding| finding.to_string()).collect();
            match findings.iter().any(Finding::is_internal) {
                true => Outcome::Failed { why: why.join(" "), passing: true },
                false => Outcome::Refused { why },
            }
        }
        // That says nothing about another directory.
        FreezeOutcome::Failed(_) if std::env::current_dir().is_err() => return Some(outcome),
        FreezeOutcome::Failed(failure) => {
            // A program's own messages about missing memory are not recognised.
            let passing = failure.is_passing || busy::is_busy().is_some();
            Outcome::Failed { why: failure.message.clone(), passing }
        }
        FreezeOutcome::Interrupted(libc::SIGALRM) => Outcome::Failed {
            why: format!("it was ended by SIGALRM, which comes after {} minutes in the background", LIMIT / 60),
            passing: false,
        },
        FreezeOutcome::Interrupted(_) => return Some(outcome),
    };
    if is_removed() {
        return Some(without_folder(outcome, made));
    }
    let files = progress.files.borrow();
    // The folder's own file counts, too, since a store that was removed and made again is another one.
    let command_file = folder.command_file();
    let files = files.iter().chain([&command.file, &command_file]).map(|path| FileState::current(path));
    attempts.end(folder, whom.environment, came_of_it, files);
    Some(outcome)
}

/// The outcome of an attempt whose folder was removed meanwhile: an image that was put there just before goes as well.
fn without_folder(outcome: FreezeOutcome, made: Option<Image>) -> FreezeOutcome {
    let FreezeOutcome::Written(written) = outcome else { return outcome };
    // There may be another one of that name already.
    if made.is_some_and(|made| made.mark.is_there()) {
        eviction::remove_image(&written.path);
    }
    let folder = written.path.parent().unwrap_or(Path::new("/")).display();
    FreezeOutcome::Failed(Failure::passing(format!("{folder} was removed while an image was made in it.")))
}

/// An image, held open.
struct Image {
    mark: Mark,
    _file: File,
}

impl Image {
    fn open(path: &Path) -> Option<Image> {
        let file = File::open(path).ok()?;
        Some(Image { mark: Mark::new(path.to_owned(), &file).ok()?, _file: file })
    }
}

/// How many files were loaded for an image.
fn loaded(image: &Path) -> usize {
    ImageFile::open(image).map_or(0, |image| Info::read(&image.tables()).loaded)
}

/// Whether more than a third of an image's contents is left to each start. `loaded`: the files that were loaded for an earlier image.
fn has_too_little(outcome: &FreezeOutcome, loaded: usize) -> bool {
    match outcome {
        FreezeOutcome::Written(written) => written.loaded < loaded * 2 / 3,
        FreezeOutcome::Interrupted(_) => false,
        FreezeOutcome::Refused(_) | FreezeOutcome::Failed(_) => true,
    }
}

/// Whether no start has used an image.
pub(crate) fn is_unused(image: &Path) -> bool {
    ImageFile::open(image).ok().and_then(|image| Starts::read(&image)).is_some_and(|starts| starts.thaws == 0)
}

/// The processor time of starts of a new image, and of starts with the boot archive alone; None if the image replaces an installed command,
/// which has no archive.
fn effort(folder: &Folder, command: &Command, image: &Path) -> Option<Effort> {
    if folder.is_installed() {
        return None;
    }
    let program = std::env::current_exe().ok()?;
    let run = [program.as_os_str(), "run".as_ref(), "--no-freeze".as_ref(), "--".as_ref()].map(OsStr::to_owned);
    let words: Vec<OsString> = run.into_iter().chain(command.words.iter().map(OsString::from)).collect();
    Effort::measure(&words, image)
}

fn request(
    folder: &Folder,
    command: &Command,
    attempts: &Attempts,
    output: &Path,
    whom: &For<'_>,
    changing: Changing,
    marks: &[Mark],
) -> Result<FreezeRequest> {
    let program = std::env::current_exe().map_err(|error| Failure::io("find", Path::new("snapboot"), &error))?;
    Ok(FreezeRequest {
        store: Some(InStore {
            on_fallback: vec![program.clone().into(), crate::fallback::SUBCOMMAND.into(), output.into()],
            profile: folder.profile(),
            on_news: vec![
                program.into(),
                crate::learn::SUBCOMMAND.into(),
                output.into(),
                background::terminal_word(whom.terminal).into(),
            ],
            terminal: whom.terminal,
            knows: attempts.knows(),
            makes_do: whom.somebody_waits || attempts.makes_do(whom.environment),
            lesser_age: attempts.lesser_age(),
            content: folder.content(),
            changing,
            marks: marks.to_vec(),
        }),
        hash_seed: hash_seed::shared(folder),
        ..FreezeRequest::new(
            command.words.iter().map(OsString::from).collect(),
            output.to_owned(),
            Installation::find()?,
        )
    })
}

/// Passes on the progress of a freeze, and records which files its boots have read.
struct Recording<'a> {
    progress: &'a dyn Progress,
    files: RefCell<BTreeSet<PathBuf>>,
}

impl Progress for Recording<'_> {
    fn step(&self, step: &Step<'_>) {
        self.progress.step(step);
    }

    fn message(&self, message: &str) {
        self.progress.message(message);
    }

    fn program_output(&self) -> io::Result<ProgramOutput> {
        self.progress.program_output()
    }

    fn has_read(&self, file: &Path) {
        self.files.borrow_mut().insert(file.to_owned());
    }
}
