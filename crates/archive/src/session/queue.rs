//! The entries that wait to be written to the archive. They are written once no new entry has arrived for a while, from time to time in a
//! long boot, and before this process ends, forks or executes another program.
//!
//! A thread does the first two. It exists only while entries wait, never calls the runtime, handles no signals, and ends before a fork. If
//! memory is limited there is no thread, only the other writes.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::process;
use crate::batch::{Batch, NewEntry, NewInput};
use crate::entry::Entry;
use crate::error::Error;
use crate::key::Scope;
use crate::write::append;

/// A boot that queues nothing for this long has ended, or pauses.
const CALM: Duration = Duration::from_millis(500);

/// The longest wait of the first entry. Doubled each time it is reached, since each write adds a segment.
const LONGEST: Duration = Duration::from_secs(4);

/// The thread's stack. It holds only the paths of the files that the thread reads.
const STACK: usize = 256 << 10;

/// The archive to write to.
pub struct Target {
    pub path: PathBuf,
    pub root: PathBuf,
    /// Bytes.
    pub bound: u64,
}

/// Waiting entries. The queue lives as long as the process, which may fork at any time.
pub struct Queue {
    target: Target,
    /// `None`: nothing is written any more.
    state: Mutex<Option<State>>,
    changed: Condvar,
}

struct State {
    batch: Batch,
    /// When the first and the last entry of the batch were queued.
    first: Instant,
    last: Instant,
    longest: Duration,
    /// False if the program's memory is limited: a thread takes some of it.
    may_have_thread: bool,
    thread: Option<JoinHandle<()>>,
    /// The thread has ended, or will end without looking at the batch again.
    is_over: bool,
    is_writing: bool,
    is_to_stop: bool,
    /// The current fork freezes the process.
    is_frozen: bool,
}

type Held = MutexGuard<'static, Option<State>>;

/// The queues of this process: one, unless it has several sessions.
static QUEUES: Mutex<Vec<&'static Queue>> = Mutex::new(Vec::new());

/// Held by a thread while it forks.
struct Forking {
    _queues: MutexGuard<'static, Vec<&'static Queue>>,
    states: Vec<Held>,
}

thread_local! {
    static FORKING: RefCell<Option<Forking>> = const { RefCell::new(None) };
}

/// Writes the waiting entries of this process.
pub fn flush() -> Result<(), Error> {
    let queues = queues().clone();
    queues.into_iter().map(|queue| queue.flush(queue.lock()).1).fold(Ok(()), Result::and)
}

/// Does that when the process ends, for a runtime whose own handlers would not be the last.
pub fn flush_at_exit() {
    extern "C" fn flush_last() {
        let _ = flush();
    }
    process::at_exit(flush_last);
}

