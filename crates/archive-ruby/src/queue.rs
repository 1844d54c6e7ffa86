//! The entries that wait to be written to the archive. They are written once nothing new has come for a while, from time to time
//! in a long boot, and before this process ends, forks or executes another program.
//!
//! The first two are done by a thread that exists only while entries wait. It never calls Ruby (it has no token), handles no
//! signals, and ends before a fork. Where memory is limited there is no thread, only the other writes.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use archive::{Batch, Entry, NewEntry, NewInput, Scope};
use rustix::process::{getrlimit, Resource};

use crate::process;

/// A boot that queues nothing for so long has ended, or pauses.
const CALM: Duration = Duration::from_millis(500);

/// The longest wait of the first entry. Doubled each time it is reached, since each write adds a segment.
const LONGEST: Duration = Duration::from_secs(4);

/// The thread's stack. Only the paths of the files that it reads take room there.
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
    /// False where the program's memory is limited: a thread takes some of it.
    may_have_thread: bool,
    thread: Option<JoinHandle<()>>,
    /// The thread has ended, or will end without looking at the batch again.
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

/// Writes the waiting entries. `Err` says why that failed.
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
        // A thread that could not be started is not tried again.
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
        // The lock keeps the thread away meanwhile.
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
        // The program is not concerned by an error: it runs as it would without an archive.
        let _ = write(target, batch);
        process::give_memory_back();
        held = lock();
        if let Some(queue) = held.as_mut() {
            queue.is_writing = false;
        }
        CHANGED.notify_all();
    }
}

/// A child would inherit the waiting entries, a lock held by a thread that it does not have, and an open file. So everything is
/// written, and the thread ends.
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

/// The parent keeps what could not be written. A thaw writes nothing: it sees the archive as it was when the process was frozen,
/// so each start would store the same again.
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
