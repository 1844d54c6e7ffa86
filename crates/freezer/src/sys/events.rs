//! Records what the process reads of its surroundings during the boot as events in the file `noted` of the control
//! directory, in the format of its other files; see [`record`]. `snapboot freeze` makes inputs of them.
//!
//! Nothing is recorded after the freeze, and an image contains none of this but the code. The caller may be inside
//! malloc, or in a child that shares this memory until it executes a program: so there are no locks, no heap, and no
//! descriptor that stays open.

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::ffi::{c_char, CStr};
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicU8, AtomicUsize, Ordering::Relaxed};

use ::channel::{self, Kind, Phase};

use super::on_demand;

/// Whether events are recorded.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// How many events are remembered, so that each is written once. Beyond that, events repeat.
const CAPACITY: usize = 2048;
static WRITTEN: [AtomicU64; CAPACITY] = [const { AtomicU64::new(0) }; CAPACITY];

/// The path of the file, with its NUL.
struct Path(UnsafeCell<[u8; libc::PATH_MAX as usize]>);
// SAFETY: written by the constructor and by the child of the freeze, when there is one thread; only read in between.
unsafe impl Sync for Path {}
static PATH: Path = Path(UnsafeCell::new([0; libc::PATH_MAX as usize]));

/// The fields of an event that are written here: all but the last.
const FIELDS: usize = channel::EVENT.len() - 1;
/// The key of the entries.
const KEY: &[u8] = b"event=";

const NAME: &[u8] = b"/noted\0";
const ENVIRONMENT: &[u8] = b"/environment\0";

/// Length of the control directory's path, with which that path begins.
static DIRECTORY: AtomicUsize = AtomicUsize::new(0);

/// Who reads, as announced by the front end, and in which thread. Reads of other threads are the program's.
static PHASE: AtomicU8 = AtomicU8::new(Phase::Runtime as u8);
static PHASE_OF: AtomicUsize = AtomicUsize::new(0);

/// Starts recording if `snapboot freeze` started this process. Called by the constructor.
pub fn start() {
    // SAFETY: the loader runs constructors in one thread, before any code changes the environment.
    let directory = unsafe {
        let value = libc::getenv(c"SNAPBOOT_FREEZE_DIR".as_ptr());
        if value.is_null() {
            return;
        }
        CStr::from_ptr(value).to_bytes()
    };
    // SAFETY: see `Path`.
    let path = unsafe { &mut *PATH.0.get() };
    if directory.len() + NAME.len().max(ENVIRONMENT.len()) <= path.len() {
        path[..directory.len()].copy_from_slice(directory);
        path[directory.len()..][..ENVIRONMENT.len()].copy_from_slice(ENVIRONMENT);
        on_demand::start(path);
        path[directory.len()..][..NAME.len()].copy_from_slice(NAME);
        path[directory.len() + NAME.len()..].fill(0);
        DIRECTORY.store(directory.len(), Relaxed);
        IS_ON.store(true, Relaxed);
    }
}

/// Stops recording, and forgets the events. Returns the path of the control directory. Called in the child of the
/// freeze.
pub fn stop() -> Vec<u8> {
    IS_ON.store(false, Relaxed);
    on_demand::stop();
    WRITTEN.iter().for_each(|slot| slot.store(0, Relaxed));
    PHASE.store(Phase::Runtime as u8, Relaxed);
    PHASE_OF.store(0, Relaxed);
    // SAFETY: see `Path`.
    let path = unsafe { &mut *PATH.0.get() };
    let directory = path[..DIRECTORY.swap(0, Relaxed)].to_vec();
    path.fill(0);
    directory
}

/// Whether events are recorded: for callers that must first find out what to record.
#[inline]
pub fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Sets who reads in this thread from now on. Earlier events may be recorded again.
pub fn phase(phase: Phase) {
    WRITTEN.iter().for_each(|slot| slot.store(0, Relaxed));
    PHASE_OF.store(thread(), Relaxed);
    PHASE.store(phase as u8, Relaxed);
}

