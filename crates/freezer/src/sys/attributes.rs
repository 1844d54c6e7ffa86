//! The kernel's attributes of a process (`inputs::attributes` lists them): their values at the start of the process,
//! what has changed since, and setting the changed ones again in a thawed process.
//!
//! Front ends have no call for most of them; they ask through [`Request::Attributes`](::channel::Request::Attributes).

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use inputs::attributes::{Attribute, Class, Source};

use super::attribute_calls::{directory, read, set, Value, NOTHING};
use super::File;

const COUNT: usize = Attribute::ALL.len();

/// The values of each attribute when the process started, at the last check, and when it was frozen.
struct Kept {
    start: [Value; COUNT],
    last: [Value; COUNT],
    frozen: [Value; COUNT],
    is_changed: [bool; COUNT],
    /// The current directory at the freeze, with its NUL.
    directory: [u8; libc::PATH_MAX as usize],
}

struct Cell(UnsafeCell<Kept>);
// SAFETY: used by the constructor, by fork handlers and by the one thread in which a front end asks.
unsafe impl Sync for Cell {}
static KEPT: Cell = Cell(UnsafeCell::new(EMPTY));
const EMPTY: Kept = Kept {
    start: [NOTHING; COUNT],
    last: [NOTHING; COUNT],
    frozen: [NOTHING; COUNT],
    is_changed: [false; COUNT],
    directory: [0; libc::PATH_MAX as usize],
};

/// A bit for each attribute that the program set through the C library: since the start, and since the last check.
static SET: AtomicU64 = AtomicU64::new(0);
static SET_SINCE_LOOK: AtomicU64 = AtomicU64::new(0);
const _: () = assert!(COUNT <= 64);
/// The process that these values belong to: a child of a `vfork` shares this memory, but sets its own attributes.
static PROCESS: AtomicI32 = AtomicI32::new(0);
/// Whether a thaw has any attributes to set again.
static REPEATS: AtomicBool = AtomicBool::new(false);
/// Where the next check of all attributes continues.
static NEXT: AtomicUsize = AtomicUsize::new(0);

#[allow(clippy::mut_from_ref)]
fn kept() -> &'static mut Kept {
    // SAFETY: see `Cell`; no caller keeps it beyond its own end.
    unsafe { &mut *KEPT.0.get() }
}

/// Records the initial values. Called by the constructor of a process that will be frozen.
pub fn remember() {
    let kept = kept();
    for &attribute in Attribute::ALL {
        kept.start[attribute as usize] = read(attribute);
    }
    kept.last = kept.start;
    PROCESS.store(super::pid(), Relaxed);
    STACK_LIMIT.store(kept.start[Attribute::LimitStack as usize].word(0), Relaxed);
    super::arena::release();
}

/// Records that the program set an attribute, perhaps to its current value.
pub fn touch(attribute: Attribute) {
    if super::pid() == PROCESS.load(Relaxed) {
        SET.fetch_or(1 << attribute as u64, Relaxed);
        SET_SINCE_LOOK.fetch_or(1 << attribute as u64, Relaxed);
    }
}

fn is_touched(attribute: Attribute) -> bool {
    SET.load(Relaxed) & (1 << attribute as u64) != 0
}

/// The soft stack limit when the process started. The kernel laid out its memory by it.
pub fn stack_limit_at_start() -> u64 {
    STACK_LIMIT.load(Relaxed)
}
static STACK_LIMIT: AtomicU64 = AtomicU64::new(0);

/// Whether a thawed process has any attributes to set again.
pub fn repeats() -> bool {
    REPEATS.load(Relaxed)
}

/// Answers a front end. `look` returns the next attribute that has changed since its last check, if that is cheap to
/// find out; `changed` returns the next one that differs from its initial value; `repeat`, in a thawed process, sets
/// again what the boot set, and returns the first attribute that cannot be set. None if there is nothing more, or all
/// have been set.
pub fn answer(word: &[u8]) -> Option<Attribute> {
    let found = match word {
        b"look" => changed_since_last_look(),
        b"changed" => next_changed(),
        b"repeat" => return repeat().err(),
        _ => None,
    };
    super::arena::release();
    found
}