fn queues() -> MutexGuard<'static, Vec<&'static Queue>> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    /// Prepares to write there.
    pub fn open(target: Target) -> &'static Queue {
        let may_have_thread = !process::is_memory_limited();
        let now = Instant::now();
        let state = State {
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
        let queue = Box::leak(Box::new(Queue { target, state: Mutex::new(Some(state)), changed: Condvar::new() }));
        let mut queues = queues();
        if queues.is_empty() {
            process::at_fork(before_fork, after_fork, after_fork_in_child);
        }
        queues.push(queue);
        queue
    }

    /// Whether queued entries will be written.
    pub fn is_open(&self) -> bool {
        self.lock().is_some()
    }

    /// Queues an entry.
    pub fn add(&'static self, entry: NewEntry) {
        self.change(|batch| batch.add(entry));
    }

    /// Queues an entry once more, with the current times of its inputs.
    pub fn again(&'static self, entry: &Entry<'_>) {
        self.change(|batch| batch.again(entry));
    }

    /// Whether an entry of that name with exactly these inputs was queued before.
    pub fn has(&self, scope: &Scope, name: &[u8], inputs: &[NewInput]) -> bool {
        self.lock().as_ref().is_some_and(|state| state.batch.has(scope, name, inputs))
    }

    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&'static self, work: impl FnOnce(&mut Batch)) {
        let mut held = self.lock();
        let Some(state) = held.as_mut() else { return };
        let was_empty = state.batch.is_empty();
        work(&mut state.batch);
        if state.batch.is_empty() {
            return;
        }
        state.last = Instant::now();
        if was_empty {
            state.first = state.last;
        }
        // While another thread forks, no thread may run.
        if state.is_over && state.may_have_thread && !state.is_to_stop {
            state.thread = process::start_thread(STACK, || self.serve());
            // A thread that could not be started is not tried again.
            state.may_have_thread = state.thread.is_some();
            state.is_over = state.thread.is_none();
        }
    }

    fn flush<'a>(
        &'a self,
        mut held: MutexGuard<'a, Option<State>>,
    ) -> (MutexGuard<'a, Option<State>>, Result<(), Error>) {
        while held.as_ref().is_some_and(|state| state.is_writing) {
            held = self.changed.wait(held).unwrap_or_else(PoisonError::into_inner);
        }
        let done = match held.as_mut() {
            // The lock keeps the thread away.
            Some(state) if !state.batch.is_empty() => self.write(state.batch.take()),
            _ => Ok(()),
        };
        (held, done)
    }

    fn write(&self, batch: Batch) -> Result<(), Error> {
        let Target { path, root, bound } = &self.target;
        append(path, root, batch, *bound).map(drop)
    }

    /// The thread's work: writes when it is time to, and ends when nothing waits.
    fn serve(&self) {
        let mut held = self.lock();
        while let Some(state) = held.as_mut() {
            if state.is_to_stop || state.batch.is_empty() {
                state.is_over = true;
                return;
            }
            let (calm, longest) = (state.last + CALM, state.first + state.longest);
            let now = Instant::now();
            let time = calm.min(longest).saturating_duration_since(now);
            if !time.is_zero() {
                held = self.changed.wait_timeout(held, time).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            if now < calm {
                state.longest *= 2;
            }
            let batch = state.batch.take();
            state.is_writing = true;
            drop(held);
            // An error does not concern the program: it runs as it would without an archive.
            let _ = self.write(batch);
            process::give_memory_back();
            held = self.lock();
            if let Some(state) = held.as_mut() {
                state.is_writing = false;
            }
            self.changed.notify_all();
        }
    }

    /// A child would inherit the waiting entries, a lock held by a thread that it does not have, and an open file. So everything is
    /// written, and the thread ends.
    fn before_fork(&'static self) -> Held {
        let mut held = self.lock();
        if let Some(state) = held.as_mut() {
            state.is_to_stop = true;
            state.is_frozen = process::is_about_to_freeze();
            if let Some(thread) = state.thread.take() {
                drop(held);
                self.changed.notify_all();
                let _ = thread.join();
                held = self.lock();
            }
        }
        self.flush(held).0
    }
}

extern "C" fn before_fork() {
    let queues = queues();
    let states = queues.iter().map(|queue| queue.before_fork()).collect();
    FORKING.set(Some(Forking { _queues: queues, states }));
}

extern "C" fn after_fork() {
    let Some(mut forking) = FORKING.take() else { return };
    for state in forking.states.iter_mut().filter_map(|held| held.as_mut()) {
        state.is_to_stop = false;
    }
}

/// The parent keeps entries that could not be written. A thaw writes nothing: it sees the archive as of the freeze, so each start would
/// store the same entries again.
extern "C" fn after_fork_in_child() {
    FORKING.with_borrow_mut(|forking| {
        for held in forking.iter_mut().flat_map(|forking| &mut forking.states) {
            if held.as_ref().is_some_and(|state| state.is_frozen) {
                **held = None;
            }
            if let Some(state) = held.as_mut() {
                drop(state.batch.take());
            }
        }
    });
    after_fork();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Context, Kind};

    #[test]
    fn no_thread_is_started_while_another_one_forks() {
        let directory = tempfile::tempdir().unwrap();
        let (path, root) = (directory.path().join("archive"), directory.path().to_owned());
        let queue = Queue::open(Target { path, root, bound: crate::DEFAULT_BOUND });
        let set = |is_to_stop| queue.lock().as_mut().unwrap().is_to_stop = is_to_stop;
        let has_thread = || queue.lock().as_ref().unwrap().thread.is_some();
        let entry = |name: &[u8]| NewEntry {
            kind: Kind::Memo,
            context: Context::new("test 1.0"),
            name: name.to_vec(),
            inputs: Vec::new(),
            payload: b"payload".to_vec(),
            compress: false,
        };
        set(true);
        queue.add(entry(b"one"));
        assert!(!has_thread());
        set(false);
        queue.add(entry(b"two"));
        assert_eq!(has_thread(), queue.lock().as_ref().unwrap().may_have_thread);
        queue.flush(queue.lock()).1.unwrap();
    }
}
