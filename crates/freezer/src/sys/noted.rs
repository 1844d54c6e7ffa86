//! What the process reads of its surroundings while it boots, noted in the file `noted` of the control directory: entries as in its
//! other files. `snapboot freeze` makes inputs of them.
//!
//! Nothing is noted after the freeze, and none of this is in an image but the code. The caller may be in the middle of malloc, or in a
//! child that shares this memory until it executes something: so there are no locks, no heap, and no descriptor that stays open.

use core::cell::UnsafeCell;
use core::ffi::{c_char, CStr};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use super::on_demand;

/// Whether anything is to be noted.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// How many notes are remembered, so that each is written once. Beyond, they are repeated.
const CAPACITY: usize = 2048;
static WRITTEN: [AtomicU64; CAPACITY] = [const { AtomicU64::new(0) }; CAPACITY];

/// The path of the file, with its NUL.
struct Path(UnsafeCell<[u8; libc::PATH_MAX as usize]>);
// SAFETY: written by the constructor and by the child of the freeze, when there is one thread; only read in between.
unsafe impl Sync for Path {}
static PATH: Path = Path(UnsafeCell::new([0; libc::PATH_MAX as usize]));

const NAME: &[u8] = b"/noted\0";
const ENVIRONMENT: &[u8] = b"/environment\0";

/// Starts noting when this process is one that `snapboot freeze` started. To be called by the constructor.
pub fn start() {
    // SAFETY: the loader runs constructors in one thread, before anybody changes the environment.
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
        IS_ON.store(true, Relaxed);
    }
}

/// Ends it, and forgets what was noted. To be called in the child of the freeze.
pub fn stop() {
    IS_ON.store(false, Relaxed);
    on_demand::stop();
    WRITTEN.iter().for_each(|slot| slot.store(0, Relaxed));
    // SAFETY: see `Path`.
    unsafe { *PATH.0.get() = [0; libc::PATH_MAX as usize] };
}

/// Whether anything is noted: for callers that first have to find out what to note.
#[inline]
pub fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Somebody else reads from now on: `phase` names it. What was noted before may be noted again.
pub fn phase(phase: &[u8]) {
    if is_on() {
        WRITTEN.iter().for_each(|slot| slot.store(0, Relaxed));
        write(&[b"phase=", phase]);
    }
}

/// Notes `key=value`, and a second entry unless its key is empty. Only the first of all notes with this `key=value` is kept; of facts, the first
/// with each second entry: what is read of one limit says nothing of another.
pub fn note(key: &[u8], value: &[u8], then: (&[u8], &[u8])) {
    let more = if key == b"fact" { image::checksum(then.1).rotate_left(2) } else { 0 };
    if !is_on() || !is_new(image::checksum(key) ^ image::checksum(value).rotate_left(1) ^ more) {
        return;
    }
    match then {
        ([], _) => write(&[key, b"=", value]),
        (then_key, then_value) => write(&[key, b"=", value, b"\0", then_key, b"=", then_value]),
    }
}

/// Notes `key=value` each time.
pub fn note_again(key: &[u8], value: &[u8]) {
    if is_on() {
        write(&[key, b"=", value]);
    }
}

/// Notes that a variable was read, with the digest of its value; none when it was not set.
pub fn variable(name: &CStr, value: *const c_char) {
    if !is_on() {
        return;
    }
    let mut hexadecimal = [0; 32];
    let mut then: (&[u8], &[u8]) = (b"", b"");
    if !value.is_null() {
        // SAFETY: getenv gave a string.
        let digest = image::digest(unsafe { CStr::from_ptr(value) }.to_bytes());
        for (pair, byte) in hexadecimal.chunks_exact_mut(2).zip(digest) {
            pair.copy_from_slice(&[
                b"0123456789abcdef"[usize::from(byte >> 4)],
                b"0123456789abcdef"[usize::from(byte & 15)],
            ]);
        }
        then = (b"digest", &hexadecimal);
    }
    note(b"variable", name.to_bytes(), then);
}

/// Whether nobody has noted this before; from now on somebody has.
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

/// Appends the parts and a NUL. On a full disk the note is lost, and so will be the image.
fn write(parts: &[&[u8]]) {
    let end: &[u8] = b"\0";
    let mut vector = [libc::iovec { iov_base: core::ptr::null_mut(), iov_len: 0 }; 8];
    let mut count = 0;
    for part in parts.iter().chain([&end]) {
        vector[count] = libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() };
        count += 1;
    }
    // SAFETY: plain calls; the path ends with a NUL, and the vector describes slices that live on. The caller finds its errno as
    // it was.
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
