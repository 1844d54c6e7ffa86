//! Which files are being loaded right now, and who waits for them.

use crate::ruby::Value;

/// A file that is being loaded.
struct InProgress {
    /// Tells it from others, also of the same path.
    number: u64,
    path: Box<[u8]>,
    thread: Value,
    /// A forked child has none of its parent's other threads.
    process: u32,
    waiting: Vec<Value>,
}

/// Files that are being loaded by code from the archive, in the order in which that began.
#[derive(Default)]
pub struct Loading {
    all: Vec<InProgress>,
    last: u64,
}

/// Who is loading a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loader {
    Nobody,
    /// The thread that asks.
    Itself,
    /// Another thread; the number is for [`Loading::wait`].
    Other(u64),
}

impl Loading {
    /// A thread begins to load a file. The answer is for [`end`](Self::end).
    pub fn begin(&mut self, path: &[u8], thread: Value) -> u64 {
        self.last += 1;
        let process = std::process::id();
        self.all.push(InProgress { number: self.last, path: path.into(), thread, process, waiting: Vec::new() });
        self.last
    }

    /// The loading has ended. The answer is who waited for that.
    pub fn end(&mut self, number: u64) -> Vec<Value> {
        let Some(at) = self.all.iter().rposition(|one| one.number == number) else { return Vec::new() };
        self.all.remove(at).waiting
    }

    /// Who is loading a file for whose path `is_wanted` holds.
    pub fn loader(&mut self, thread: Value, is_wanted: impl Fn(&[u8]) -> bool) -> Loader {
        let Some(at) = self.all.iter().position(|one| is_wanted(&one.path)) else { return Loader::Nobody };
        if self.all[at].thread == thread {
            return Loader::Itself;
        }
        if self.all[at].process != std::process::id() {
            self.all.remove(at);
            return Loader::Nobody;
        }
        Loader::Other(self.all[at].number)
    }

    /// A thread wants to be woken when that loading ends.
    pub fn wait(&mut self, number: u64, thread: Value) {
        if let Some(one) = self.all.iter_mut().find(|one| one.number == number) {
            one.waiting.push(thread);
        }
    }

    /// A thread does not wait any more.
    pub fn leave(&mut self, thread: Value) {
        self.all.iter_mut().for_each(|one| one.waiting.retain(|waiting| *waiting != thread));
    }

    /// Whether that loading has not ended.
    pub fn is_going_on(&self, number: u64) -> bool {
        self.all.iter().any(|one| one.number == number)
    }
}