fn changed_since_last_look() -> Option<Attribute> {
    let kept = kept();
    PROCESS.store(super::pid(), Relaxed);
    for &attribute in Attribute::ALL.iter().filter(|it| it.source() == Source::Call) {
        let now = read(attribute);
        let last = &mut kept.last[attribute as usize];
        let bit = 1 << attribute as u64;
        let is_touched = SET_SINCE_LOOK.fetch_and(!bit, Relaxed) & bit != 0;
        if *last != now || is_touched {
            *last = now;
            return Some(attribute);
        }
    }
    None
}

fn next_changed() -> Option<Attribute> {
    let (kept, next) = (kept(), NEXT.load(Relaxed));
    let has_changed = |it: &&Attribute| is_touched(**it) || differs(**it, &read(**it), &kept.start[**it as usize]);
    let found = Attribute::ALL[next..].iter().find(has_changed).copied();
    NEXT.store(found.map_or(0, |attribute| attribute as usize + 1), Relaxed);
    found
}

/// Whether an attribute has changed. A directory that another process removed meanwhile counts as the same.
fn differs(attribute: Attribute, now: &Value, start: &Value) -> bool {
    now != start && !(attribute == Attribute::Directory && *now == NOTHING)
}

/// Compares all attributes with their initial values, keeps what a thaw sets again, and passes attributes that cannot
/// be frozen to `refuse`. Called before the fork that is the freeze, since the kernel drops some of them in a fork.
pub fn compare(mut refuse: impl FnMut(Attribute)) {
    let kept = kept();
    let mut has_other_rights = false;
    for &attribute in Attribute::ALL {
        let (index, now) = (attribute as usize, read(attribute));
        // The kernel changes these together with the user.
        let follows = has_other_rights && matches!(attribute, Attribute::Dumpable | Attribute::ParentDeathSignal);
        if !differs(attribute, &now, &kept.start[index]) && !is_touched(attribute) || follows {
            continue;
        }
        has_other_rights |= matches!(attribute, Attribute::Users | Attribute::Groups | Attribute::Capabilities);
        if attribute.is_repeated() && (attribute == Attribute::Directory || !now.is_digest) {
            kept.is_changed[index] = true;
            kept.frozen[index] = now;
            REPEATS.store(true, Relaxed);
        } else {
            refuse(attribute);
        }
    }
    if kept.is_changed[Attribute::Directory as usize] && directory(&mut kept.directory) == 0 {
        refuse(Attribute::Directory);
    }
}

/// Drops values that a thaw does not need from the image. Called in the child of the freeze.
pub fn settle() {
    let kept = kept();
    kept.last = EMPTY.last;
    for index in (0..COUNT).filter(|index| !kept.is_changed[*index]) {
        kept.start[index] = NOTHING;
    }
}

/// Sets again what the boot set. If an attribute cannot be set here, restores all others as far as the kernel permits,
/// and returns it.
fn repeat() -> Result<(), Attribute> {
    let kept = kept();
    let changed = |attribute: &&Attribute| kept.is_changed[**attribute as usize];
    for &attribute in Attribute::ALL.iter().filter(changed) {
        let is_bound = attribute.class() == Class::RepeatedFromSame;
        if is_bound && read(attribute) != kept.start[attribute as usize] {
            return Err(attribute);
        }
    }
    // The way back to a directory may only lead through its descriptor.
    let own = File::open(b".\0", libc::O_PATH | libc::O_DIRECTORY);
    let mut before = [NOTHING; COUNT];
    for &attribute in Attribute::ALL.iter().filter(changed) {
        let index = attribute as usize;
        before[index] = read(attribute);
        if before[index] == kept.frozen[index] {
            continue;
        }
        if set(attribute, &kept.frozen[index], &before[index], &kept.directory).is_ok() {
            continue;
        }
        for &done in Attribute::ALL[..index].iter().filter(changed) {
            let _ = match &own {
                Ok(own) if done == Attribute::Directory => own.enter(),
                _ => set(done, &before[done as usize], &kept.frozen[done as usize], b"\0"),
            };
        }
        return Err(attribute);
    }
    Ok(())
}
