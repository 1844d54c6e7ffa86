//! How long each of many like things took, for `snapboot explain`: directories of inputs that are looked at, files that are mapped.

use crate::sys::{self, Memory};

/// Size of one time (bytes).
const SIZE: usize = size_of::<u64>();
/// Room for each list of times (bytes), between two places of the reserved range.
const ROOM: usize = 0x10_0000;

/// The times, one after the other (ns). Where nobody asks for them there are none, and to note one does nothing.
#[derive(Default)]
pub struct Laps {
    /// In the range that the launcher leaves behind, so that nobody need give it back.
    memory: Option<&'static mut [u8]>,
    begun: u64,
}

impl Laps {
    /// Room for the times of `count` things at this place of the reserved range; none, where that cannot be had.
    #[inline(never)]
    pub fn with_room(place: u64, count: usize) -> Laps {
        let size = count * SIZE;
        let memory = if size > 0 && size <= ROOM { Memory::map(place, size as u64).ok() } else { None };
        Laps { memory: memory.map(Memory::leak), begun: 0 }
    }

    /// What is noted next begins now.
    pub fn begin(&mut self) {
        if self.memory.is_some() {
            self.begun = sys::monotonic().unwrap_or(0);
        }
    }

    /// Adds the time since the last `begin` or `end` to that of the directory or mapped file of this number.
    pub fn end(&mut self, number: usize) {
        if let Some(memory) = &mut self.memory {
            let now = sys::monotonic().unwrap_or(self.begun);
            if let Some(bytes) = memory.get_mut(number * SIZE..(number + 1) * SIZE) {
                let mut time = [0; SIZE];
                time.copy_from_slice(bytes);
                let time = u64::from_ne_bytes(time).saturating_add(now.saturating_sub(self.begun));
                bytes.copy_from_slice(&time.to_ne_bytes());
            }
            self.begun = now;
        }
    }

    /// Whether there are any.
    pub fn are_noted(&self) -> bool {
        self.memory.is_some()
    }

    /// The times (ns).
    pub fn times(&self) -> impl Iterator<Item = u64> + '_ {
        let bytes = self.memory.as_deref().unwrap_or_default();
        bytes.chunks_exact(SIZE).map(|bytes| {
            let mut time = [0; SIZE];
            time.copy_from_slice(bytes);
            u64::from_ne_bytes(time)
        })
    }
}
