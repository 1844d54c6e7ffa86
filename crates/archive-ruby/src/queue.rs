//! What is waiting to be written to the archive, and when that is done: soon after nothing new has come for a while, now and then
//! in a boot that takes long, and before this process ends, forks or becomes another program.
//!
//! The first two are done by a thread that is there only while something waits. It knows nothing of Ruby, handles no signals, and
//! has ended before a fork. Where there must not be one, the rest does.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use archive::{Batch, Entry, NewEntry, NewInput, Scope};
use rustix::process::{getrlimit, Resource};

use crate::process;

/// A boot that queues nothing for so long has calmed down.
const CALM: Duration = Duration::from_millis(500);

/// What was queued first waits for no longer than this. Doubled each time that happens, since each writing adds a segment.
const LONGEST: Duration = Duration::from_secs(4);

/// A thread needs little, but for the path of each file that it reads again.
const STACK: usize = 256 << 10;

/// Where to write.
pub struct Target {
    pub path: PathBuf,
    pub root: PathBuf,
    /// Bytes.
    pub bound: u64,
}

struct Queue {
    target: &'static Target,
    batch: Batch,
    /// When the first and the last entry of the batch were queued.
    first: Instant,
    last: Instant,
    longest: Duration,
    /// Memory for a thread may be taken from a program that has only so much.
    may_have_thread: bool,
    thread: Option<JoinHandle<()>>,
    /// The thread has ended, or is about to without another look.
    is_over: bool,
    is_writing: bool,
    is_to_stop: bool,
    /// The fork that takes place freezes the process.
    is_frozen: bool,
}

static QUEUE: Mutex<Option<Queue>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// The queue while this thread forks.
    static HELD: RefCell<Option<MutexGuard<'static, Option<Queue>>>> = const { RefCell::new(None) };
}

/// Gets ready to write there.
pub fn open(target: Target) {
    let may_have_thread = [Resource::As, Resource::Data].into_iter().all(|of| getrlimit(of).current.is_none());
    let now = Instant::now();
    let queue = Queue {
        target: Box::leak(Box::new(target)),
        batch: Batch::default(),
        first: now,
        last: now,
        longest: LONGEST,
        may_have_thread,
        thread: None,
        is_over: true,
        is_writing: false,
        is_to_stop: false,
        is_frozen: false,
    };
    if lock().replace(queue).is_none() {
        process::at_fork(before_fork, after_fork, after_fork_in_child);
    }
}

/// Whether what is queued will be written.
pub fn is_open() -> bool {
    lock().is_some()
}

/// Queues an entry.
pub fn add(entry: NewEntry) {
    change(|batch| batch.add(entry));
}

/// Queues an entry once more, with the times that its inputs have now.
pub fn again(entry: &Entry<'_>) {
    change(|batch| batch.again(entry));
}

/// Whether an entry of that name that depends on just these inputs was queued before.
pub fn has(scope: &Scope, name: &[u8], inputs: &[NewInput]) -> bool {
    lock().as_ref().is_some_and(|queue| queue.batch.has(scope, name, inputs))
}

/// Writes what is waiting. Answers why that could not be written, if so.
pub fn flush() -> Result<(), String> {
    flush_held(lock()).1
}

fn lock() -> MutexGuard<'static, Option<Queue>> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait(held: MutexGuard<'static, Option<Queue>>) -> MutexGuard<'static, Option<Queue>> {
    CHANGED.wait(held).unwrap_or_else(PoisonError::into_inner)
}

fn change(work: impl FnOnce(&mut Batch)) {
    let mut held = lock();
    let Some(queue) = held.as_mut() else { return };
    let was_empty = queue.batch.is_empty();
    work(&mut queue.batch);
    if queue.batch.is_empty() {
        return;
    }
    queue.last = Instant::now();
    if was_empty {
        queue.first = queue.last;
    }
    if queue.is_over && queue.may_have_thread {
        queue.thread = process::start_thread(STACK, serve);
        // There will not be one the next time, either.
        queue.may_have_thread = queue.thread.is_some();
        queue.is_over = queue.thread.is_none();
    }
}

type Held = MutexGuard<'static, Option<Queue>>;

fn flush_held(mut held: Held) -> (Held, Result<(), String>) {
    while held.as_ref().is_some_and(|queue| queue.is_writing) {
        held = wait(held);
    }
    match held.as_mut() {
        // Who has the lock meanwhile keeps the thread away.
        Some(queue) if !queue.batch.is_empty() => {
            let done = write(queue.target, queue.batch.take());
            (held, done)
        }
        _ => (held, Ok(())),
    }
}

fn write(target: &Target, batch: Batch) -> Result<(), String> {
    archive::append(&target.path, &target.root, batch, target.bound).map(drop).map_err(|error| error.to_string())
}

/// What the thread does: writes when it is time to, and ends when nothing waits.
fn serve() {
    let mut held = lock();
    while let Some(queue) = held.as_mut() {
        if queue.is_to_stop || queue.batch.is_empty() {
            queue.is_over = true;
            return;
        }
        let (calm, longest) = (queue.last + CALM, queue.first + queue.longest);
        let now = Instant::now();
        let time = calm.min(longest).saturating_duration_since(now);
        if !time.is_zero() {
            held = CHANGED.wait_timeout(held, time).unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        if now < calm {
            queue.longest *= 2;
        }
        let (target, batch) = (queue.target, queue.batch.take());
        queue.is_writing = true;
        drop(held);
        // Nobody is there to hear what went wrong, and the program goes on as it would without.
        let _ = write(target, batch);
        process::give_memory_back();
        held = lock();
        if let Some(queue) = held.as_mut() {
            queue.is_writing = false;
        }
        CHANGED.notify_all();
    }
}

/// A child would have a copy of what waits, a thread that it does not have may hold the lock, and a file that is being written
/// would stay open: so all is written, and the thread ends.
extern "C" fn before_fork() {
    let mut held = lock();
    if let Some(queue) = held.as_mut() {
        queue.is_to_stop = true;
        queue.is_frozen = std::env::var_os("SNAPBOOT_ARM").is_some();
        if let Some(thread) = queue.thread.take() {
            drop(held);
            CHANGED.notify_all();
            let _ = thread.join();
            held = lock();
        }
    }
    let (held, _) = flush_held(held);
    HELD.set(Some(held));
}

extern "C" fn after_fork() {
    let Some(mut held) = HELD.take() else { return };
    if let Some(queue) = held.as_mut() {
        queue.is_to_stop = false;
    }
}

/// What could not be written is the parent's. A thaw writes nothing: it sees the archive as it was when the process was frozen,
/// so it would compile the same for it in each start.
extern "C" fn after_fork_in_child() {
    HELD.with_borrow_mut(|held| {
        let Some(held) = held else { return };
        if held.as_ref().is_some_and(|queue| queue.is_frozen) {
            **held = None;
        }
        if let Some(queue) = held.as_mut() {
            drop(queue.batch.take());
        }
    });
    after_fork();
}
