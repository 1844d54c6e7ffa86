//! The builder: makes one image, when the program that has asked for it has ended or got going, and nobody else makes one.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use failure::Result;
use freeze::{Finding, FreezeOutcome, FreezeRequest, InStore, ProgramOutput, Progress, Step};
use image_file::starts::Starts;
use image_file::ImageFile;
use installation::Installation;
use runtime::deadline::timespec;
use runtime::terminal::Terminal;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::FlockOperation;
use rustix::process::{pidfd_open, Pid, PidfdFlags};

use crate::attempt::{Attempt, FileState, Outcome};
use crate::background::Asked;
use crate::clock::unix_now;
use crate::folder::lock;
use crate::memory::Room;
use crate::{background, limits, machine, memory, room, sys, Command, Folder, PutOff, StartTimes, Store};

/// How long the program that has asked gets to itself.
const HEAD_START: Duration = Duration::from_secs(2);
/// How long a builder may take (seconds): the next one waits for it.
const LIMIT: u32 = 15 * 60;
/// How often it looks whether there is memory left, and the stack of the thread that does (bytes).
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
const STACK: usize = 64 << 10;
/// So many files of a boot are remembered.
const MAX_FILES: usize = 20_000;

/// Makes an image in the background. `words`: those behind the subcommand, as [`crate::background`] puts them there.
pub fn in_background(words: &[OsString]) {
    let [pid, limit, seen, terminal, folder, image @ ..] = words else { return };
    let number = |word: &OsString| word.to_str().and_then(|text| text.parse().ok());
    let (Some(pid), Some(limit), Some(seen)) = (number(pid), number(limit), number(seen)) else { return };
    let asked = image.first().map_or(Asked::New { seen: seen as usize }, |image| Asked::Again(Path::new(image)));
    let terminal = background::parse_terminal(terminal);
    make(pid as i32, limit, &Folder::new(folder.into()), &asked, terminal);
}

/// `pid`: of the program that has asked for it; `limit`: of the store (bytes); `terminal`: of the starts that it is for.
fn make(pid: i32, limit: u64, folder: &Folder, asked: &Asked<'_>, terminal: Option<Terminal>) {
    let before = states(folder);
    sys::step_back();
    wait_for(pid);
    let Some(store) = Store::find() else { return };
    let Some(_own) = folder.lock().filter(|_| folder.is_own()) else { return };
    // Next to the folders of this place; another place has other builders.
    let all = folder.path().with_file_name(".builder");
    let Some(_all) = lock(&all, FlockOperation::LockExclusive) else { return };
    // Somebody else may have asked, too. Not by the time of an image: the clock may have been set back since.
    let made: Vec<PathBuf> = states(folder).difference(&before).map(|(image, ..)| image.clone()).collect();
    let is_done = match asked {
        Asked::Again(image) => made.iter().any(|made| made == image),
        Asked::New { seen } => folder.images().len() > *seen || !made.is_empty(),
    };
    if is_done {
        return;
    }
    // Whoever has asked may run on, and is the first copy.
    let needed = memory::needed(pid, folder.images().iter().map(|image| limits::size(image)));
    let room = Room::now();
    if let Some(why) = room.as_ref().and_then(|room| room.lacks(needed)) {
        return PutOff::note(folder, why, needed);
    }
    if let Some(why) = machine::is_busy() {
        return PutOff::note(folder, why.to_owned(), 0);
    }
    let output = match asked {
        Asked::Again(image) => image.to_path_buf(),
        Asked::New { .. } => folder.next_image(),
    };
    sys::alarm(LIMIT);
    let watch = Watch::start();
    let before = Attempt::of(folder);
    let outcome = build(folder, &output, terminal, false, &Silent);
    if !matches!(outcome, Some(FreezeOutcome::Written(_))) && watch.is_short() {
        // That says nothing about the program.
        before.keep(folder);
        let had = room.map_or(0, |room| room.bytes);
        PutOff::note(folder, "memory ran short while an image was made".to_owned(), needed.max(had + had / 4));
    } else {
        PutOff::forget(folder);
    }
    limits::sweep(&store);
    limits::prune(&store, limit);
}

/// Ends a build when others need the memory that it takes.
struct Watch {
    /// Whether it has.
    is_short: Arc<AtomicBool>,
    /// See [`memory::victims`].
    victims: u64,
}

impl Watch {
    /// Watches until this process ends.
    fn start() -> Watch {
        let is_short = Arc::new(AtomicBool::new(false));
        let watch = Watch { is_short: Arc::clone(&is_short), victims: memory::victims() };
        // Without a thread nobody watches; the kernel still ends this process before others.
        let _ = thread::Builder::new().stack_size(STACK).spawn(move || {
            while !Room::now().is_some_and(|room| room.is_used_up()) {
                thread::sleep(BETWEEN_LOOKS);
            }
            is_short.store(true, Ordering::SeqCst);
            sys::alarm_now();
        });
        watch
    }

    /// Whether memory has run short meanwhile.
    fn is_short(&self) -> bool {
        self.is_short.load(Ordering::SeqCst) || memory::victims() > self.victims
    }
}

