//! The builder: makes one image, once the program that asked for it has ended or got going, and if no other builder is at work.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use failure::{Failure, Result};
use freeze::{Changing, Content, Finding, FreezeOutcome, FreezeRequest, InStore, Mark, ProgramOutput, Progress, Step};
use image_file::info::Info;
use image_file::starts::Starts;
use image_file::ImageFile;
use installation::Installation;
use runtime::deadline::timespec;
use runtime::terminal::Terminal;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::FlockOperation;
use rustix::process::{pidfd_open, Pid, PidfdFlags};

use crate::attempt::{Attempts, FileState, Outcome};
use crate::background::Asked;
use crate::builder_memory::Room;
use crate::changes::{differing, is_being_edited, start_at, Changes};
use crate::folder::{lock, Lock};
use crate::put_off_reason::Delay;
use crate::{
    background, builder_limits, builder_memory, busy, eviction, fit, learn, sys, Command, Effort, Folder, PutOff,
    StartTimes, Store,
};

/// How long the program that asked has the machine to itself.
const HEAD_START: Duration = Duration::from_secs(2);
/// How long a builder may take (seconds): the next one waits for it.
const LIMIT: u32 = 15 * 60;
/// How often it checks for free memory, and the stack of the thread that does (bytes).
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
const STACK: usize = 64 << 10;

/// Makes an image in the background. `words`: the words after the subcommand, from [`crate::background`].
pub fn in_background(words: &[OsString]) {
    let [pid, limit, environment, terminal, folder, asked @ ..] = words else { return };
    let number = |word: &OsString| word.to_str().and_then(|text| text.parse().ok());
    let (Some(pid), Some(limit), Some(environment)) = (number(pid), number(limit), environment.to_str()) else {
        return;
    };
    let Some(asked) = Asked::parse(asked) else { return };
    let terminal = background::parse_terminal(terminal);
    let folder = match asked {
        Asked::Again(image) | Asked::ForNews(image) => Folder::containing(image),
        Asked::New { .. } => Some(Folder::new(folder.into())),
    };
    let whom = For { environment, terminal, somebody_waits: false };
    folder.iter().for_each(|folder| make(pid as i32, limit, folder, &asked, &whom));
}

/// The starts that an image is made for.
pub struct For<'a> {
    /// The number of their environment: see [`background::environment_number`].
    pub environment: &'a str,
    /// Their terminal, if they have one.
    pub terminal: Option<Terminal>,
    /// Whether somebody waits for it, who prefers an incomplete image to none.
    pub somebody_waits: bool,
}

/// `pid`: of the program that asked for it; `limit`: of the store (bytes).
fn make(pid: i32, limit: u64, folder: &Folder, asked: &Asked<'_>, whom: &For<'_>) {
    let before = states(folder);
    sys::step_back();
    let Some(store) = Store::find() else { return };
    // From here on nobody else starts a builder, and other starts report that an image is being made.
    let Some(own) = folder.lock().filter(|_| folder.is_own()) else { return };
    wait_for(pid);
    // Next to the folders of this store; another store has other builders.
    let all = folder.path().with_file_name(".builder");
    let Some(_all) = lock(&all, FlockOperation::LockExclusive).filter(|_| own.is_there()) else { return };
    // Another start may have asked, too. Image times do not show it: the clock may have been set back since.
    let made: Vec<PathBuf> = states(folder).difference(&before).map(|(image, ..)| image.clone()).collect();
    let is_done = match asked {
        Asked::Again(image) | Asked::ForNews(image) => made.iter().any(|made| made == image),
        Asked::New { seen } => folder.images().len() > *seen || !made.is_empty(),
    };
    let attempts = Attempts::load(folder);
    if is_done || attempts.why_none(whom.environment).is_some() {
        return;
    }
    // The program that asked may still run, and is the first copy.
    let needed = builder_memory::needed(pid, folder.all_images().iter().map(|image| eviction::size(image)));
    let room = Room::now();
    if let Some(why) = room.as_ref().and_then(|room| room.lacks(needed)) {
        return PutOff::record(folder, why, needed);
    }
    if let Some(why) = busy::is_busy() {
        return PutOff::record(folder, why, 0);
    }
    let (output, for_news) = match asked {
        Asked::Again(image) => (image.to_path_buf(), Some(false)),
        Asked::ForNews(image) => (image.to_path_buf(), Some(true)),
        Asked::New { .. } => (place_of_new(folder, &attempts, whom.environment), None),
    };
    sys::alarm(LIMIT);
    let watch = Watch::start();
    record_changes(folder, asked, whom.terminal.as_ref());
    let (program, libraries) = (folder.with(Content::Program), folder.with(Content::Libraries));
    let is_own = starts_own_program(folder);
    let first = match asked {
        // A start from the image of the libraries tells what else there is, so that one comes first.
        Asked::New { .. } if is_own => place_of_libraries(&libraries, whom).filter(|(_, for_news)| for_news.is_none()),
        _ => None,
    };
    let (made_in, output) = match &first {
        Some((output, _)) => (&libraries, output.as_path()),
        None => (folder, output.as_path()),
    };
    let before = Attempts::load(made_in);
    let outcome = attempt(made_in, &own, output, whom, for_news, &Silent);
    if !own.is_there() {
        return;
    }
    if !matches!(outcome, Some(FreezeOutcome::Written(_))) && watch.is_short() {
        // The outcome says nothing about the program. If it cannot be written, the attempt counts as fruitless.
        let _ = before.keep(made_in);
        let had = room.map_or(0, |room| room.bytes);
        PutOff::record(folder, Delay::RanShort, needed.max(had + had / 4));
    } else {
        PutOff::forget(folder);
        // An upgrade makes both kinds stale.
        let other = match (folder.content(), &first) {
            (Content::Program, None) if is_own => Some(&libraries).zip(place_of_libraries(&libraries, whom)),
            (Content::Libraries, _) => {
                Some(&program).zip(stale_program(folder, whom).map(|image| (image, Some(false))))
            }
            _ => None,
        };
        if let Some((folder, (output, for_news))) = other {
            sys::alarm(LIMIT);
            attempt(folder, &own, &output, whom, for_news, &Silent);
        }
    }
    eviction::sweep(&store);
    eviction::prune(&store, limit);
}

