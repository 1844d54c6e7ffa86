//! The builder: makes one image, when the program that has asked for it has ended or got going, and nobody else makes one.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

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

use crate::attempt::{unix_now, Attempt, FileState, Outcome};
use crate::background::Asked;
use crate::folder::lock;
use crate::tools::Installed;
use crate::{background, limits, machine, room, sys, Command, Effort, Folder, StartTimes, Store};

/// How long the program that has asked gets to itself.
const HEAD_START: Duration = Duration::from_secs(2);
/// How long a builder may take (seconds): the next one waits for it.
const LIMIT: u32 = 15 * 60;
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
    let begun = SystemTime::now();
    sys::step_back();
    wait_for(pid);
    let Some(store) = Store::find() else { return };
    let Some(_own) = folder.lock().filter(|_| folder.is_own()) else { return };
    // Next to the folders of this place; another place has other builders.
    let all = folder.path().with_file_name(".builder");
    let Some(_all) = lock(&all, FlockOperation::LockExclusive) else { return };
    let made = |image: &Path| image.metadata().and_then(|status| status.modified()).is_ok_and(|made| made > begun);
    // Somebody else may have asked, too.
    let is_done = match asked {
        Asked::Again(image) => made(image),
        Asked::New { seen } => folder.images().len() > *seen || folder.images().iter().any(|image| made(image)),
    };
    if is_done || machine::is_busy().is_some() {
        return;
    }
    let output = match asked {
        Asked::Again(image) => image.to_path_buf(),
        Asked::New { .. } => folder.next_image(),
    };
    sys::alarm(LIMIT);
    build(folder, &output, terminal, false, &Silent);
    limits::prune(&store, limit);
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
            let is_measured = written.tells_version && terminal.is_none() && !makes_do;
            match is_measured.then(|| effort(folder, &command, output)).flatten().filter(Effort::is_in_vain) {
                Some(effort) => {
                    folder.images().iter().for_each(|image| _ = limits::remove_image(image));
                    Outcome::Vain { effort, files: files() }
                }
                None => Outcome::Made { took: written.took.as_secs_f64(), times },
            }
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

/// What starts of a new image take, and what they would with the boot archive alone; None where the image is in front of an installed command,
/// which has nothing else there.
fn effort(folder: &Folder, command: &Command, image: &Path) -> Option<Effort> {
    if Installed::of(folder).is_some() {
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