/// The images of a folder, each with what tells it from another one of that name: where its file lies, and when that was last changed.
fn states(folder: &Folder) -> BTreeSet<(PathBuf, u64, i64, i64)> {
    let state = |image: PathBuf| {
        let status = image.metadata().ok()?;
        Some((image, status.ino(), status.ctime(), status.ctime_nsec()))
    };
    folder.images().into_iter().filter_map(state).collect()
}

/// Makes an image of the folder's command for starts at such a `terminal`, or without one, and writes down what came of it. `makes_do`: whether
/// somebody waits for it, to whom one that lacks something is better than none.
pub fn build(
    folder: &Folder,
    output: &Path,
    terminal: Option<Terminal>,
    makes_do: bool,
    progress: &dyn Progress,
) -> Option<FreezeOutcome> {
    let command = folder.command()?;
    room::make();
    let mut attempt = Attempt::of(folder);
    let progress = Recording { progress, files: RefCell::default() };
    let unused = ImageFile::open(output).ok().and_then(|image| Starts::of(&image)).is_some_and(|it| it.thaws == 0);
    let outcome = match request(folder, &command, &attempt, output, terminal) {
        Ok(mut request) => {
            request.store.iter_mut().for_each(|store| store.makes_do |= makes_do);
            freeze::freeze(&request, &progress)
        }
        Err(failure) => FreezeOutcome::Failed(failure),
    };
    let files = || {
        let own = [command.file.clone()];
        progress.files.borrow().iter().chain(&own).take(MAX_FILES).map(|path| FileState::of(path)).collect()
    };
    attempt.outcome = match &outcome {
        FreezeOutcome::Written(written) => {
            attempt.in_vain = if unused { attempt.in_vain + 1 } else { 0 };
            attempt.has_made(written.learnt, written.lacks);
            let times = match (&attempt.outcome, terminal) {
                // It cannot be measured without one.
                (Outcome::Made { times, .. }, Some(_)) => *times,
                (_, Some(_)) => None,
                _ => written.tells_version.then(|| StartTimes::measure(Path::new(&command.words[0]), output)).flatten(),
            };
            Outcome::Made { took: written.took.as_secs_f64(), times }
        }
        FreezeOutcome::Refused(findings) => {
            let why: Vec<String> = findings.iter().map(|finding| finding.to_string()).collect();
            match findings.iter().any(Finding::is_internal) {
                true => Outcome::Failed { why: why.join(" "), files: files(), passing: true },
                false => Outcome::Refused { why, files: files() },
            }
        }
        // That says nothing about another directory.
        FreezeOutcome::Failed(_) if std::env::current_dir().is_err() => return Some(outcome),
        FreezeOutcome::Failed(failure) => {
            // What a program says that finds no memory is its own affair.
            let passing = failure.is_passing || machine::is_busy().is_some();
            Outcome::Failed { why: failure.message.clone(), files: files(), passing }
        }
        FreezeOutcome::Interrupted(libc::SIGALRM) => Outcome::Failed {
            why: format!("it was ended by SIGALRM, which comes after {} minutes in the background", LIMIT / 60),
            files: files(),
            passing: false,
        },
        FreezeOutcome::Interrupted(_) => return Some(outcome),
    };
    if let Outcome::Failed { .. } = attempt.outcome {
        attempt.failed += 1;
    }
    attempt.snapboot = env!("CARGO_PKG_VERSION").to_owned();
    attempt.at = unix_now();
    attempt.keep(folder);
    Some(outcome)
}

fn request(
    folder: &Folder,
    command: &Command,
    attempt: &Attempt,
    output: &Path,
    terminal: Option<Terminal>,
) -> Result<FreezeRequest> {
    let program =
        std::env::current_exe().map_err(|error| failure::Failure::io("find", Path::new("snapboot"), &error))?;
    Ok(FreezeRequest {
        store: Some(InStore {
            on_fallback: vec![program.clone().into(), crate::fallback::SUBCOMMAND.into(), output.into()],
            profile: folder.profile(),
            on_news: vec![
                program.into(),
                crate::learn::SUBCOMMAND.into(),
                output.into(),
                background::terminal_word(terminal).into(),
            ],
            terminal,
            knows: attempt.knows,
            makes_do: attempt.makes_do(),
            lesser_age: attempt.lesser_age(),
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

/// Passes on what a freeze tells, and notes which files its boots have read.
struct Recording<'a> {
    progress: &'a dyn Progress,
    files: RefCell<BTreeSet<PathBuf>>,
}

impl Progress for Recording<'_> {
    fn step(&self, step: &Step<'_>) {
        self.progress.step(step);
    }

    fn note(&self, note: &str) {
        self.progress.note(note);
    }

    fn program_output(&self) -> io::Result<ProgramOutput> {
        self.progress.program_output()
    }

    fn has_read(&self, file: &Path) {
        self.files.borrow_mut().insert(file.to_owned());
    }
}

/// Tells nobody.
struct Silent;

impl Progress for Silent {
    fn step(&self, _: &Step<'_>) {}

    fn note(&self, _: &str) {}

    fn program_output(&self) -> io::Result<ProgramOutput> {
        Ok(ProgramOutput::none())
    }
}