/// Whether the command of this folder starts a program of the user's own, which has images of its libraries as well.
fn starts_own_program(folder: &Folder) -> bool {
    let command = folder.command().filter(|_| folder.content() == Content::Program);
    command.zip(Installation::find().ok()).is_some_and(|(command, installation)| {
        let words: Vec<OsString> = command.words.iter().map(OsString::from).collect();
        freeze::is_own_program(&words, &installation)
    })
}

/// Where the next image of libraries for these starts goes, and whether it has a predecessor, which lacks what starts have reported since,
/// or is stale; None if there is nothing to do.
fn place_of_libraries(libraries: &Folder, whom: &For<'_>) -> Option<(PathBuf, Option<bool>)> {
    if Attempts::load(libraries).why_none(whom.environment).is_some() {
        return None;
    }
    let start = start_at(whom.terminal.as_ref());
    let Some(image) = libraries.images().into_iter().find(|image| fit::fits_start(image, &start)) else {
        return Some((libraries.next_image(), None));
    };
    let has_news = learn::has_news(libraries, &image);
    (has_news || !differing(&image, &start).is_empty()).then_some((image, Some(has_news)))
}

/// An image of the program that has to be made again, too, if one of its libraries had to be. None while the program is edited.
fn stale_program(libraries: &Folder, whom: &For<'_>) -> Option<PathBuf> {
    let (program, start) = (libraries.with(Content::Program), start_at(whom.terminal.as_ref()));
    let image = program.images().into_iter().find(|image| fit::fits_start(image, &start))?;
    let differing = differing(&image, &start);
    let is_due = !differing.is_empty() && !is_being_edited(&differing);
    (is_due && Attempts::load(&program).why_none(whom.environment).is_none()).then_some(image)
}

/// Records which inputs have led to this attempt.
fn record_changes(folder: &Folder, asked: &Asked<'_>, terminal: Option<&Terminal>) {
    let mut changes = Changes::load(folder);
    match asked {
        Asked::Again(image) => changes.record(image, terminal, true),
        Asked::New { .. } => folder.images().iter().for_each(|image| changes.record(image, terminal, false)),
        Asked::ForNews(_) => return,
    }
    changes.keep(folder);
}

/// Ends a build when other processes need its memory.
struct Watch {
    /// Whether memory has run short.
    is_short: Arc<AtomicBool>,
    /// See [`builder_memory::victims`].
    victims: u64,
}

impl Watch {
    /// Watches until this process ends.
    fn start() -> Watch {
        let is_short = Arc::new(AtomicBool::new(false));
        let watch = Watch { is_short: Arc::clone(&is_short), victims: builder_memory::victims() };
        // Without a thread, nothing watches; the kernel still ends this process before others.
        let _ = thread::Builder::new().stack_size(STACK).spawn(move || {
            while !Room::now().is_some_and(|room| room.is_used_up()) {
                thread::sleep(BETWEEN_LOOKS);
            }
            is_short.store(true, Ordering::SeqCst);
            sys::alarm_now();
        });
        watch
    }

    /// Whether memory has run short since.
    fn is_short(&self) -> bool {
        self.is_short.load(Ordering::SeqCst) || builder_memory::victims() > self.victims
    }
}

/// The images of a folder, each with the inode and the time of the last change, which distinguish it from another one of that name.
fn states(folder: &Folder) -> BTreeSet<(PathBuf, u64, i64, i64)> {
    let state = |image: PathBuf| {
        let status = image.metadata().ok()?;
        Some((image, status.ino(), status.ctime(), status.ctime_nsec()))
    };
    folder.all_images().into_iter().filter_map(state).collect()
}

/// The path for a new image: that of an earlier one for the same environment that no start has used, since it does not fit.
fn place_of_new(folder: &Folder, attempts: &Attempts, environment: &str) -> PathBuf {
    let own = match attempts.last_in(environment).map(|last| &last.outcome) {
        Some(Outcome::Made { image }) if folder.images().contains(image) && is_unused(image) => Some(image.clone()),
        _ => None,
    };
    own.unwrap_or_else(|| folder.next_image())
}

fn is_unused(image: &Path) -> bool {
    ImageFile::open(image).ok().and_then(|image| Starts::read(&image)).is_some_and(|starts| starts.thaws == 0)
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
fn attempt(
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
        ..FreezeRequest::new(
            command.words.iter().map(OsString::from).collect(),
            output.to_owned(),
            Installation::find()?,
        )
    })
}

/// Waits until the process has ended, or for a moment.
fn wait_for(pid: i32) {
    let Some(process) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return };
    let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timespec(HEAD_START)));
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

/// Discards the progress.
struct Silent;

impl Progress for Silent {
    fn step(&self, _: &Step<'_>) {}

    fn message(&self, _: &str) {}

    fn program_output(&self) -> io::Result<ProgramOutput> {
        Ok(ProgramOutput::none())
    }
}
