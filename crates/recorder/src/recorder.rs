//! The thread that is asked before a call that takes a file name goes on, and notes the name.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, IoSliceMut, PipeReader, PipeWriter};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{recvmsg, ControlMessageOwned, MsgFlags};
use nix::sys::uio::{process_vm_readv, RemoteIoVec};
use nix::unistd::Pid;

use crate::calls::{self, Asked, Base};
use crate::notes::Notes;
use crate::paths::Paths;
use crate::sys;

/// Memory is read up to such a border: behind it there may be none.
const PAGE: usize = 4096;
/// Longest name that the kernel takes (bytes).
const LONGEST: usize = 4096;

/// A boot that is being watched.
pub struct Recorder {
    /// Closed to end the thread.
    at_end: PipeWriter,
    thread: JoinHandle<io::Result<Notes>>,
}

impl Recorder {
    /// Waits for a child to call [`crate::execute`] with the other end of `socket`, and watches it from then on. Nobody but that child
    /// may have the other end. None when the child has ended before: then it says why.
    pub fn start(socket: &UnixStream) -> io::Result<Option<Recorder>> {
        let Some(listener) = receive(socket)? else { return Ok(None) };
        let (ended, at_end) = io::pipe()?;
        let state = State { notes: Notes::default(), paths: Paths::default(), failed: None };
        let thread = thread::Builder::new().name("recorder".to_owned()).spawn(move || state.run(&listener, &ended))?;
        Ok(Some(Recorder { at_end, thread }))
    }

    /// Ends the watch, and gives the notes. Processes of the boot that still run cannot open files any more. Fails when none could be
    /// read.
    pub fn finish(self) -> io::Result<Notes> {
        drop(self.at_end);
        self.thread.join().map_err(|_| io::Error::other("the recorder failed"))?
    }
}

/// The listening end from a child; None when the child went away.
fn receive(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    use std::os::fd::AsRawFd;
    let mut byte = [0; 1];
    let (mut into, mut space) = ([IoSliceMut::new(&mut byte)], cmsg_space!([i32; 1]));
    let flags = MsgFlags::MSG_CMSG_CLOEXEC;
    let message = loop {
        match recvmsg::<()>(socket.as_raw_fd(), &mut into, Some(&mut space), flags) {
            Err(Errno::EINTR) => {}
            result => break result?,
        }
    };
    let rights = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmRights(numbers) => numbers.first().copied(),
        _ => None,
    });
    Ok(rights.map(sys::received))
}

/// The state of the thread.
struct State {
    notes: Notes,
    paths: Paths,
    /// Why not even the first name could be read.
    failed: Option<io::Error>,
}

impl State {
    /// Answers until the boot has ended, or the watch.
    fn run(mut self, listener: &OwnedFd, ended: &PipeReader) -> io::Result<Notes> {
        sys::wake_in_turn(listener);
        loop {
            let mut events =
                [PollFd::new(listener.as_fd(), PollFlags::POLLIN), PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
            match poll(&mut events, PollTimeout::NONE) {
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let is_asked = events[0].revents().is_some_and(|events| events.contains(PollFlags::POLLIN));
            if is_asked {
                let Some(call) = sys::next(listener)? else { continue };
                let process = Pid::from_raw(call.thread);
                if let Err(error) = self.note(process, &call.data) {
                    // Anything else is an error of the call itself, or of a process that was killed.
                    match error.kind() {
                        io::ErrorKind::PermissionDenied if self.notes.places.is_empty() => self.failed = Some(error),
                        io::ErrorKind::PermissionDenied => self.notes.hidden = true,
                        _ => {}
                    }
                }
                sys::go_on(listener, &call);
            } else if events.iter().any(|event| event.revents().is_some_and(|events| !events.is_empty())) {
                return self.failed.map_or(Ok(self.notes), Err);
            }
        }
    }

    /// Notes what a call asks for.
    fn note(&mut self, process: Pid, call: &libc::seccomp_data) -> io::Result<()> {
        let word = |address| {
            let mut bytes = [0; 8];
            (read(process, address, &mut bytes).ok()? == 8).then(|| u64::from_ne_bytes(bytes))
        };
        for asked in calls::asked(call, word).into_iter().flatten() {
            match asked {
                Asked::List(number) => self.notes.list(&open_file(process, number)?),
                Asked::Name(base, address, used) => {
                    let mut room = [0; LONGEST];
                    let name = string(process, address, &mut room)?;
                    let directory = match base {
                        _ if name.is_empty() => continue,
                        _ if name[0] == b'/' => PathBuf::new(),
                        Base::Cwd => fs::read_link(format!("/proc/{process}/cwd"))?,
                        Base::Descriptor(number) => open_file(process, number)?,
                    };
                    let path = self.paths.absolute(&directory, OsStr::from_bytes(name));
                    self.notes.add(&path, used);
                }
            }
        }
        Ok(())
    }
}

/// What is open under that number.
fn open_file(process: Pid, number: i32) -> io::Result<PathBuf> {
    let path = fs::read_link(format!("/proc/{process}/fd/{number}"))?;
    let is_there = path.is_absolute() && Path::new(&path).exists();
    if is_there {
        Ok(path)
    } else {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// A string of another process, without its NUL.
fn string(process: Pid, address: u64, room: &mut [u8; LONGEST]) -> io::Result<&[u8]> {
    let mut length = 0;
    while length < LONGEST {
        let place = address.wrapping_add(length as u64);
        let size = (PAGE - place as usize % PAGE).min(256).min(LONGEST - length);
        let size = read(process, place, &mut room[length..length + size])?;
        if let Some(end) = room[length..length + size].iter().position(|&byte| byte == 0) {
            return Ok(&room[..length + end]);
        }
        if size == 0 {
            break;
        }
        length += size;
    }
    // The kernel does not take it either.
    Err(io::ErrorKind::InvalidInput.into())
}

/// Reads memory of another process; returns how much was there.
fn read(process: Pid, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let from = RemoteIoVec { base: address as usize, len: into.len() };
    Ok(process_vm_readv(process, &mut [IoSliceMut::new(into)], &[from])?)
}
