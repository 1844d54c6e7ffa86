//! Findings, which stand in the way of a freeze: their kinds, and a collection. `snapboot freeze` reports them
//! (crates/judge findings.rs). Each says its remedy in the text passed to [`Findings::add`].
//!
//! The file in the control directory has a record for each: the kind, then the number of a descriptor, the name of an
//! attribute or nothing, then the text.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed};

use inputs::attributes::Attribute;

use crate::sys;

/// The kind of a finding. The names are part of the contract with `snapboot freeze`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An open descriptor.
    Descriptor,
    /// A range of memory.
    Memory,
    /// A timer that runs.
    Timer,
    /// A pending signal.
    Signal,
    /// A child process.
    Child,
    /// A file lock.
    Lock,
    /// A thread that does not survive a fork.
    Thread,
    /// Another thread, which fork drops: reported, but no reason to refuse.
    DroppedThread,
    /// An attribute of the process.
    Attribute,
    /// A facility that the kernel lacks.
    Kernel,
    /// A failure of the freezer itself.
    Internal,
}

impl Kind {
    fn name(self) -> &'static [u8] {
        match self {
            Kind::Descriptor => b"descriptor",
            Kind::Memory => b"memory",
            Kind::Timer => b"timer",
            Kind::Signal => b"signal",
            Kind::Child => b"child",
            Kind::Lock => b"lock",
            Kind::Thread => b"thread",
            Kind::DroppedThread => b"note",
            Kind::Attribute => b"attribute",
            Kind::Kernel => b"kernel",
            Kind::Internal => b"internal",
        }
    }
}

/// Findings in the format of the file.
#[derive(Default)]
pub struct Findings {
    bytes: Vec<u8>,
    refused: bool,
}

impl Findings {
    /// Adds a finding.
    pub fn add(&mut self, kind: Kind, text: &[&[u8]]) {
        self.record(kind, b"", text);
    }

    /// Adds a finding about a descriptor.
    pub fn add_descriptor(&mut self, number: u32, text: &[&[u8]]) {
        self.record(Kind::Descriptor, &decimal(number.into()), text);
    }

    /// Adds a finding about an attribute of the process.
    pub fn add_attribute(&mut self, attribute: Attribute) {
        self.record(Kind::Attribute, attribute.name().as_bytes(), &attribute.finding().map(str::as_bytes));
    }

    fn record(&mut self, kind: Kind, subject: &[u8], text: &[&[u8]]) {
        self.bytes.extend_from_slice(b"finding=");
        for parts in [&[kind.name()][..], &[subject], text] {
            let (head, size) = channel::head(parts.iter().map(|part| part.len()).sum());
            self.bytes.extend_from_slice(&head[..size]);
            parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        }
        self.bytes.push(0);
        self.refused |= kind != Kind::DroppedThread;
    }

    /// Whether any finding forbids the freeze.
    pub fn refuse(&self) -> bool {
        self.refused
    }

    /// The records.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Keeps the findings of the prepare handler across the fork, for the child handler.
    pub fn keep(self) {
        let bytes = self.bytes.leak();
        KEPT_REFUSED.store(self.refused, Relaxed);
        KEPT_LENGTH.store(bytes.len(), Relaxed);
        KEPT.store(bytes.as_mut_ptr(), Relaxed);
    }

    /// Takes what [`Findings::keep`] kept.
    pub fn kept() -> Findings {
        let bytes = sys::kept_bytes(KEPT.load(Relaxed), KEPT_LENGTH.load(Relaxed)).to_vec();
        Findings { bytes, refused: KEPT_REFUSED.load(Relaxed) }
    }
}

static KEPT: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static KEPT_LENGTH: AtomicUsize = AtomicUsize::new(0);
static KEPT_REFUSED: AtomicBool = AtomicBool::new(false);

/// Drops kept findings: they lie in the arena, which is about to be released.
pub fn forget() {
    KEPT.store(core::ptr::null_mut(), Relaxed);
    KEPT_LENGTH.store(0, Relaxed);
    KEPT_REFUSED.store(false, Relaxed);
}

/// A number in decimal.
pub fn decimal(number: u64) -> Vec<u8> {
    alloc::format!("{number}").into_bytes()
}

/// A number in hexadecimal, as /proc writes addresses.
pub fn hexadecimal(number: u64) -> Vec<u8> {
    alloc::format!("{number:x}").into_bytes()
}
