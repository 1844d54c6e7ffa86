//! Writes the answers of directories; the module of the same name in `image` describes their layout.

use alloc::vec::Vec;

use image::{answer_kind, checksum, has_value, mark};

/// Writes the answers of one directory after the other.
#[derive(Clone, Debug, Default)]
pub struct AnswersWriter {
    bytes: Vec<u8>,
    marks: Vec<u32>,
    own: Vec<u8>,
    last: Vec<u8>,
}

impl AnswersWriter {
    /// Adds an answer of the current directory. Names must be sorted, without NUL and at most [`MAX_NAME`] bytes long;
    /// `value` must not contain NUL.
    pub fn push(&mut self, kind: u32, name: &[u8], value: &[u8]) {
        let shared = name.iter().zip(&self.last).take_while(|(one, other)| one == other).count().min(u8::MAX.into());
        self.own.extend_from_slice(&[kind as u8, shared as u8]);
        self.own.extend_from_slice(&name[shared..]);
        self.own.push(0);
        if has_value(kind) {
            self.own.extend_from_slice(value);
            self.own.push(0);
        }
        if kind == answer_kind::ABSENT {
            self.marks.push(mark(name));
        }
        self.last = name.to_vec();
    }

    /// Ends a directory; returns the offset, size and checksum of its answers, all 0 if it has none.
    pub fn end_directory(&mut self) -> (u64, u64, u64) {
        if self.own.is_empty() {
            return (0, 0, 0);
        }
        let start = self.bytes.len();
        self.marks.sort_unstable();
        self.marks.dedup();
        self.bytes.extend_from_slice(&(self.marks.len() as u32).to_le_bytes());
        self.marks.drain(..).for_each(|mark| self.bytes.extend_from_slice(&mark.to_le_bytes()));
        self.bytes.append(&mut self.own);
        self.last.clear();
        (start as u64, (self.bytes.len() - start) as u64, checksum(&self.bytes[start..]))
    }

    /// All answers.
    pub fn finish(self) -> Vec<u8> {
        self.bytes
    }
}
