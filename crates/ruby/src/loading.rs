//! Which files are being loaded right now, and who waits for them.

use crate::ruby::Value;

/// A file that is being loaded.
struct InProgress {
    /// Tells it from others, also of the same path.
    number: u64,
    path: Box<[u8]>,
    thread: Value,
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
        self.all.push(InProgress { number: self.last, path: path.into(), thread, waiting: Vec::new() });
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

    /// The thread of a loading that has not ended.
    pub fn thread(&self, number: u64) -> Option<Value> {
        self.all.iter().find(|one| one.number == number).map(|one| one.thread)
    }
}
