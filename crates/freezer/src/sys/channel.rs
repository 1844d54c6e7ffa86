//! This process' end of the channel: answers its front end, and passes what only this process knows to the recorder.
//! The crate `channel` defines the requests.

use core::ffi::{c_char, c_int, CStr};
use core::fmt::Write;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering::Relaxed};

use ::channel::{Phase, Request, NAME};

use super::{attributes, events, libc_hooks, renewal, ruby_text, ArgvBuffer};

/// The thread whose next fork is the freeze; 0 if none is.
static ARMED: AtomicUsize = AtomicUsize::new(0);
/// The front end's buffer for arguments and environment: address and size. Zeros if it has none.
static BUFFER: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Threads that are started again after each thaw.
static RESTARTED: [AtomicI32; 32] = [const { AtomicI32::new(0) }; 32];
/// Whether the end of the process flushes the C library's streams, and whether it stops there.
static ENDS: AtomicBool = AtomicBool::new(false);
static STOPS: AtomicBool = AtomicBool::new(false);

/// The C library's function of this name (readlink(2)), through which front ends send requests.
///
/// # Safety
///
/// As for the function of the C library.
#[no_mangle]
pub unsafe extern "C" fn readlink(path: *const c_char, buffer: *mut c_char, size: usize) -> isize {
    // SAFETY: as the caller says: the path is a string or null, and the buffer has that size. Without `dlsym`: an
    // allocator may call this during its initialisation.
    unsafe {
        let Some((request, argument)) = asked(path) else {
            return libc::syscall(libc::SYS_readlinkat, libc::AT_FDCWD, path, buffer, size) as isize;
        };
        let mut answer = Answer { text: [0; Answer::LONGEST], size: 0 };
        if answer_to(request, argument, &mut answer).is_none() {
            *libc::__errno_location() = libc::EINVAL;
            return -1;
        }
        let size = size.min(answer.size);
        core::ptr::copy_nonoverlapping(answer.text.as_ptr(), buffer.cast(), size);
        size as isize
    }
}

/// The request in a path, and its argument, which ends with a NUL.
///
/// # Safety
/// The path is a string or null.
unsafe fn asked<'a>(path: *const c_char) -> Option<(Request, &'a CStr)> {
    // SAFETY: the comparison ends at the first different byte, so it never passes the NUL.
    unsafe {
        if path.is_null() || !NAME.iter().enumerate().all(|(at, sign)| (*path.add(at)).to_ne_bytes() == [*sign]) {
            return None;
        }
        let (request, argument) = Request::parse(CStr::from_ptr(path).to_bytes())?;
        Some((request, CStr::from_ptr(argument.as_ptr().cast())))
    }
}

/// The buffer for an answer.
struct Answer {
    text: [u8; Answer::LONGEST],
    size: usize,
}

impl Answer {
    const LONGEST: usize = 128;
}

impl Write for Answer {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.size + text.len();
        self.text.get_mut(self.size..end).ok_or(core::fmt::Error)?.copy_from_slice(text.as_bytes());
        self.size = end;
        Ok(())
    }
}

/// Answers a request. None if it is not permitted now, or fails.
fn answer_to(request: Request, argument: &CStr, answer: &mut Answer) -> Option<()> {
    let text = argument.to_bytes();
    let may_ask = match request {
        Request::Attributes => events::is_on() || attributes::repeats(),
        Request::Renew => events::is_on() || renewal::is_prepared(),
        Request::End | Request::IsArmed => true,
        _ => events::is_on(),
    };
    if !may_ask {
        return None;
    }
    match request {
        Request::Phase => events::phase(Phase::from_word(text)?),
        Request::Environment => libc_hooks::write_environment(argument),
        Request::Unfreeze => ruby_text::let_change(text),
        Request::Restarts => {
            let thread = core::str::from_utf8(text).ok()?.parse().ok()?;
            RESTARTED.iter().find(|kept| kept.load(Relaxed) == 0)?.store(thread, Relaxed);
        }
        Request::Arm => {
            let mut numbers = text.split(|&byte| byte == b',').map(|it| core::str::from_utf8(it).ok()?.parse().ok());
            BUFFER.iter().for_each(|kept| kept.store(numbers.next().flatten().unwrap_or(0), Relaxed));
            ARMED.store(events::thread(), Relaxed);
        }
        Request::Disarm => ARMED.store(0, Relaxed),
        Request::IsArmed => answer.write_str(if is_armed() { "1" } else { "0" }).ok()?,
        Request::Attributes => {
            if let Some(attribute) = attributes::answer(text) {
                let sign = if attribute.is_repeated() { '+' } else { '-' };
                write!(answer, "{sign}{}", attribute.name()).ok()?;
            }
        }
        Request::Renew => write!(answer, "{}", renewal::answer(text)?).ok()?,
        Request::End => {
            ENDS.store(true, Relaxed);
            STOPS.store(text == b"stop", Relaxed);
        }
        Request::Trial | Request::Aside | Request::LookUp | Request::LookedUp | Request::KindOnly => {
            send_to_recorder(request, &[text])
        }
    }
    Some(())
}

/// Whether the next fork of this thread is the freeze.
pub fn is_armed() -> bool {
    ARMED.load(Relaxed) == events::thread()
}

/// In the child of a fork: whether the fork was the freeze, and the front end's buffer. Later forks of this process are
/// not the freeze.
pub fn take_arm() -> Option<Option<ArgvBuffer>> {
    let is_freeze = is_armed();
    ARMED.store(0, Relaxed);
    RESTARTED.iter().for_each(|kept| kept.store(0, Relaxed));
    let [address, size] = [0, 1].map(|number: usize| BUFFER[number].swap(0, Relaxed));
    is_freeze.then(|| (address != 0).then_some(ArgvBuffer { address, size }))
}

/// Whether a thread is started again after each thaw.
pub fn is_restarted(thread: i32) -> bool {
    RESTARTED.iter().any(|kept| kept.load(Relaxed) == thread)
}

/// Whether the front end has announced the end of the process, and whether the process then stops to be inspected.
pub fn announced_end() -> Option<bool> {
    ENDS.load(Relaxed).then(|| STOPS.load(Relaxed))
}

/// Sends a request to the recorder, which sees the call and lets it fail. A request that is too long is not sent.
pub fn send_to_recorder(request: Request, argument: &[&[u8]]) {
    let mut path = [0; 512];
    let parts = [NAME, request.word().as_bytes(), b"="];
    let mut size = 0;
    for part in parts.iter().chain(argument) {
        let end = size + part.len();
        match path.get_mut(size..end) {
            Some(place) if end < 512 => place.copy_from_slice(part),
            _ => return,
        }
        size = end;
    }
    const NO_DIRECTORY: c_int = -1;
    let mut nothing = [0u8];
    // SAFETY: plain calls; the path ends with a NUL. The errno of the caller is preserved.
    unsafe {
        let errno = *libc::__errno_location();
        libc::syscall(libc::SYS_readlinkat, NO_DIRECTORY, path.as_ptr(), nothing.as_mut_ptr(), nothing.len());
        *libc::__errno_location() = errno;
    }
}