/// Who reads now.
fn reader() -> Phase {
    let phase = PHASE.load(Relaxed);
    match [Phase::Runtime, Phase::FrontEnd, Phase::Trial].into_iter().find(|it| *it as u8 == phase) {
        Some(Phase::Runtime) => Phase::Runtime,
        Some(other) if PHASE_OF.load(Relaxed) == thread() => other,
        _ => Phase::Program,
    }
}

/// Identifies the calling thread, and its copy in a forked child.
pub fn thread() -> usize {
    // SAFETY: cannot fail.
    unsafe { libc::pthread_self() as usize }
}

/// Records an event: its kind, its subject, and a detail, as in [`channel::EVENT`]. Of events that differ only in their
/// details, just the first is kept; of facts, the first for each detail: reading one limit says nothing about another.
/// Per-start values are recorded each time, since a trial import needs to know which import reads them.
pub fn record(kind: Kind, subject: &[u8], detail: &[u8]) {
    if !is_on() {
        return;
    }
    let is_early = kind == Kind::Early;
    let (kind, phase) = (kind.word().as_bytes(), reader().word().as_bytes());
    let more = if kind == Kind::Fact.word().as_bytes() { image::checksum(detail).rotate_left(2) } else { 0 };
    let alike = image::checksum(kind) ^ image::checksum(subject).rotate_left(1) ^ image::checksum(phase).rotate_left(3);
    if is_early || is_new(alike ^ more) {
        // The file and the place are unknown to C code.
        write(&[kind, phase, subject, b"", b"", detail]);
    }
}

/// Records the read of a variable, with the digest of its value; empty if it is unset.
pub fn variable(name: &CStr, value: *const c_char) {
    if !is_on() {
        return;
    }
    let mut hexadecimal = [0; 32];
    let mut detail: &[u8] = b"";
    if !value.is_null() {
        // SAFETY: getenv gave a string.
        let digest = image::digest(unsafe { CStr::from_ptr(value) }.to_bytes());
        for (pair, byte) in hexadecimal.chunks_exact_mut(2).zip(digest) {
            pair.copy_from_slice(&[
                b"0123456789abcdef"[usize::from(byte >> 4)],
                b"0123456789abcdef"[usize::from(byte & 15)],
            ]);
        }
        detail = &hexadecimal;
    }
    record(Kind::Variable, name.to_bytes(), detail);
}

/// Whether this event is new; remembers it.
fn is_new(hash: u64) -> bool {
    let hash = hash.max(1);
    for distance in 0..CAPACITY {
        let slot = &WRITTEN[(hash as usize).wrapping_add(distance) % CAPACITY];
        match slot.compare_exchange(0, hash, Relaxed, Relaxed) {
            Ok(_) => return true,
            Err(found) if found == hash => return false,
            Err(_) => {}
        }
    }
    true
}

/// Appends a record with these fields. On a full disk the event is lost, and so will be the image.
fn write(fields: &[&[u8]; FIELDS]) {
    let heads = fields.map(|field| channel::head(field.len()));
    let mut vector = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 }; 2 * FIELDS + 2];
    let mut count = 0;
    let mut add = |part: &[u8]| {
        vector[count] = libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
        count += 1;
    };
    add(KEY);
    for (field, (head, size)) in fields.iter().zip(&heads) {
        add(&head[..*size]);
        add(field);
    }
    add(b"\0");
    // SAFETY: plain calls; the path ends with a NUL, and the vector describes slices that live on. The caller's errno
    // is preserved.
    unsafe {
        let errno = *libc::__errno_location();
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC;
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, PATH.0.get(), flags, 0o600);
        if file >= 0 {
            libc::syscall(libc::SYS_writev, file, vector.as_ptr(), count);
            libc::syscall(libc::SYS_close, file);
        }
        *libc::__errno_location() = errno;
    }
}
