//! The builder: a process in the background that makes the images which a start has asked for, once the program that asked has ended or got
//! going, and if no other builder is at work.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use freeze::{Content, FreezeOutcome, ProgramOutput, Progress, Step};
use installation::Installation;
use runtime::deadline::timespec;
use runtime::terminal::Terminal;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::fs::FlockOperation;
use rustix::process::{pidfd_open, Pid, PidfdFlags};

use crate::attempt::{Attempts, Outcome};
use crate::background::Asked;
use crate::build::{attempt, is_unused, For, LIMIT};
use crate::builder_memory::Room;
use crate::changes::{differing, is_being_edited, start_at, Changes};
use crate::folder::{lock, Lock};
use crate::put_off_reason::Delay;
use crate::remote::Look;
use crate::{background, builder_memory, busy, eviction, fit, learn, remote, sys, Folder, PutOff, Store};

/// How long the program that asked has the machine to itself.
const HEAD_START: Duration = Duration::from_secs(2);
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

/// An image that is to be made.
struct Task {
    /// The folder of its kind.
    folder: Folder,
    output: PathBuf,
    /// See [`Attempts::begin`].
    for_news: Option<bool>,
}

/// Makes what was asked for, unless it is there by now, or none can be made now. `pid`: of the program that asked; `limit`: of the store
/// (bytes).
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
    if is_made(folder, asked, &before) || Attempts::load(folder).why_none(whom.environment).is_some() {
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
    record_changes(folder, asked, whom.terminal.as_ref());
    let watch = Watch::start();
    let first = first_task(folder, asked, whom);
    let attempts = Attempts::load(&first.folder);
    let came = carry_out(&first, &own, whom);
    if !own.is_there() {
        return;
    }
    if matches!(came, Came::MadeElsewhere) {
        return PutOff::record(folder, Delay::MadeElsewhere, 0);
    }
    if matches!(came, Came::NoImage) && watch.is_short() {
        // The outcome says nothing about the program. If it cannot be written, the attempt counts as fruitless.
        let _ = attempts.keep(&first.folder);
        let had = room.map_or(0, |room| room.bytes);
        PutOff::record(folder, Delay::RanShort, needed.max(had + had / 4));
    } else {
        PutOff::forget(folder);
        second_task(folder, &first, whom).iter().for_each(|task| {
            carry_out(task, &own, whom);
        });
    }
    eviction::sweep(&store);
    eviction::prune(&store, limit);
}

/// Whether another builder has made it meanwhile, which another start had asked. Image times do not show it: the clock may have been set
/// back since. `before`: the images when it was asked for.
fn is_made(folder: &Folder, asked: &Asked<'_>, before: &BTreeSet<State>) -> bool {
    let made: Vec<PathBuf> = states(folder).difference(before).map(|(image, ..)| image.clone()).collect();
    match asked {
        Asked::Again(image) | Asked::ForNews(image) => made.iter().any(|made| made == image),
        Asked::New { seen } => folder.images().len() > *seen || !made.is_empty(),
    }
}

/// The image to make first: what was asked for, or the first image of the program's libraries. A start from that one tells what else there
/// is.
fn first_task(folder: &Folder, asked: &Asked<'_>, whom: &For<'_>) -> Task {
    let (output, for_news) = match asked {
        Asked::Again(image) => (image.to_path_buf(), Some(false)),
        Asked::ForNews(image) => (image.to_path_buf(), Some(true)),
        Asked::New { .. } => {
            if let Some(task) = task_for_libraries(folder, whom).filter(|task| task.for_news.is_none()) {
                return task;
            }
            (place_of_new(folder, &Attempts::load(folder), whom.environment), None)
        }
    };
    Task { folder: folder.clone(), output, for_news }
}

/// The image of the other kind that is due, too: an upgrade makes both kinds stale.
fn second_task(folder: &Folder, first: &Task, whom: &For<'_>) -> Option<Task> {
    match (folder.content(), first.folder.content()) {
        (Content::Program, Content::Program) => task_for_libraries(folder, whom),
        (Content::Program, Content::Libraries) => None,
        (Content::Libraries, _) => task_for_program(folder, whom),
    }
}

/// What came of a task.
enum Came {
    /// There is an image.
    Image,
    /// There is none.
    NoImage,
    /// Another machine makes it.
    MadeElsewhere,
}

/// Takes an image from the remote store, or makes one and gives it to that, unless another machine is about to.
fn carry_out(task: &Task, own: &Lock, whom: &For<'_>) -> Came {
    let lease = match remote::look(&task.folder, own, &task.output, whom, task.for_news) {
        Look::Pulled => return Came::Image,
        Look::MadeElsewhere => return Came::MadeElsewhere,
        Look::NoImage(lease) => lease,
    };
    sys::alarm(LIMIT);
    let outcome = attempt(&task.folder, own, &task.output, whom, task.for_news, &Silent);
    let Some(FreezeOutcome::Written(written)) = outcome else { return Came::NoImage };
    // An image that is no faster was removed again, and others would use an incomplete one for good.
    if own.is_there() && written.path.exists() && !written.lacks {
        remote::push(&task.folder, &written.path, lease);
    }
    Came::Image
}

/// Whether the command of this folder starts a program of the user's own, which has images of its libraries as well.
fn starts_own_program(folder: &Folder) -> bool {
    let command = folder.command().filter(|_| folder.content() == Content::Program);
    command.zip(Installation::find().ok()).is_some_and(|(command, installation)| {
        let words: Vec<OsString> = command.words.iter().map(OsString::from).collect();
        freeze::is_own_program(&words, &installation)
    })
}

/// The next image of the libraries for these starts, if the folder's program has such images: there is none yet, or it lacks what starts
/// have reported since, or is stale.
fn task_for_libraries(folder: &Folder, whom: &For<'_>) -> Option<Task> {
    let libraries = folder.with(Content::Libraries);
    if !starts_own_program(folder) || Attempts::load(&libraries).why_none(whom.environment).is_some() {
        return None;
    }
    let start = start_at(whom.terminal.as_ref());
    let Some(image) = libraries.images().into_iter().find(|image| fit::fits_start(image, &start)) else {
        return Some(Task { output: libraries.next_image(), folder: libraries, for_news: None });
    };
    let has_news = learn::has_news(&libraries, &image);
    let is_due = has_news || !differing(&image, &start).is_empty();
    is_due.then_some(Task { folder: libraries, output: image, for_news: Some(has_news) })
}

/// The image of the program that is stale, if one of its libraries had to be made again. None while the program is edited.
fn task_for_program(libraries: &Folder, whom: &For<'_>) -> Option<Task> {
    let (program, start) = (libraries.with(Content::Program), start_at(whom.terminal.as_ref()));
    let image = program.images().into_iter().find(|image| fit::fits_start(image, &start))?;
    let differing = differing(&image, &start);
    let is_due = !differing.is_empty() && !is_being_edited(&differing);
    let may_try = is_due && Attempts::load(&program).why_none(whom.environment).is_none();
    may_try.then_some(Task { folder: program, output: image, for_news: Some(false) })
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

/// An image, with the inode and the time of the last change (s, ns), which distinguish it from another one of that name.
type State = (PathBuf, u64, i64, i64);

/// The images of a folder.
fn states(folder: &Folder) -> BTreeSet<State> {
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

/// Waits until the process has ended, or for a moment.
fn wait_for(pid: i32) {
    let Some(process) = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else { return };
    let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&timespec(HEAD_START)));
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
