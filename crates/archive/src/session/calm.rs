//! Work that is to be done once the boot has calmed down: a process that a signal ends later does nothing at its end.
//!
//! A thread waits for that, and asks the runtime to let it work. It exists only while it waits or works, handles no signals, and has ended
//! before a fork. The next one begins when the runtime says so, since CPython (3.12 and later) counts a process' threads after each fork, and
//! warns of more than one. If memory is limited there is none.

use std::cell::RefCell;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::process;

/// A boot that has loaded nothing for this long has ended, or pauses. Doubled after each time that work was done.
const CALM: Duration = Duration::from_millis(500);
/// Of the thread (bytes): it runs code of the runtime.
const STACK: usize = 1 << 20;

/// What the runtime is asked for, and what it is to do.
#[derive(Clone, Copy)]
pub struct Work {
    /// Called in the thread. Asks the runtime to call [`let_work`] in a thread of its own, where that does no harm. Returns whether it will.
    pub ask: fn() -> bool,
    /// Called after a fork that has ended the thread, in the process that goes on. Asks the runtime to call [`go_on`] once it has counted threads.
    pub after_fork: fn(),
    /// Called in the thread, while the runtime's own waits in [`let_work`].
    pub run: fn(),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// There is no thread, or it is about to end.
    Idle,
    /// The thread waits until nothing was loaded for a while.
    Waiting,
    /// The thread waits for the runtime.
    Asking,
    /// The thread works.
    Working,
}

struct State {
    /// `None`: nothing is to be done, as in a forked child.
    work: Option<Work>,
    phase: Phase,
    thread: Option<JoinHandle<()>>,
    is_to_stop: bool,
    /// Whether a fork has ended the thread.
    was_waiting: bool,
    /// When something was loaded last.
    last: Instant,
    calm: Duration,
}

static STATE: Mutex<Option<State>> = Mutex::new(None);
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// Held by a thread while it forks.
    static FORKING: RefCell<Option<MutexGuard<'static, Option<State>>>> = const { RefCell::new(None) };
}

fn lock() -> MutexGuard<'static, Option<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has this work done once the boot has calmed down, and again after it has loaded more.
pub fn when_calm(work: Work) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| process::at_fork(before_fork, after_fork, after_fork_in_child));
    if !process::is_memory_limited() {
        *lock() = Some(State {
            work: Some(work),
            phase: Phase::Idle,
            thread: None,
            is_to_stop: false,
            was_waiting: false,
            last: Instant::now(),
            calm: CALM,
        });
    }
}

/// Something is being loaded.
pub fn stir() {
    if let Some(state) = lock().as_mut() {
        state.last = Instant::now();
        state.start();
    }
}

/// Called by the runtime that was asked after a fork.
pub fn go_on() {
    if let Some(state) = lock().as_mut() {
        state.start();
    }
}

/// Called by the runtime that was asked. Returns once the work is done, or at once if the thread is gone. `wait`: calls its argument, which
/// waits, while other threads may use the runtime.
pub fn let_work(wait: impl FnOnce(&mut dyn FnMut())) {
    let mut held = lock();
    let Some(state) = held.as_mut().filter(|state| state.phase == Phase::Asking) else { return };
    state.phase = Phase::Working;
    let mut thread = state.thread.take();
    drop(held);
    CHANGED.notify_all();
    if thread.is_some() {
        wait(&mut || drop(thread.take().map(JoinHandle::join)));
    }
}

impl State {
    /// Starts the thread, unless there is one. While another thread forks, none may run.
    fn start(&mut self) {
        let Some(work) = self.work.filter(|_| self.phase == Phase::Idle && !self.is_to_stop) else { return };
        self.thread = process::start_thread(STACK, move || serve(work));
        match self.thread {
            Some(_) => self.phase = Phase::Waiting,
            // A thread that could not be started is not tried again.
            None => self.work = None,
        }
    }
}

/// The thread's work.
fn serve(work: Work) {
    if wait_until_calm() && (work.ask)() && wait_for_runtime() {
        (work.run)();
    }
    if let Some(state) = lock().as_mut() {
        state.phase = Phase::Idle;
    }
}

/// Waits until nothing was loaded for a while. Returns false if the thread is to end.
fn wait_until_calm() -> bool {
    let mut held = lock();
    while let Some(state) = held.as_mut().filter(|state| !state.is_to_stop) {
        let left = (state.last + state.calm).saturating_duration_since(Instant::now());
        if left.is_zero() {
            state.phase = Phase::Asking;
            state.calm *= 2;
            return true;
        }
        held = CHANGED.wait_timeout(held, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    false
}

/// Waits until the runtime lets the thread work. Returns false if the thread is to end.
fn wait_for_runtime() -> bool {
    let mut held = lock();
    while let Some(state) = held.as_mut() {
        if state.phase == Phase::Working {
            return true;
        }
        if state.is_to_stop {
            return false;
        }
        held = CHANGED.wait(held).unwrap_or_else(PoisonError::into_inner);
    }
    false
}

/// A child would inherit a lock that is held by a thread which it does not have. A thread that works is not waited for: the one that lets it
/// work does that.
extern "C" fn before_fork() {
    let mut held = lock();
    if let Some(state) = held.as_mut() {
        state.is_to_stop = true;
        state.was_waiting = state.phase != Phase::Idle;
        if let Some(thread) = state.thread.take() {
            drop(held);
            CHANGED.notify_all();
            let _ = thread.join();
            held = lock();
        }
    }
    FORKING.set(Some(held));
}

extern "C" fn after_fork() {
    let Some(mut held) = FORKING.take() else { return };
    let Some(state) = held.as_mut() else { return };
    state.is_to_stop = false;
    let work = state.work.filter(|_| std::mem::take(&mut state.was_waiting));
    drop(held);
    if let Some(work) = work {
        (work.after_fork)();
    }
}

extern "C" fn after_fork_in_child() {
    if let Some(mut held) = FORKING.take() {
        *held = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    static ASKED: AtomicU32 = AtomicU32::new(0);
    static DONE: AtomicU32 = AtomicU32::new(0);

    fn count(number: &AtomicU32) {
        number.fetch_add(1, Ordering::SeqCst);
    }

    fn wait_for(number: &AtomicU32, value: u32) {
        let begun = Instant::now();
        while number.load(Ordering::SeqCst) < value && begun.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        assert_eq!(number.load(Ordering::SeqCst), value);
    }

    #[test]
    fn work_is_done_once_it_is_calm_and_the_runtime_lets_it() {
        let ask = || {
            count(&ASKED);
            true
        };
        when_calm(Work { ask, after_fork: || count(&ASKED), run: || count(&DONE) });
        let begun = Instant::now();
        stir();
        wait_for(&ASKED, 1);
        assert!(begun.elapsed() >= CALM && DONE.load(Ordering::SeqCst) == 0);
        // Loaded while the thread waits for the runtime.
        stir();
        before_fork();
        after_fork();
        let_work(|_| panic!("the fork has ended the thread that has asked"));
        assert_eq!(ASKED.load(Ordering::SeqCst), 2);
        go_on();
        wait_for(&ASKED, 3);
        let_work(|wait| wait());
        assert_eq!(DONE.load(Ordering::SeqCst), 1);
        stir();
        before_fork();
        after_fork_in_child();
        stir();
        assert!(lock().is_none(), "nothing is done in a child");
    }
}
